/* SPDX-License-Identifier: MIT */
/* All advice about a record, and what is said of the whole process. */
#include "profiler/report/advice.h"

#include <stdio.h>

#include "profiler/record/value.h"

static void advice_of_learning(const tide_history *history, tide_advice_list *out)
{
    const json_t *learning = json_object_get(history->last, "learning");
    tide_advice advice = {.grade = TIDE_GRADE_NOTE, .subject = "learning"};
    if (json_is_false(json_object_get(learning, "enabled"))) {
        TIDE_SAY(advice.what, "Learning was switched off: every site stayed as it was.");
        TIDE_SAY(advice.why, "The setting `learn` was 0.");
        TIDE_SAY(advice.instead,
                 "Record once more without TIDEPOOL_LEARN=0 to see what sites would become.");
        tide_advice_put(out, &advice);
    } else if (json_is_false(json_object_get(learning, "background")) &&
               tide_value_count(learning, "rounds") == 0) { /* else there was one, and it ended */
        TIDE_SAY(advice.what,
                 "There was no keeper: nothing is compiled unless the program calls tide_step.");
        TIDE_SAY(advice.why, "The setting `background` is 0, or no site was used often "
                             "enough for a keeper to start.");
        TIDE_SAY(
            advice.instead,
            "If sites are used often here: set `background` to 1, or call tide_step now and then.");
        tide_advice_put(out, &advice);
    }
}

void tide_advice_of(const tide_history *history, tide_advice_list *out)
{
    *out = (tide_advice_list){0};
    if (history->last == NULL)
        return;
    tide_advice_of_sites(history, out);
    tide_advice_of_memory(history, out);
    advice_of_learning(history, out);
}

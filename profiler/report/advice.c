/* SPDX-License-Identifier: MIT */
/* All advice about a record, and what is said of the whole process. */
#define _GNU_SOURCE
#include "profiler/report/advice.h"

#include <stdarg.h>
#include <string.h>

#include "profiler/record/value.h"
#include "runtime/base/assert.h"

static bool advice_is_worse(const tide_advice *a, const tide_advice *b)
{
    return a->grade != b->grade ? a->grade > b->grade : a->cost_ns > b->cost_ns;
}

void tide_advice_put(tide_advice_list *list, const tide_advice *advice)
{
    size_t at = list->count;
    tide_assert(advice->what[0] != 0 && advice->grade < TIDE_GRADE_COUNT);
    tide_assert(advice->share >= 0 && advice->share <= 1);
    while (at > 0 && advice_is_worse(advice, &list->each[at - 1]))
        at--;
    if (list->count == TIDE_ADVICE_MAX) {
        list->room_lacked++;
        if (at == list->count)
            return;
        list->count--;
    }
    memmove(&list->each[at + 1], &list->each[at], (list->count - at) * sizeof *advice);
    list->each[at] = *advice;
    list->count++;
    tide_assert(at == 0 || !advice_is_worse(advice, &list->each[at - 1]));
}

void tide_advice_say(tide_advice_list *list, tide_advice *advice, const char *format, ...)
{
    char text[1024], *rest = text;
    va_list values;
    va_start(values, format);
    (void)vsnprintf(text, sizeof text, format, values);
    va_end(values);
    TIDE_SAY(advice->what, "%s", strsep(&rest, "\n"));
    TIDE_SAY(advice->why, "%s", rest != NULL ? strsep(&rest, "\n") : "");
    TIDE_SAY(advice->instead, "%s", rest != NULL ? rest : "");
    tide_advice_put(list, advice);
}

double tide_advice_share(const tide_history *history, double cost_ns)
{
    double busy = tide_value_number(history->last, "process_cpu_ns");
    if (history->documents > 1)
        busy -= tide_value_number(history->first, "process_cpu_ns");
    if (busy <= 0)
        busy = tide_history_duration(history);
    return cost_ns >= busy ? 1 : cost_ns / busy;
}

static void advice_of_learning(const tide_history *history, tide_advice_list *out)
{
    const json_t *learning = json_object_get(history->last, "learning");
    tide_advice advice = {.grade = TIDE_GRADE_NOTE, .subject = "learning"};
    if (json_is_false(json_object_get(learning, "enabled"))) {

        tide_advice_say(
            out, &advice,
            "Learning was switched off: every site stayed as it was.\n"
            "The setting `learn` was 0.\n"
            "Record once more without TIDEPOOL_LEARN=0 to see what sites would become.");
    } else if (json_is_false(json_object_get(learning, "background")) &&
               tide_value_count(learning, "rounds") == 0) { /* else there was one, and it ended */

        tide_advice_say(
            out, &advice,
            "There was no background thread: nothing is compiled unless the program calls "
            "tide_step.\n"
            "The setting `background` is 0, or no site was used often enough for it to "
            "start.\n"
            "If sites are used often here: set `background` to 1, or call tide_step now and then.");
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

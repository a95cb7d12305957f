/* SPDX-License-Identifier: MIT */
/* Pieces of advice in order, and what is said of the whole process. */
#include "profiler/report/advice.h"

#include <stdio.h>
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

const char *tide_advice_bytes(char out[TIDE_ADVICE_BYTES], double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    for (; bytes >= 1024 && unit < 4; unit++)
        bytes /= 1024;
    snprintf(out, TIDE_ADVICE_BYTES, unit == 0 ? "%.0f %s" : "%.3g %s", bytes < 1e6 ? bytes : 1e6,
             units[unit]);
    return out;
}

static void advice_of_learning(const tide_history *history, tide_advice_list *out)
{
    const json_t *learning = json_object_get(history->last, "learning");
    tide_advice advice = {.grade = TIDE_GRADE_NOTE, .subject = "learning"};
    if (json_is_false(json_object_get(learning, "enabled"))) {
        snprintf(advice.what, sizeof advice.what,
                 "Learning was switched off: every site stayed as it was.");
        snprintf(advice.why, sizeof advice.why, "The setting `learn` was 0.");
        snprintf(advice.instead, sizeof advice.instead,
                 "Record once more without TIDEPOOL_LEARN=0 to see what sites would become.");
        tide_advice_put(out, &advice);
    } else if (json_is_false(json_object_get(learning, "keeper")) &&
               tide_value_count(learning, "rounds") == 0) { /* else there was one, and it ended */
        snprintf(advice.what, sizeof advice.what,
                 "There was no keeper: nothing is compiled unless the program calls tide_step.");
        snprintf(advice.why, sizeof advice.why,
                 "The setting `keeper` is 0, or no site was used often "
                 "enough for a keeper to start.");
        snprintf(
            advice.instead, sizeof advice.instead,
            "If sites are used often here: set `keeper` to 1, or call tide_step now and then.");
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
    for (size_t i = 0; i < out->count; i++) {
        tide_assert(out->each[i].share >= 0 && out->each[i].share <= 1);
        tide_assert(i == 0 || !advice_is_worse(&out->each[i], &out->each[i - 1]));
    }
}

/* SPDX-License-Identifier: MIT */
/* Pieces of advice in order, the worst first. */
#include "profiler/report/advice_list.h"

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

double tide_advice_share(const tide_history *history, double cost_ns)
{
    double busy = tide_value_number(history->last, "process_cpu_ns");
    if (history->documents > 1)
        busy -= tide_value_number(history->first, "process_cpu_ns");
    if (busy <= 0)
        busy = tide_history_duration(history);
    return cost_ns >= busy ? 1 : cost_ns / busy;
}

/* SPDX-License-Identifier: MIT */
/* A bucket of compiles that fills over a minute, and a rest that doubles. */
#define _GNU_SOURCE
#include "jit/learn/budget.h"

#include <time.h>

#include "jit/stager/code.h"
#include "runtime/base/assert.h"
#include "runtime/base/settings.h"

enum {
    FAILED_FEW = 3, /* batches in a row that may fail before there is a rest … */
    FIRST_REST = 8, /* … of so many rounds, doubled by each one more          */
    DOUBLINGS = 20  /* more than that is beyond any limit                     */
};

_Static_assert(DOUBLINGS < 60, "the longest rest, FIRST_REST << DOUBLINGS, is no overflow");

static uint64_t budget_failed_in_a_row, budget_rest_until; /* until which round none are sent */
static uint64_t budget_failed_last;                        /* in which round                  */

/* The bucket holds what was not spent in the last minute, a whole minute's worth at most. */
static bool budget_spend_one(void)
{
    static double left = -1, filled;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double most = tide_setting_get(TIDE_SETTING_compiles);
    double at = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    tide_assert(left < 0 || at >= filled);
    left = left < 0 ? most : left + (at - filled) * most / 60;
    filled = at;
    if (left > most)
        left = most;
    if (left < 1)
        return false;
    left -= 1;
    tide_assert(left >= 0 && left < most);
    return true;
}

tide_reason tide_budget_take(uint64_t round)
{
    if (round < budget_rest_until)
        return TIDE_REASON_backing_off;
    if (tide_code_full())
        return TIDE_REASON_code_full;
    return budget_spend_one() ? TIDE_REASON_none : TIDE_REASON_budget;
}

/* What failed long ago says little of now: each longest rest that has gone by without a failure
 * takes one of the doublings back. */
static void budget_forgive(uint64_t round, uint64_t longest)
{
    uint64_t doublings = budget_failed_in_a_row < DOUBLINGS ? budget_failed_in_a_row : DOUBLINGS;
    uint64_t calm = round > budget_failed_last ? (round - budget_failed_last) / (longest + 1) : 0;
    budget_failed_in_a_row = calm < doublings ? doublings - calm : 0;
    budget_failed_last = round;
}

bool tide_budget_note(bool good, uint64_t round)
{
    uint64_t most = tide_constant_whole(TIDE_CONSTANT_back_off_max);
    if (!good)
        budget_forgive(round, most);
    budget_failed_in_a_row = good ? 0 : budget_failed_in_a_row + 1;
    if (budget_failed_in_a_row < FAILED_FEW)
        return true;
    uint64_t doublings = budget_failed_in_a_row - FAILED_FEW;
    uint64_t rest = doublings < DOUBLINGS ? (uint64_t)FIRST_REST << doublings : most;
    budget_rest_until = round + (rest < most ? rest : most);
    tide_assert(budget_rest_until > round);
    return false;
}

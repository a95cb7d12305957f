/* SPDX-License-Identifier: MIT */
/* Whether anything may be compiled now: so many compiles a minute, so much retired code at most,
 * and a rest after failures. Guarded by the lock of the round. */
#ifndef TIDEPOOL_JIT_LEARN_BUDGET_H
#define TIDEPOOL_JIT_LEARN_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "jit/learn/reason.h"

/* Takes one compile out of the budget: TIDE_REASON_none; or says why none is to be had. */
tide_reason tide_budget_take(uint64_t round);

/* How an order went. False: several in a row did not, and for some rounds none will be sent. Where
 * nothing can be compiled, sites shall not each find out for themselves. */
bool tide_budget_note(bool good, uint64_t round);

#endif

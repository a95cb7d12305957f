/* SPDX-License-Identifier: MIT */
/* May anything be compiled now? The limits: so many compiles a minute, so much code, and a rest after failures. Guarded by the lock of the round. */
#ifndef TIDEPOOL_JIT_LEARN_BUDGET_H
#define TIDEPOOL_JIT_LEARN_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "jit/events/reason.h"

/* Takes one compile out of the budget: TIDE_REASON_none; else the reason why there is none. */
tide_reason tide_budget_take(uint64_t round);

/* Says how a batch went. False: several in a row failed, and for some rounds none will be sent.
 * Where nothing can be compiled, not every site shall have to find that out. */
bool tide_budget_note(bool good, uint64_t round);

#endif

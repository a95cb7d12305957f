/* SPDX-License-Identifier: MIT */
/* Misses: uses that the plan in force did not foresee. Rounds look at them; those of scopes are
 * also told at once, when there are `misses_max` of the learner. Registry locked, throughout. */
#ifndef TIDEPOOL_JIT_LEARN_MISSES_H
#define TIDEPOOL_JIT_LEARN_MISSES_H

#include "jit/learn/learner.h"

/* In a round: enough misses make a window due; a long quiet makes fewer enough. */
void tide_misses_look(tide_learner *learner, uint64_t round);

/* A scope of that plan, the last of as many as learning was to be told of, has acquired these types
 * and more or others than the plan saves. */
void tide_misses_alarm(const tide_plan *plan, const tide_items *touched, uint64_t round);

/* What was done about misses was in vain, or not: the next time it takes more, or fewer. */
void tide_misses_be_patient(tide_learner *learner, bool in_vain);

/* Learning is to be told of the misses of a scope's plan in force. After a window, which hides
 * them. */
void tide_misses_listen(tide_learner *learner);

#endif

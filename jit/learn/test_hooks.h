/* SPDX-License-Identifier: MIT */
/* What only tests set: learning itself calls it and never changes it. */
#ifndef TIDEPOOL_JIT_LEARN_TEST_HOOKS_H
#define TIDEPOOL_JIT_LEARN_TEST_HOOKS_H

#include <tidepool/site.h>

/* The clock of trials, in nanoseconds; `timed` is the plan whose use begins or ends, NULL while the
 * clock itself is timed. The system's unless a test put another one here. */
extern uint64_t (*tide_trial_clock)(const tide_plan *timed);

/* In the child of a fork, which learns nothing: it does, for tests that try each thing in a process
 * of its own. */
void tide_round_begin_again(void);

#endif

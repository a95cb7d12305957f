/* SPDX-License-Identifier: MIT */
/* What only tests set: learning itself calls it and never changes it. */
#ifndef TIDEPOOL_JIT_LEARN_TEST_HOOKS_H
#define TIDEPOOL_JIT_LEARN_TEST_HOOKS_H

#include <stdint.h>

/* The clock of rehearsals, in nanoseconds. The system's unless a test put another one here. */
extern uint64_t (*tide_rehearse_clock)(void);

#endif

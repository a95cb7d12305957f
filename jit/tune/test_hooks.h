/* SPDX-License-Identifier: MIT */
/* What only tests set: the library calls it and never changes it. */
#ifndef TIDEPOOL_JIT_TUNE_TEST_HOOKS_H
#define TIDEPOOL_JIT_TUNE_TEST_HOOKS_H

#include <stdint.h>

/* The clock of measured uses, in nanoseconds. The system's unless a test put another one here. */
extern uint64_t (*tide_tune_clock)(void);

#endif

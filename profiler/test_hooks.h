/* SPDX-License-Identifier: MIT */
/* What only tests set: the profiler itself calls it and never changes it. */
#ifndef TIDEPOOL_PROFILER_TEST_HOOKS_H
#define TIDEPOOL_PROFILER_TEST_HOOKS_H

#include <stdint.h>

/* The clock by which rates are measured, in nanoseconds; never 0. The system's unless a test put
 * another one here. */
extern uint64_t (*tide_rate_clock)(void);

#endif

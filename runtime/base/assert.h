/* SPDX-License-Identifier: MIT */
/* Three tiers of assertion, chosen at build time by TIDE_ASSERT_LEVEL: 0 none (release),
 * 1 cheap ones, 2 also the walk of a pool's invariants after each cold operation. */
#ifndef TIDEPOOL_RUNTIME_BASE_ASSERT_H
#define TIDEPOOL_RUNTIME_BASE_ASSERT_H

#include <tidepool/inline/config.h>

#ifndef TIDE_ASSERT_LEVEL
#define TIDE_ASSERT_LEVEL 0
#endif

/* Prints the condition and its place, then aborts. */
__attribute__((noreturn, cold)) void tide_assert_failed(const char *what, const char *file,
                                                        int line);

/* At level 0 the compiler still reads the condition, but nothing evaluates it: what it names counts
 * as used, and what it calls is not called. */
#if TIDE_ASSERT_LEVEL >= 1
#define tide_assert(condition) \
    (TIDE_LIKELY(condition) ? (void)0 : tide_assert_failed(#condition, __FILE__, __LINE__))
#else
#define tide_assert(condition) ((void)sizeof(condition))
#endif

#if TIDE_ASSERT_LEVEL >= 2
#define tide_assert_valid(pool)      \
    (tide_pool_invariants_hold(pool) \
         ? (void)0                   \
         : tide_assert_failed(tide_error_message(), __FILE__, __LINE__))
#else
#define tide_assert_valid(pool) ((void)(pool))
#endif

#endif

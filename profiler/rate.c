/* SPDX-License-Identifier: MIT */
/* Estimates how often a site is used from how fast its windows fill. */
#define _GNU_SOURCE
#include "profiler/rate.h"
#include "profiler/test_hooks.h"

#include <time.h>

#include "runtime/base/assert.h"

/* One more than the system's clock, because 0 means that there is no time. */
static uint64_t rate_monotonic(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec + 1;
}

uint64_t (*tide_rate_clock)(void) = rate_monotonic;

void tide_rate_begin(tide_rate *rate)
{
    rate->begun_ns = tide_rate_clock();
    tide_assert(rate->begun_ns != 0);
    if (rate->seen_ns == 0)
        rate->seen_ns = rate->begun_ns;
    __atomic_store_n(&rate->first_ns, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&rate->last_ns, 0, __ATOMIC_RELAXED);
}

/* The clock is read for the first and for the last ticket only. */
void tide_rate_ticket(tide_rate *rate, bool last)
{
    if (__atomic_load_n(&rate->first_ns, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&rate->first_ns, tide_rate_clock(), __ATOMIC_RELAXED);
    if (last)
        __atomic_store_n(&rate->last_ns, tide_rate_clock(), __ATOMIC_RELAXED);
}

static double rate_of(uint64_t uses, uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (double)uses * 1e9 / (double)(to_ns - from_ns) : 0;
}

/* A full window is timed from its first ticket to its last. One that was ended before is timed by
 * how long it was open. */
void tide_rate_taken(tide_rate *rate, uint64_t uses)
{
    uint64_t now = tide_rate_clock();
    uint64_t first = __atomic_load_n(&rate->first_ns, __ATOMIC_RELAXED);
    uint64_t last = __atomic_load_n(&rate->last_ns, __ATOMIC_RELAXED);
    tide_assert(now >= rate->seen_ns && now >= rate->begun_ns);
    rate->per_second =
        last != 0 ? rate_of(uses - (uses != 0), first, last) : rate_of(uses, rate->begun_ns, now);
    rate->calls += rate->per_second * (double)(now - rate->seen_ns) * 1e-9;
    if (rate->calls < (double)uses)
        rate->calls = (double)uses;
    tide_assert(rate->per_second >= 0 && rate->calls >= (double)uses);
    rate->seen_ns = now;
}

double tide_rate_calls(const tide_rate *rate)
{
    if (rate->seen_ns == 0)
        return 0;
    return rate->calls + rate->per_second * (double)(tide_rate_clock() - rate->seen_ns) * 1e-9;
}

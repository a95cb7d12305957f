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

uint64_t tide_rate_now(void)
{
    return tide_rate_clock();
}

void tide_rate_begin(tide_rate *rate, uint64_t uses, bool in_use)
{
    rate->begun_ns = tide_rate_clock();
    rate->tickets = uses;
    rate->in_use = in_use;
    tide_assert(rate->begun_ns != 0);
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

/* Observing makes a use slower, which is no reason to think that there are fewer: nanoseconds. But
 * no more than three quarters of the time is taken for that. */
static uint64_t rate_without_observing(uint64_t uses, uint64_t ns)
{
    enum { OBSERVED_NS = 50 };
    return uses < ns / OBSERVED_NS * 3 / 4 ? ns - uses * OBSERVED_NS : ns / 4;
}

/* A window that opened while the site idled is timed from then: on the average of many windows that
 * is the part of the time for which it idles. One that a use began tells of itself only. Where
 * every use is observed there are more uses than tickets. */
static void rate_confirm(tide_rate *rate, uint64_t uses, uint64_t last, uint64_t now)
{
    uint64_t seen = uses < rate->tickets ? uses : rate->tickets, end = last != 0 ? last : now;
    double per_second = rate_of(seen, 0, rate_without_observing(seen, end - rate->begun_ns));
    uint64_t from = rate->in_use || rate->confirmed_ns == 0 ? rate->begun_ns : rate->confirmed_ns;
    double more = end > from ? per_second * (double)(end - from) * 1e-9 : 0;
    tide_assert(end >= rate->begun_ns);
    rate->confirmed += more < (double)seen ? (double)seen : more;
    rate->confirmed_ns = end;
}

double tide_rate_confirmed(const tide_rate *rate)
{
    return rate->confirmed;
}

/* A full window is timed from its first ticket to its last. One that was ended before is timed by
 * how long it was open. */
void tide_rate_taken(tide_rate *rate, uint64_t uses)
{
    uint64_t now = tide_rate_clock();
    uint64_t first = __atomic_load_n(&rate->first_ns, __ATOMIC_RELAXED);
    uint64_t last = __atomic_load_n(&rate->last_ns, __ATOMIC_RELAXED);
    if (last < rate->begun_ns)
        last = 0; /* of the window before, by a use that was slow to say so */
    tide_assert(now >= rate->begun_ns);
    rate_confirm(rate, uses, last, now);
    if (last > first && first >= rate->begun_ns)
        rate->while_used =
            rate_of(rate->tickets, 0, rate_without_observing(rate->tickets, last - first));
}

/* It is as if no window had begun yet; one that is open all the same counts from now on. */
void tide_rate_clear(tide_rate *rate)
{
    rate->confirmed = rate->while_used = 0;
    rate->confirmed_ns = 0;
    if (rate->begun_ns != 0)
        rate->begun_ns = tide_rate_clock();
    __atomic_store_n(&rate->first_ns, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&rate->last_ns, 0, __ATOMIC_RELAXED);
}

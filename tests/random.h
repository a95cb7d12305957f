/* SPDX-License-Identifier: MIT */
/* Random numbers for tests: splitmix64, the same from the same seed in every run and on every
 * machine, so that what fails once fails again. Any seed will do, seeds beside each other too: all
 * bits of every number depend on all bits of the seed. Not for several threads at once; each has
 * its own. (Benchmarks draw by bench_random, which is part of what some of them measure.) */
#ifndef TIDEPOOL_TESTS_RANDOM_H
#define TIDEPOOL_TESTS_RANDOM_H

#include <stdint.h>

typedef struct rng {
    uint64_t state; /* the seed at first */
} rng;

static inline uint64_t rng_next(rng *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* One of 0 to limit - 1; the limit is not 0. Low numbers are a little likelier, by limit / 2^64. */
static inline uint64_t rng_below(rng *random, uint64_t limit)
{
    return rng_next(random) % limit;
}

#endif

/* SPDX-License-Identifier: MIT */
/* Generic functions: one call by type. */
#ifndef TIDEPOOL_BENCH_DISPATCH_H
#define TIDEPOOL_BENCH_DISPATCH_H

#include "bench.h"

extern const bench_variant *const bench_dispatch_3_variants[];
extern const bench_variant *const bench_dispatch_actors_variants[];
extern const bench_variant *const bench_dispatch_sweep_variants[];
extern const bench_variant *const bench_dispatch_random_variants[]; /* by the case's count */

/* Operations of a block are multiples of these. */
enum {
    BENCH_DISPATCH_3 = 3 * 256,
    BENCH_DISPATCH_ACTORS = 2 * 256,
    BENCH_DISPATCH_SWEEP = 100 * 10 * 256,
    BENCH_DISPATCH_RANDOM = 1 << 16 /* more than a branch predictor can remember */
};

#endif

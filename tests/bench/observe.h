/* SPDX-License-Identifier: MIT */
/* What learning costs a program that has settled. */
#ifndef TIDEPOOL_BENCH_OBSERVE_H
#define TIDEPOOL_BENCH_OBSERVE_H

#include "bench.h"

enum { BENCH_OBSERVE_SCOPES = 1 << (22 - BENCH_SHORTER), BENCH_OBSERVE_JOBS = 32 };

extern const bench_variant *const bench_observe_variants[];
extern const bench_variant *const
    *const bench_observe_columns_variants; /* NULL: not in this build */
void bench_observe_before(void *state);
void bench_observe_after(void *state);

#endif

/* SPDX-License-Identifier: MIT */
/* The variants of huge-touch-N and huge-random-N. */
#ifndef TIDEPOOL_BENCH_HUGE_H
#define TIDEPOOL_BENCH_HUGE_H

#include "bench.h"

extern const bench_variant *const bench_huge_touch_variants[];
extern const bench_variant *const bench_huge_random_variants[];

#endif

/* SPDX-License-Identifier: MIT */
/* The variants of nested-frames-N, nested-mixed-4 and recursion. */
#ifndef TIDEPOOL_BENCH_NESTED_H
#define TIDEPOOL_BENCH_NESTED_H

#include "bench.h"

extern const bench_variant *const bench_nested_2_variants[];
extern const bench_variant *const bench_nested_4_variants[];
extern const bench_variant *const bench_nested_8_variants[];
extern const bench_variant *const bench_nested_mixed_variants[];
extern const bench_variant *const bench_recursion_variants[];

enum { BENCH_RECURSION = 8, BENCH_MIXED = 4 }; /* how deep */

#endif

/* SPDX-License-Identifier: MIT */
/* The variants of types-N. */
#ifndef TIDEPOOL_BENCH_TYPES_H
#define TIDEPOOL_BENCH_TYPES_H

#include "bench.h"

enum { BENCH_TYPES_MAX = 256 };

extern const bench_variant *const bench_types_variants[];

#endif

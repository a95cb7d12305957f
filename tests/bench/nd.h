/* SPDX-License-Identifier: MIT */
/* The variants of nd, and of nd-turns, where shapes take turns. */
#ifndef TIDEPOOL_BENCH_ND_H
#define TIDEPOOL_BENCH_ND_H

#include "bench.h"

extern const bench_variant *const bench_nd_variants[];
extern const bench_variant *const bench_nd_turns_variants[];

#endif

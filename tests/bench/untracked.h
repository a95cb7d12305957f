/* SPDX-License-Identifier: MIT */
/* The variants of untracked. */
#ifndef TIDEPOOL_BENCH_UNTRACKED_H
#define TIDEPOOL_BENCH_UNTRACKED_H

#include "bench.h"

extern const bench_variant *const bench_untracked_variants[];

#endif

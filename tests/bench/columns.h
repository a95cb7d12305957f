/* SPDX-License-Identifier: MIT */
/* The variants of columns and of checks; NULL in a build without the examples. */
#ifndef TIDEPOOL_BENCH_COLUMNS_H
#define TIDEPOOL_BENCH_COLUMNS_H

#include "bench.h"

extern const bench_variant *const *const bench_columns_variants;
extern const bench_variant *const *const bench_checks_variants;
extern const bench_variant *const bench_columns_tide;

#endif

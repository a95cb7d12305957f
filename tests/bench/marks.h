/* SPDX-License-Identifier: MIT */
/* The variants of marks, ffi and types-unused. */
#ifndef TIDEPOOL_BENCH_MARKS_H
#define TIDEPOOL_BENCH_MARKS_H

#include "bench.h"

extern const bench_variant *const bench_marks_variants[];
extern const bench_variant *const bench_ffi_variants[];
extern const bench_variant *const bench_unused_variants[];

#endif

/* SPDX-License-Identifier: MIT */
/* The variants of each case, up to NULL: each list stands in the file that is named after its case. */
#ifndef TIDEPOOL_BENCH_CASES_H
#define TIDEPOOL_BENCH_CASES_H

#include "bench.h"

enum {
    BENCH_NESTED = 8, /* how deep */
    BENCH_MIXED = 4,
    BENCH_PROGRAM_INPUTS = 4,       /* in turn */
    BENCH_DISPATCH_3 = 3 * 256,     /* operations of a block are multiples of these */
    BENCH_DISPATCH_RANDOM = 1 << 16 /* more than a branch predictor can remember */
};

extern const bench_variant *const bench_nested_8_variants[];
extern const bench_variant *const bench_nested_mixed_variants[];
extern const bench_variant *const bench_codec_variants[];
extern const bench_variant *const bench_fft_variants[];
extern const bench_variant *const bench_request_variants[];
extern const bench_variant *const bench_dispatch_3_variants[];
extern const bench_variant *const bench_dispatch_random_variants[]; /* by the case's count */

/* Looks, in a process of its own, whether there is a device; else the variants are missing. */
void bench_device_cuda_prepare(void);

extern const bench_variant *const bench_device_cuda_scope_variants[];
extern const bench_variant *const bench_device_cuda_rewind_variants[];
extern const bench_variant *const bench_device_cuda_fill_variants[];
extern const bench_variant *const bench_device_cuda_large_variants[];

#endif

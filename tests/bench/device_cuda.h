/* SPDX-License-Identifier: MIT */
/* Cases on a CUDA device: pools of the library against the driver's stream-ordered allocator. */
#ifndef TIDEPOOL_BENCH_DEVICE_CUDA_H
#define TIDEPOOL_BENCH_DEVICE_CUDA_H

#include "bench.h"

/* Looks, in a process of its own, whether there is a device; else the variants are missing. */
void bench_device_cuda_prepare(void);

extern const bench_variant *const bench_device_cuda_scope_variants[];
extern const bench_variant *const bench_device_cuda_rewind_variants[];
extern const bench_variant *const bench_device_cuda_fill_variants[];
extern const bench_variant *const bench_device_cuda_large_variants[];

#endif

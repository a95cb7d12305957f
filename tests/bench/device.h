/* SPDX-License-Identifier: MIT */
/* Cases on an OpenCL device: pools of the library against the driver's own calls. */
#ifndef TIDEPOOL_BENCH_DEVICE_H
#define TIDEPOOL_BENCH_DEVICE_H

#include "bench.h"

/* Looks, in a process of its own, whether there is a device; else the variants are missing. */
void bench_device_prepare(void);

extern const bench_variant *const bench_device_fill_variants[];    /* four arrays of 1 MiB filled */
extern const bench_variant *const bench_device_acquire_variants[]; /* one array of 1 MiB */
extern const bench_variant *const bench_device_buffers_variants[]; /* a buffer of 1 MiB */
extern const bench_variant *const bench_device_scope_variants[];   /* 32 arrays of 4 KiB */

#endif

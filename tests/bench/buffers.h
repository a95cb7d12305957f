/* SPDX-License-Identifier: MIT */
/* buffers-threads-N: one buffer acquired and released, in N threads that share one instance. */
#ifndef TIDEPOOL_BENCH_BUFFERS_H
#define TIDEPOOL_BENCH_BUFFERS_H

#include "bench.h"

extern const bench_variant *const bench_buffers_variants[];

#endif

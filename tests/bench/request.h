/* SPDX-License-Identifier: MIT */
/* The variants of request. */
#ifndef TIDEPOOL_BENCH_REQUEST_H
#define TIDEPOOL_BENCH_REQUEST_H

#include "bench.h"

extern const bench_variant *const bench_request_variants[];

#endif

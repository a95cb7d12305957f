/* SPDX-License-Identifier: MIT */
/* The variants of after-request. */
#ifndef TIDEPOOL_BENCH_AFTER_REQUEST_H
#define TIDEPOOL_BENCH_AFTER_REQUEST_H

#include "bench.h"

extern const bench_variant *const bench_after_request_variants[];

#endif

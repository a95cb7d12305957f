/* SPDX-License-Identifier: MIT */
/* The variants of sites-N. */
#ifndef TIDEPOOL_BENCH_SITES_H
#define TIDEPOOL_BENCH_SITES_H

#include "bench.h"

/* At most; the others divide it. Under a sanitizer, the compiler would take minutes for 200. */
#if BENCH_SANITIZED
enum { BENCH_CALL_SITES = 8 };
#else
enum { BENCH_CALL_SITES = 200 };
#endif

extern const bench_variant *const bench_sites_variants[];

#endif

/* SPDX-License-Identifier: MIT */
/* buffers-…: patterns of allocation, by buffers and by each malloc, each in a process of its own
 * (patterns/main.c). */
#ifndef TIDEPOOL_BENCH_PATTERNS_CASES_H
#define TIDEPOOL_BENCH_PATTERNS_CASES_H

#include "bench.h"

typedef struct bench_pattern {
    const char *name; /* of the case: "buffers-" and the pattern's */
    const char *about;
    uint64_t step;
} bench_pattern;

extern const bench_pattern bench_patterns[]; /* up to a NULL name */
extern const bench_variant *const bench_patterns_variants[];

#endif

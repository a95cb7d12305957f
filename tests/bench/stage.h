/* SPDX-License-Identifier: MIT */
/* From a decision to its publication, and what the loop feels of it. */
#ifndef TIDEPOOL_BENCH_STAGE_H
#define TIDEPOOL_BENCH_STAGE_H

#include "bench.h"

enum { BENCH_STAGE_SITES = 16, BENCH_STAGE_TAIL = 1 << (18 - BENCH_SHORTER) };

extern const bench_variant *const bench_stage_variants[];
void bench_stage_before(void *state);
void bench_stage_after(void *state);

extern const bench_variant *const bench_stage_tail_variants[];
void bench_stage_tail_before(void *state);
void bench_stage_tail_after(void *state);

#endif

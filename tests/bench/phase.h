/* SPDX-License-Identifier: MIT */
/* Types that change every so many calls. */
#ifndef TIDEPOOL_BENCH_PHASE_H
#define TIDEPOOL_BENCH_PHASE_H

#include "bench.h"

enum { BENCH_PHASES = 4 };

extern const bench_variant *const bench_phase_variants[];
void bench_phase_before(void *state);
void bench_phase_after(void *state);

#endif

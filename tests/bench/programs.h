/* SPDX-License-Identifier: MIT */
/* The variants of program-codec and program-fft. */
#ifndef TIDEPOOL_BENCH_PROGRAMS_H
#define TIDEPOOL_BENCH_PROGRAMS_H

#include "bench.h"

enum { BENCH_PROGRAM_INPUTS = 4 }; /* in turn */

extern const bench_variant *const bench_codec_variants[];
extern const bench_variant *const bench_fft_variants[];

#endif

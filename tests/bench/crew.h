/* SPDX-License-Identifier: MIT */
/* A crew: the same variant in N threads at once, each with a state made in its own thread. */
#ifndef TIDEPOOL_BENCH_CREW_H
#define TIDEPOOL_BENCH_CREW_H

#include "bench.h"

typedef struct bench_crew bench_crew;

/* NULL when a thread could not set its state up. */
bench_crew *bench_crew_start(const bench_case *job, const bench_variant *variant, uint64_t proof);

/* Every thread runs one block; nanoseconds of the slowest. */
double bench_crew_run(bench_crew *crew, uint64_t operations);

/* Verifies in each thread, and ends them. False when one was not what its name says. */
bool bench_crew_end(bench_crew *crew, uint64_t operations);

#endif

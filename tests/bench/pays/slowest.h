/* SPDX-License-Identifier: MIT */
/* The slowest of ten million scopes of a process, with learning and without. */
#ifndef TIDEPOOL_BENCH_PAYS_SLOWEST_H
#define TIDEPOOL_BENCH_PAYS_SLOWEST_H

#include <stdbool.h>

/* The process: makes its pool, times each scope, writes the nanoseconds of the slowest one. 0, or
 * 1: something failed. */
int pays_slowest_run(const char *how, const char *scopes);

/* Runs so many rounds of such processes, in turns, and prints least, median and most of each way.
 * False: one of them failed. `self` is this program. */
bool pays_slowest_compare(int rounds, const char *scopes, const char *self);

#endif

/* SPDX-License-Identifier: MIT */
/* Sites whose code is compiled for real before it is measured, and the proof that it is what runs.
 *
 * Everything is stepped by hand: no background thread runs while something is timed. */
#ifndef TIDEPOOL_BENCH_COMPILED_H
#define TIDEPOOL_BENCH_COMPILED_H

#include "bench.h"

#include <tidepool/tidepool.h>

/* Why a variant that wants compiled code cannot run in this build; NULL: it can. */
#if BENCH_HAVE_STAGER
#define BENCH_MISSING_STAGER NULL
#else
#define BENCH_MISSING_STAGER "no stager: libgccjit was not found"
#endif

enum { BENCH_SITES_MAX = 200, BENCH_SETTLE_MS = 60000 };

typedef struct bench_compiled {
    tide_site *sites[BENCH_SITES_MAX];
    size_t count;
    uint64_t misses; /* of all of them, when last looked at */
    double may_miss; /* an operation, at most, where that is the case's subject */
} bench_compiled;

/* Uses each of the sites so many times. */
typedef void bench_use_function(void *state, uint64_t operations);

/* Sets the settings of the whole run: no background thread, no limits that only slow a measurement down. Says
 * where the stager is, unless the environment does. Once, first of all. */
void bench_learning_prepare(void);

/* The static site of that name; dies when there is none. */
tide_site *bench_site_named(const char *name);

/* The static sites of one kind in a function (__FILE__, its name), in order of discovery; dies
 * unless there are exactly so many. */
void bench_sites_in(const char *file, const char *function, tide_kind kind, tide_site **out,
                    size_t count);

/* Sets a setting and gives what it was. Dies when it cannot. */
double bench_tune(const char *name, double value);

/* Has the sites compiled, without a trial, as the profile of their use says (or their declared
 * types), and pins them there. `counting`: the code counts its executions. Dies when that does not
 * come about, with what was last decided. Does nothing when they are so already. */
void bench_compile(bench_compiled *c, bench_use_function *use, void *state, uint64_t operations,
                   bool counting);

/* For sites compiled to count: dies unless each was executed as compiled code once for every
 * operation, but for `slack` of them (the first touches of a loop). */
void bench_prove_executed(const bench_compiled *c, bench_use_function *use, void *state,
                          uint64_t operations, uint64_t slack);

/* From here on no guard may fail. */
void bench_compiled_warm(bench_compiled *c);

/* Each site still runs code of an object that was loaded for it, which does not
 * count, and no guard failed that should not; else false, with bench_complain. */
bool bench_compiled_verify(const bench_compiled *c, uint64_t operations);

#endif

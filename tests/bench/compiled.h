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

typedef struct bench_compiled {
    tide_site *site; /* NULL: the variant has none */
    uint64_t misses; /* of it, when last looked at */
    double may_miss; /* an operation, at most, where that is the case's subject */
} bench_compiled;

/* Uses the site so many times. */
typedef void bench_use_function(void *state, uint64_t operations);

/* Sets the settings of the whole run: no background thread, no limits that only slow a measurement down. Says
 * where the stager is, unless the environment does. Once, first of all. */
void bench_learning_prepare(void);

/* The static site of that name; dies when there is none. */
tide_site *bench_site_named(const char *name);

/* Sets a setting and gives what it was. Dies when it cannot. */
double bench_tune(const char *name, double value);

/* Has the site compiled (a dispatch: has it get its table), without a trial, as the profile of its use
 * says (or its declared types), and pins it there. `counting`: the code counts its executions. Dies when
 * that does not come about, with what was last decided. Does nothing when it is so already. */
void bench_compile(tide_site *site, bench_use_function *use, void *state, uint64_t operations,
                   bool counting);

/* For a site compiled to count: dies unless it was executed as compiled code once for every
 * operation. */
void bench_prove_executed(tide_site *site, bench_use_function *use, void *state,
                          uint64_t operations);

/* From here on no guard may fail. */
void bench_compiled_warm(bench_compiled *c);

/* The site still runs code of an object that was loaded for it (a dispatch: its table), which does not
 * count, and no guard failed that should not; else false, with bench_complain. */
bool bench_compiled_verify(const bench_compiled *c, uint64_t operations);

#endif

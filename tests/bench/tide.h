/* SPDX-License-Identifier: MIT */
/* A pool under measurement, and the checks that a tide-* variant is what its name says. */
#ifndef TIDEPOOL_BENCH_TIDE_H
#define TIDEPOOL_BENCH_TIDE_H

#include "bench.h"
#include "compiled.h"

#include <tidepool/tidepool.h>

typedef struct bench_tide {
    const bench_sizes *sizes;
    tide_pool *pool;
    tide_site *site;           /* NULL: the variant has none */
    tide_tier tier;            /* where the site was pinned  */
    bench_compiled compiled;   /* its site, if that is compiled  */
    tide_pool_statistics warm; /* after the last proof       */
} bench_tide;

/* BENCH_SCOPE4 for bodies that see `pool`. */
#define BENCH_POOL             tide_pool *const pool = s->pool;
#define BENCH_TIDE4(name, ...) BENCH_SCOPE4_IN(BENCH_FOR, BENCH_POOL, name, bench_tide, __VA_ARGS__)

/* A pool with sixteen types in use; or one that is disabled. */
bench_tide *bench_tide_make(const bench_case *job, bool disabled);

/* Remembers the pool's counters: from here on nothing may be allocated. */
void bench_tide_warm(bench_tide *s);

/* Still at its tier, nothing allocated since, nothing left live. */
bool bench_tide_verify(void *state, uint64_t operations);
size_t bench_tide_figures(void *state, uint64_t operations, bench_figure *out, size_t room);
void bench_tide_free(void *state);

extern const bench_variant bench_tide_full;
extern const bench_variant bench_tide_table;
extern const bench_variant bench_tide_compiled;
extern const bench_variant bench_tide_types;
extern const bench_variant bench_tide_frame;
extern const bench_variant bench_tide_loop;
extern const bench_variant bench_tide_disabled;

#endif

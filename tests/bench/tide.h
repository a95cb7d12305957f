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
    bench_compiled compiled;   /* its sites, if that is compiled */
    tide_pool_statistics warm; /* after the last proof       */
} bench_tide;

enum { BENCH_SHELVES = 16 };

/* BENCH_SCOPE4 for bodies that see `pool`. */
#define BENCH_POOL             tide_pool *const pool = s->pool;
#define BENCH_TIDE4(name, ...) BENCH_SCOPE4_IN(BENCH_FOR, BENCH_POOL, name, bench_tide, __VA_ARGS__)

/* A pool with the first `shelves` of the given types in use; the built-in ones when types is NULL.
 */
bench_tide *bench_tide_make(const bench_case *job, const tide_type *types, uint32_t shelves,
                            bool disabled);

/* Finds the static site of that name, tells it the types and pins it. Dies when it cannot. */
void bench_tide_pin(bench_tide *s, const char *site, tide_tier tier, const tide_type *types,
                    size_t count);

/* A site, and what uses it. */
typedef struct bench_twin {
    tide_site *site;
    bench_use_function *use;
} bench_twin;

/* Has the timed site compiled, told of the types (none: as its use shows), and the other one, which
 * is the same but for counting, to prove that compiled code is what runs: all but `slack` of 256
 * uses. */
void bench_tide_compile(bench_tide *s, bench_twin timed, bench_twin counted, const tide_type *types,
                        size_t count, uint64_t slack);

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

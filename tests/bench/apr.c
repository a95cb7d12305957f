/* SPDX-License-Identifier: MIT */
/* The Apache Portable Runtime's pool: one pool, cleared at the end of each operation. */
#include "peers.h"
#include "scope4.h"

#if BENCH_HAVE_APR

#include <apr_general.h>
#include <apr_pools.h>

typedef struct apr_state {
    const bench_sizes *sizes;
    apr_pool_t *pool;
} apr_state;

static void *apr_setup(const bench_case *job)
{
    apr_state *s = bench_state_make(sizeof *s);
    s->sizes = job->sizes;
    if (apr_initialize() == APR_SUCCESS && apr_pool_create(&s->pool, NULL) == APR_SUCCESS)
        return s;
    bench_complain("apr: no pool");
    return NULL;
}

static bool apr_verify(void *state, uint64_t operations)
{
    (void)operations;
    return ((apr_state *)state)->pool != NULL;
}

static void apr_teardown(void *state)
{
    apr_pool_destroy(((apr_state *)state)->pool);
    apr_terminate();
    bench_state_free(state, sizeof(apr_state));
}

/* clang-format off */
BENCH_SCOPE4(apr, apr_state,
    double *a = apr_palloc(s->pool, n->count[0] * sizeof *a);
    int32_t *b = apr_palloc(s->pool, n->count[1] * sizeof *b);
    double *c = apr_palloc(s->pool, n->count[2] * sizeof *c);
    int32_t *d = apr_palloc(s->pool, n->count[3] * sizeof *d);
    BENCH_USE(a, b, c, d);
    apr_pool_clear(s->pool);
)
/* clang-format on */

const bench_variant bench_apr = {"apr",   NULL,       apr_setup,    apr_prove,
                                 apr_run, apr_verify, apr_teardown, NULL};

#else

const bench_variant bench_apr = {.name = "apr", .missing = "built without libapr1-dev"};

#endif

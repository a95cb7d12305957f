/* SPDX-License-Identifier: MIT */
/* talloc: a context of its own for each operation, out of a talloc pool, freed with its arrays. */
#include "peers.h"
#include "scope4.h"

#if BENCH_HAVE_TALLOC

#include <talloc.h>

enum { POOL_BYTES = 4 * 1024 * 1024 };

typedef struct talloc_state {
    const bench_sizes *sizes;
    void *pool;
} talloc_state;

static void *talloc_setup(const bench_case *job)
{
    talloc_state *s = bench_state_make(sizeof *s);
    s->sizes = job->sizes;
    s->pool = talloc_pool(NULL, POOL_BYTES);
    if (s->pool != NULL)
        return s;
    bench_complain("talloc: no pool");
    return NULL;
}

/* The context and four arrays per operation are gone: the pool has no child left. */
static bool talloc_verify(void *state, uint64_t operations)
{
    (void)operations;
    size_t blocks = talloc_total_blocks(((talloc_state *)state)->pool);
    if (blocks != 1)
        bench_complain("talloc: %zu blocks are left in the pool", blocks);
    return blocks == 1;
}

static void talloc_teardown(void *state)
{
    talloc_free(((talloc_state *)state)->pool);
    bench_state_free(state, sizeof(talloc_state));
}

/* clang-format off */
BENCH_SCOPE4(talloc, talloc_state,
    void *context = talloc_new(s->pool);
    double *a = talloc_array(context, double, n->count[0]);
    int32_t *b = talloc_array(context, int32_t, n->count[1]);
    double *c = talloc_array(context, double, n->count[2]);
    int32_t *d = talloc_array(context, int32_t, n->count[3]);
    BENCH_USE(a, b, c, d);
    talloc_free(context);
)
/* clang-format on */

const bench_variant bench_talloc = {"talloc",   NULL,          talloc_setup,    talloc_prove,
                                    talloc_run, talloc_verify, talloc_teardown, NULL};

#else

const bench_variant bench_talloc = {.name = "talloc", .missing = "built without libtalloc-dev"};

#endif

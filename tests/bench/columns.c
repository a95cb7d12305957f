/* SPDX-License-Identifier: MIT */
/* columns: a whole program's work, the default job of examples/columns, with its temporaries
 * from different places. All variants run the same job over the same table. */
#include "columns.h"

#if BENCH_HAVE_COLUMNS

#include "peers.h"
#include "tide.h"

#include <columns/engine.h>
#include <string.h>

enum { TIMES = 100 }; /* 11 800 rows: a millisecond or two */

/* One job for all, so that no variant has a table that lies better in the caches. */
static struct {
    columns_job *job;
    columns_table *expected; /* by the first run, from malloc */
    uint32_t users;
} shared;

typedef struct columns_state {
    columns_table *(*run)(struct columns_state *s, columns_error *error);
    columns_heap heap;
    columns_region region;
    tide_pool *pool;
    tide_pool_statistics warm;
} columns_state;

static void must(const void *result, const columns_error *error)
{
    if (result == NULL)
        bench_die("columns: %s", error->text);
}

static void share(void)
{
    columns_error error = {""};
    const bench_malloc *glibc = bench_malloc_find("glibc");
    if (shared.users++ > 0)
        return;
    shared.job = columns_default_job(TIMES, &error);
    must(shared.job, &error);
    shared.expected =
        columns_run_heap(shared.job, &(columns_heap){glibc->take, glibc->give}, &error);
    must(shared.expected, &error);
}

static void unshare(void)
{
    if (--shared.users > 0)
        return;
    columns_table_destroy(shared.expected);
    columns_job_destroy(shared.job);
}

static columns_state *make(columns_table *(*run)(columns_state *, columns_error *))
{
    columns_state *s = bench_state_make(sizeof *s);
    share();
    s->run = run;
    return s;
}

static columns_table *run_heap(columns_state *s, columns_error *error)
{
    return columns_run_heap(shared.job, &s->heap, error);
}

static columns_table *run_static(columns_state *s, columns_error *error)
{
    return columns_run_static(shared.job, &s->region, error);
}

static columns_table *run_tide(columns_state *s, columns_error *error)
{
    return columns_run_tide(shared.job, s->pool, error);
}

static void *heap_setup(const char *name)
{
    const bench_malloc *peer = bench_malloc_find(name);
    if (peer == NULL)
        return NULL;
    columns_state *s = make(run_heap);
    s->heap = (columns_heap){peer->take, peer->give};
    return s;
}

static void *static_setup(const bench_case *job)
{
    (void)job;
    columns_error error = {""};
    columns_state *s = make(run_static);
    s->region.bytes = columns_region_need(shared.job, &error);
    must(s->region.bytes > 0 ? s : NULL, &error);
    s->region.memory = bench_allocate(s->region.bytes); /* page-aligned */
    return s;
}

static void *tide_setup(const bench_case *job)
{
    tide_pool_options options = {.name = job->name, .check = TIDE_CHECK_NONE};
    columns_state *s = make(run_tide);
    s->pool = tide_pool_create(&options);
    if (s->pool == NULL)
        bench_die("%s", tide_error_message());
    return s;
}

static void prove(void *state, uint64_t operations)
{
    columns_state *s = state;
    columns_error error = {""};
    for (uint64_t i = 0; i < operations; i++) {
        columns_table *result = s->run(s, &error);
        must(result, &error);
        if (!columns_table_equal(result, shared.expected))
            bench_die("columns: the variants disagree");
        columns_table_destroy(result);
    }
    if (s->pool != NULL)
        tide_pool_stats(s->pool, &s->warm);
}

static uint64_t run(void *state, uint64_t operations)
{
    columns_state *s = state;
    columns_error error = {""};
    uint64_t done = 0;
    for (; done < operations; done++) {
        columns_table *result = s->run(s, &error);
        must(result, &error);
        columns_table_destroy(result);
    }
    return done;
}

static bool verify(void *state, uint64_t operations)
{
    columns_state *s = state;
    tide_pool_statistics now;
    (void)operations;
    if (s->pool == NULL)
        return true;
    if (tide_pool_stats(s->pool, &now) == TIDE_OK && now.allocations == s->warm.allocations &&
        now.depth == 0 && now.slots_live == 0)
        return true;
    bench_complain("columns: %llu allocations after the warm-up",
                   (unsigned long long)(now.allocations - s->warm.allocations));
    return false;
}

static void teardown(void *state)
{
    columns_state *s = state;
    if (s->pool != NULL)
        tide_pool_destroy(s->pool);
    bench_release(s->region.memory, s->region.bytes);
    bench_state_free(s, sizeof *s);
    unshare();
}

#define HEAP_VARIANT(peer)                           \
    static void *peer##_setup(const bench_case *job) \
    {                                                \
        (void)job;                                   \
        return heap_setup(#peer);                    \
    }                                                \
    static const bench_variant variant_##peer = {    \
        #peer, BENCH_MISSING_##peer, peer##_setup, prove, run, verify, teardown, NULL};
HEAP_VARIANT(glibc)
HEAP_VARIANT(jemalloc)
HEAP_VARIANT(mimalloc)
HEAP_VARIANT(tcmalloc)

static const bench_variant variant_static = {"static", NULL,   static_setup, prove,
                                             run,      verify, teardown,     NULL};
static const bench_variant variant_tide = {"tide", NULL,   tide_setup, prove,
                                           run,    verify, teardown,   NULL};

static const bench_variant *const variants[] = {
    &variant_static, &variant_glibc, &variant_jemalloc, &variant_mimalloc, &variant_tcmalloc,
    &variant_tide,   NULL,
};
const bench_variant *const *const bench_columns_variants = variants;

#else

const bench_variant *const *const bench_columns_variants = NULL;

#endif

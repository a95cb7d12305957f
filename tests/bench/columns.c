/* SPDX-License-Identifier: MIT */
/* columns: a whole program's work, the default job of examples/columns, with its temporaries
 * from different places. All variants run the same job over the same table. */
#include "cases.h"

#if BENCH_HAVE_COLUMNS

#include "peers.h"
#include "tide.h"

#include <columns/columns.h>
#include <string.h>

#include <tidepool/check.h>
#include <tidepool/tune.h>

enum {
    TIMES = 100,      /* 11 800 rows: a few milliseconds */
    SAMPLE = 1000,    /* checks: one array in so many is guarded */
    REGION = 16 << 20 /* static: more than any run needs */
};

/* One job for all, so that no variant has a table that lies better in the caches. */
static struct {
    columns_job *job;
    columns_table *expected; /* by the first run, from malloc */
    uint32_t users;
} shared;

typedef struct columns_state {
    columns_table *(*run)(struct columns_state *s, columns_error *error);
    columns_source from;
    tide_pool *pool;
    tide_check check;
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
    shared.job =
        columns_job_create(columns_table_load(NULL, TIMES, &error), columns_default_query, &error);
    must(shared.job, &error);
    shared.expected = columns_run_heap(
        shared.job, &(columns_source){.allocate = glibc->take, .release = glibc->give}, &error);
    must(shared.expected, &error);
}

static bool same_value(const columns_vector *a, const columns_vector *b, size_t row)
{
    if (a->kind != b->kind || a->nulls[row] != b->nulls[row])
        return false;
    columns_value x = columns_value_at(a, row), y = columns_value_at(b, row);
    if (a->nulls[row] || a->kind != TEXT)
        return a->nulls[row] || memcmp(&x, &y, columns_width(a->kind)) == 0;
    return x.text.start == y.text.start && x.text.length == y.text.length;
}

/* Bit by bit. */
static bool same_table(const columns_table *a, const columns_table *b)
{
    bool same = a->rows == b->rows && a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++)
        for (size_t row = 0; same && row < a->rows; row++)
            same = same_value(&a->columns[i], &b->columns[i], row);
    return same;
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
    return columns_run_heap(shared.job, &s->from, error);
}

static columns_table *run_static(columns_state *s, columns_error *error)
{
    return columns_run_static(shared.job, &s->from, error);
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
    s->from = (columns_source){.allocate = peer->take, .release = peer->give};
    return s;
}

static void *static_setup(const bench_case *job)
{
    (void)job;
    columns_state *s = make(run_static);
    s->from = (columns_source){.region = bench_allocate(REGION), .bytes = REGION};
    return s;
}

static columns_state *make_pool(const bench_case *job, tide_check check)
{
    tide_pool_options options = {.name = job->name, .check = check};
    columns_state *s = make(run_tide);
    s->check = check;
    s->pool = tide_pool_create(&options);
    if (s->pool == NULL)
        bench_die("%s", tide_error_message());
    return s;
}

static void *tide_setup(const bench_case *job)
{
    return make_pool(job, TIDE_CHECK_NONE);
}

static void *poison_setup(const bench_case *job)
{
    return make_pool(job, TIDE_CHECK_POISON);
}

/* The setting counts where a pool is created. */
static void *sampled_setup(const bench_case *job)
{
    double before = 1;
    if (tide_tune_get("guard_sample", &before) != TIDE_OK ||
        tide_tune_set("guard_sample", SAMPLE) != TIDE_OK)
        bench_die("%s", tide_error_message());
    columns_state *s = make_pool(job, TIDE_CHECK_GUARD);
    tide_tune_set("guard_sample", before);
    return s;
}

static void prove(void *state, uint64_t operations)
{
    columns_state *s = state;
    columns_error error = {""};
    for (uint64_t i = 0; i < operations; i++) {
        columns_table *result = s->run(s, &error);
        must(result, &error);
        if (!same_table(result, shared.expected))
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

static bool quiet(tide_report_kind kind, const char *text, void *user)
{
    (void)text;
    *(bool *)user = kind == TIDE_REPORT_ESCAPE;
    return false;
}

/* Does the pool see what leaves a scope? Any level but 0 does. */
static bool checks(tide_pool *pool)
{
    bool seen = false;
    TIDE_SCOPE_TYPES(pool, double);
    double *inside = tide_acquire(pool, double, 1);
    tide_report_set_handler(quiet, &seen);
    bool escapes = !tide_escape_check(inside);
    tide_report_set_handler(NULL, NULL);
    return escapes && seen;
}

static bool verify(void *state, uint64_t operations)
{
    columns_state *s = state;
    tide_pool_statistics now;
    (void)operations;
    if (s->pool == NULL)
        return true;
    if (checks(s->pool) != (s->check != TIDE_CHECK_NONE)) {
        bench_complain("columns: the pool is not at its check level");
        return false;
    }
    if (tide_pool_stats(s->pool, &now) == TIDE_OK && now.depth == 0 && now.slots_live == 0 &&
        (s->check == TIDE_CHECK_GUARD || now.allocations == s->warm.allocations))
        return true;
    bench_complain("columns: %llu allocations after the warm-up",
                   (unsigned long long)(now.allocations - s->warm.allocations));
    return false;
}

/* Each guarded array is an allocation of its own. */
static size_t guarded(void *state, uint64_t operations, bench_figure *out, size_t room)
{
    const columns_state *s = state;
    tide_pool_statistics now;
    if (room < 1 || tide_pool_stats(s->pool, &now) != TIDE_OK)
        return 0;
    out[0] = (bench_figure){"guarded",
                            (double)(now.allocations - s->warm.allocations) / (double)operations};
    return 1;
}

static void teardown(void *state)
{
    columns_state *s = state;
    if (s->pool != NULL)
        tide_pool_destroy(s->pool);
    bench_release(s->from.region, s->from.bytes);
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

static const bench_variant level_0 = {"level-0", NULL,   tide_setup, prove,
                                      run,       verify, teardown,   NULL};
static const bench_variant level_1 = {"level-1", NULL,   poison_setup, prove,
                                      run,       verify, teardown,     NULL};
static const bench_variant level_2_sampled = {
    "level-2-sampled", NULL, sampled_setup, prove, run, verify, teardown, guarded};

static const bench_variant *const levels[] = {&level_0, &level_1, &level_2_sampled, NULL};
const bench_variant *const *const bench_checks_variants = levels;

#else

const bench_variant *const *const bench_columns_variants = NULL;
const bench_variant *const *const bench_checks_variants = NULL;

#endif

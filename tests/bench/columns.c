/* SPDX-License-Identifier: MIT */
/* checks: a whole program's work, the default job of examples/columns, with a pool at each check
 * level. All variants run the same job over the same table. */
#include "cases.h"

#if BENCH_HAVE_COLUMNS

#include "peers.h"
#include "tide.h"

#include <columns/columns.h>
#include <string.h>

#include <tidepool/check.h>
#include <tidepool/tune.h>

enum {
    TIMES = 100,  /* 11 800 rows: a few milliseconds */
    SAMPLE = 1000 /* one array in so many is guarded */
};

/* One job for all, so that no variant has a table that lies better in the caches. */
static struct {
    columns_job *job;
    columns_table *expected; /* by the first run, from malloc */
    uint32_t users;
} shared;

typedef struct columns_state {
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

static columns_state *make_pool(const bench_case *job, tide_check check)
{
    tide_pool_options options = {.name = job->name, .check = check};
    columns_state *s = bench_state_make(sizeof *s);
    share();
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
        columns_table *result = columns_run_tide(shared.job, s->pool, &error);
        must(result, &error);
        if (!same_table(result, shared.expected))
            bench_die("columns: the variants disagree");
        columns_table_destroy(result);
    }
    tide_pool_stats(s->pool, &s->warm);
}

static uint64_t run(void *state, uint64_t operations)
{
    columns_state *s = state;
    columns_error error = {""};
    uint64_t done = 0;
    for (; done < operations; done++) {
        columns_table *result = columns_run_tide(shared.job, s->pool, &error);
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
    tide_pool_destroy(s->pool);
    bench_state_free(s, sizeof *s);
    unshare();
}

static const bench_variant level_0 = {"level-0", NULL,   tide_setup, prove,
                                      run,       verify, teardown,   NULL};
static const bench_variant level_1 = {"level-1", NULL,   poison_setup, prove,
                                      run,       verify, teardown,     NULL};
static const bench_variant level_2_sampled = {
    "level-2-sampled", NULL, sampled_setup, prove, run, verify, teardown, guarded};

static const bench_variant *const levels[] = {&level_0, &level_1, &level_2_sampled, NULL};
const bench_variant *const *const bench_checks_variants = levels;

#else

const bench_variant *const *const bench_checks_variants = NULL;

#endif

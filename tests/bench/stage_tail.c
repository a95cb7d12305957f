/* SPDX-License-Identifier: MIT */
/* stage-tail: what the slowest scopes of a loop take while other sites are compiled, against the
 * same loop while nothing is. Each scope is timed for itself, which costs about two readings of the
 * clock: ns per operation contain that, percentiles one of it. */
#include "stage.h"

#include "scope4.h"
#include "tide.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include <tidepool/callsite.h>
#include <tidepool/learn.h>
#include <tidepool/site.h>

enum { NS_MAX = 1 << 16 };

typedef struct tail_state {
    const bench_sizes *sizes;
    bench_tide *tide;
    tide_pool *pool;
    bool compiling;
    pthread_t feeder;
    atomic_bool end;
    uint64_t compiled; /* by the feeder, while the loop ran */
    uint64_t scopes, slowest;
    uint32_t counts[NS_MAX]; /* by nanoseconds; the last: or more */
} tail_state;

/* --- the loop ----------------------------------------------------------------------------- */

static void note(tail_state *s, double ns)
{
    uint64_t whole = (uint64_t)ns;
    s->counts[whole < NS_MAX ? whole : NS_MAX - 1]++;
    s->scopes++;
    if (whole > s->slowest)
        s->slowest = whole;
}

/* clang-format off */
BENCH_SCOPE4_IN(BENCH_FOR, BENCH_POOL, tail, tail_state,
    double started = bench_now();
    {
        TIDE_SCOPE_NAMED(pool, "stage tail");
        double *a = tide_acquire(pool, double, n->count[0]);
        int32_t *b = tide_acquire(pool, int32_t, n->count[1]);
        double *c = tide_acquire(pool, double, n->count[2]);
        int32_t *d = tide_acquire(pool, int32_t, n->count[3]);
        BENCH_USE(a, b, c, d);
    }
    note(s, bench_now() - started);
)
/* clang-format on */

/* --- the compiles ------------------------------------------------------------------------- */

static const tide_type sets[2][2] = {{TIDE_F32, TIDE_I64}, {TIDE_U8, TIDE_I16}};

/* Sixteen sites, again and again, each time others. */
static void *feed(void *state)
{
    static uint32_t made;
    tail_state *s = state;
    char name[32];
    tide_learning_statistics before, now;
    tide_learning_stats(&before);
    for (uint32_t turn = 0; turn == 0 || !atomic_load(&s->end); turn++) {
        for (int i = 0; i < BENCH_STAGE_SITES; i++) {
            snprintf(name, sizeof name, "stage tail %u", made++);
            tide_site *site = tide_site_register(name);
            if (site == NULL || tide_site_declare(site, sets[turn % 2], 2) != TIDE_OK)
                bench_die("%s", tide_error_message());
        }
        if (tide_settle(BENCH_SETTLE_MS) != TIDE_OK)
            bench_die("%s", tide_error_message());
    }
    tide_learning_stats(&now);
    s->compiled += now.compiled - before.compiled;
    return NULL;
}

void bench_stage_tail_before(void *state)
{
    tail_state *s = state;
    if (!s->compiling)
        return;
    atomic_store(&s->end, false);
    bench_tune("trial", 0);
    bench_tune("code_bytes", 1e12);
    if (pthread_create(&s->feeder, NULL, feed, s) != 0)
        bench_die("stage-tail: no thread");
}

void bench_stage_tail_after(void *state)
{
    tail_state *s = state;
    if (!s->compiling)
        return;
    atomic_store(&s->end, true);
    pthread_join(s->feeder, NULL);
    bench_tune("trial", 1);
}

/* --- the variants ------------------------------------------------------------------------- */

static void *make(const bench_case *job, bool compiling)
{
    static const tide_type both[] = {TIDE_F64, TIDE_I32};
    tail_state *s = bench_state_make(sizeof *s);
    s->sizes = job->sizes;
    s->tide = bench_tide_make(job, NULL, BENCH_SHELVES, false);
    s->pool = s->tide->pool;
    s->compiling = compiling;
    bench_tide_pin(s->tide, "stage tail", TIDE_TIER_TABLE, both, 2);
    return s;
}

static void *idle_setup(const bench_case *job)
{
    return make(job, false);
}

static void *compiling_setup(const bench_case *job)
{
    return make(job, true);
}

static void prove(void *state, uint64_t operations)
{
    tail_state *s = state;
    tail_prove(s, operations);
    s->scopes = s->slowest = 0;
    for (size_t i = 0; i < NS_MAX; i++)
        s->counts[i] = 0;
    bench_tide_warm(s->tide);
}

static bool verify(void *state, uint64_t operations)
{
    const tail_state *s = state;
    if (s->scopes == operations && (s->compiled != 0) == s->compiling)
        return bench_tide_verify(s->tide, operations);
    bench_complain("stage-tail: %llu scopes timed, %llu sites compiled meanwhile",
                   (unsigned long long)s->scopes, (unsigned long long)s->compiled);
    return false;
}

static double percentile(const tail_state *s, double part)
{
    uint64_t seen = 0;
    double wanted = part * (double)s->scopes;
    for (size_t ns = 0; ns < NS_MAX; ns++)
        if ((double)(seen += s->counts[ns]) >= wanted)
            return (double)ns;
    return NS_MAX;
}

static size_t percentiles(void *state, uint64_t operations, bench_figure *out, size_t room)
{
    const tail_state *s = state;
    (void)operations;
    if (room < 6)
        return 0;
    out[0] = (bench_figure){"p50", percentile(s, 0.5)};
    out[1] = (bench_figure){"p99", percentile(s, 0.99)};
    out[2] = (bench_figure){"p99_9", percentile(s, 0.999)};
    out[3] = (bench_figure){"p99_99", percentile(s, 0.9999)};
    out[4] = (bench_figure){"slowest", (double)s->slowest};
    out[5] = (bench_figure){"compiled", (double)s->compiled};
    return 6;
}

static void teardown(void *state)
{
    tail_state *s = state;
    bench_tide_free(s->tide);
    bench_state_free(s, sizeof *s);
}

static const bench_variant variant_idle = {"idle",   NULL,   idle_setup, prove,
                                           tail_run, verify, teardown,   percentiles};
static const bench_variant variant_compiling = {
    "compiling", BENCH_MISSING_STAGER, compiling_setup, prove, tail_run, verify,
    teardown,    percentiles};

const bench_variant *const bench_stage_tail_variants[] = {
    &variant_idle,
    &variant_compiling,
    NULL,
};

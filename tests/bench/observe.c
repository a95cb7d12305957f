/* SPDX-License-Identifier: MIT */
/* observe, observe-columns: the cost of learning to a program that has settled, at the default
 * rate, on scope4-small and on the columns example.
 *
 *   off       nothing is learned, no keeper runs
 *   on        the keeper runs, as it does by default
 *   observed  every use is observed: what one costs inside a window
 *
 * Windows are so rare that least and median times do not see them: `mean_ns` is over all blocks,
 * `cpu_ns` the processor time of the loop's own thread, which a busy machine disturbs less, and
 * `keeper_percent` what all other threads of the process took, of the time that passed. */
#define _GNU_SOURCE
#include "observe.h"

#include "columns.h"
#include "scope4.h"
#include "tide.h"

#include <string.h>
#include <time.h>

#include <tidepool/callsite.h>
#include <tidepool/learn.h>
#include <tidepool/profile.h>
#include <tidepool/site.h>

typedef enum learning { OFF, ON, OBSERVED } learning;

typedef struct observe_state {
    const bench_variant *job; /* what is done, and its state */
    void *state;
    learning mode;
    double wall, own, others, started, process, thread;
    tide_learning_statistics before;
    uint64_t windows;
    double learn;
} observe_state;

/* --- scope4-small with a site that is left alone ------------------------------------------- */

#define SITE "observe scope"

/* clang-format off */
BENCH_TIDE4(scope,
    TIDE_SCOPE_NAMED(pool, SITE);
    double *a = tide_acquire(pool, double, n->count[0]);
    int32_t *b = tide_acquire(pool, int32_t, n->count[1]);
    double *c = tide_acquire(pool, double, n->count[2]);
    int32_t *d = tide_acquire(pool, int32_t, n->count[3]);
    BENCH_USE(a, b, c, d);
)
/* clang-format on */

/* Learned as in any program, and then not pinned. */
static void *scope_setup(const bench_case *job)
{
    bench_tide *s = bench_tide_make(job, NULL, BENCH_SHELVES, false);
    bench_compiled site = {.sites = {bench_site_named(SITE)}, .count = 1};
    bench_compile(&site, scope_prove, s, BENCH_SIZES, false);
    if (tide_site_unpin(site.sites[0]) != TIDE_OK)
        bench_die("%s", tide_error_message());
    return s;
}

static void scope_proof(void *state, uint64_t operations)
{
    scope_prove(state, operations);
    bench_tide_warm(state);
}

static const bench_variant scope_job = {
    "scope", NULL, scope_setup, scope_proof, scope_run, bench_tide_verify, bench_tide_free, NULL};

/* --- around each block -------------------------------------------------------------------- */

static double seconds_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint64_t windows_now(void)
{
    tide_learning_statistics now;
    return tide_learning_stats(&now) == TIDE_OK ? now.windows : 0;
}

void bench_observe_before(void *state)
{
    observe_state *s = state;
    s->learn = bench_tune("learn", s->mode == ON);
    if (s->mode == ON && tide_background_start() != TIDE_OK)
        bench_die("%s", tide_error_message());
    if (s->mode == OBSERVED && tide_profile_observe(true) != TIDE_OK)
        bench_die("%s", tide_error_message());
    s->windows -= windows_now();
    s->started = seconds_of(CLOCK_MONOTONIC);
    s->process = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    s->thread = seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

void bench_observe_after(void *state)
{
    observe_state *s = state;
    double thread = seconds_of(CLOCK_THREAD_CPUTIME_ID) - s->thread;
    s->others += seconds_of(CLOCK_PROCESS_CPUTIME_ID) - s->process - thread;
    s->own += thread;
    s->wall += seconds_of(CLOCK_MONOTONIC) - s->started;
    s->windows += windows_now();
    if (s->mode == ON && tide_background_stop() != TIDE_OK)
        bench_die("%s", tide_error_message());
    if (s->mode == OBSERVED && tide_profile_observe(false) != TIDE_OK)
        bench_die("%s", tide_error_message());
    bench_tune("learn", s->learn);
}

/* --- the variants ------------------------------------------------------------------------- */

static void *make(const bench_case *job, learning mode, const bench_variant *what)
{
    observe_state *s = bench_state_make(sizeof *s);
    s->job = what;
    s->mode = mode;
    s->state = what->setup(job);
    if (s->state == NULL)
        bench_die("observe: %s could not be set up", what->name);
    return s;
}

static uint64_t run(void *state, uint64_t operations)
{
    const observe_state *s = state;
    return s->job->run(s->state, operations);
}

/* The sites of a whole program settle while it is stepped. */
static void prove(void *state, uint64_t operations)
{
    observe_state *s = state;
    for (int i = 0; i < 20; i++) {
        run(s, s->job == &scope_job ? BENCH_SIZES : 4);
        if (tide_step() != TIDE_OK || tide_settle(BENCH_SETTLE_MS) != TIDE_OK)
            bench_die("%s", tide_error_message());
    }
    s->job->prove(s->state, s->job == &scope_job ? BENCH_SIZES : 4);
    (void)operations;
    s->windows = 0;
    s->wall = s->own = s->others = 0;
}

static bool verify(void *state, uint64_t operations)
{
    const observe_state *s = state;
    return s->job->verify(s->state, operations);
}

static size_t costs(void *state, uint64_t operations, bench_figure *out, size_t room)
{
    const observe_state *s = state;
    if (room < 4)
        return 0;
    out[0] = (bench_figure){"mean_ns", s->wall * 1e9 / (double)operations};
    out[1] = (bench_figure){"cpu_ns", s->own * 1e9 / (double)operations};
    out[2] = (bench_figure){"keeper_percent", s->others / s->wall * 100};
    out[3] = (bench_figure){"windows_a_second", (double)s->windows / s->wall};
    return 4;
}

static void teardown(void *state)
{
    observe_state *s = state;
    s->job->teardown(s->state);
    bench_state_free(s, sizeof *s);
}

#define OBSERVE_VARIANT(job, name, label, mode, missing)   \
    static void *job##_##name##_setup(const bench_case *c) \
    {                                                      \
        return make(c, mode, job##_variant());             \
    }                                                      \
    static const bench_variant job##_##name = {            \
        label, missing, job##_##name##_setup, prove, run, verify, teardown, costs};

static const bench_variant *scopes_variant(void)
{
    return &scope_job;
}

OBSERVE_VARIANT(scopes, off, "off", OFF, BENCH_MISSING_STAGER)
OBSERVE_VARIANT(scopes, on, "on", ON, BENCH_MISSING_STAGER)
OBSERVE_VARIANT(scopes, observed, "observed", OBSERVED, BENCH_MISSING_STAGER)

const bench_variant *const bench_observe_variants[] = {
    &scopes_off,
    &scopes_on,
    &scopes_observed,
    NULL,
};

#if BENCH_HAVE_COLUMNS

static const bench_variant *jobs_variant(void)
{
    return bench_columns_tide;
}

OBSERVE_VARIANT(jobs, off, "off", OFF, BENCH_MISSING_STAGER)
OBSERVE_VARIANT(jobs, on, "on", ON, BENCH_MISSING_STAGER)
OBSERVE_VARIANT(jobs, observed, "observed", OBSERVED, BENCH_MISSING_STAGER)

static const bench_variant *const columns_variants[] = {&jobs_off, &jobs_on, &jobs_observed, NULL};
const bench_variant *const *const bench_observe_columns_variants = columns_variants;

#else

const bench_variant *const *const bench_observe_columns_variants = NULL;

#endif

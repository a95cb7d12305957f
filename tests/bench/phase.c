/* SPDX-License-Identifier: MIT */
/* phase-K: one site whose scopes touch two types, other two after every K scopes, four pairs in
 * turn.
 *
 *   tide-full      pinned to the general plan
 *   tide-table     told all eight types
 *   tide-stepped   it learns, one step every 256 scopes
 *   tide-keeper    it learns by the keeper, whose rounds are 10 ms apart
 *
 * A change is over when the site runs a plan that saves the two types of the phase and no others:
 * how many scopes and nanoseconds that took, of those changes after which it came about at all. */
#include "phase.h"
#include "compiled.h"

#include "scope4.h"
#include "tide.h"

#include <string.h>

#include <tidepool/callsite.h>
#include <tidepool/learn.h>
#include <tidepool/site.h>

enum { STEP_EVERY = 256, LOOK_EVERY = 4, PAIR = 2 };

static const tide_type pairs[BENCH_PHASES][PAIR] = {
    {TIDE_F64, TIDE_I32}, {TIDE_F32, TIDE_I64}, {TIDE_U8, TIDE_I16}, {TIDE_C64, TIDE_U32}};

typedef enum manner { FULL, TABLE, STEPPED, KEEPER } manner;

typedef struct phase_state {
    bench_tide *tide;
    tide_pool *pool;
    tide_site *site;
    manner mode;
    uint64_t length, at, phase; /* scopes of a phase, done in this one; phases so far */
    bool waiting;
    uint64_t fast, changes, uses; /* changes that were over, all changes; added up */
    double since, ns, paused;
    double break_even; /* the setting, between blocks */
    tide_learning_statistics warm;
    tide_site_information first;
} phase_state;

static tide_site_information ask(const tide_site *site)
{
    tide_site_information info;
    if (tide_site_info(site, &info) != TIDE_OK)
        bench_die("%s", tide_error_message());
    return info;
}

/* Does the plan in force fit the phase? Looks only at what a scope looks at. */
static bool is_fast(const phase_state *s, const tide_type *pair)
{
    const tide_plan *plan = __atomic_load_n(&s->site->plan, __ATOMIC_ACQUIRE);
    uint32_t found = 0;
    if (plan->tier == TIDE_TIER_FULL || plan->type_count != PAIR)
        return false;
    for (uint32_t i = 0; i < plan->type_count; i++)
        found += plan->types[i] == pair[0] || plan->types[i] == pair[1];
    return found == PAIR;
}

static void look(phase_state *s, const tide_type *pair)
{
    if (!s->waiting || !is_fast(s, pair))
        return;
    s->waiting = false;
    s->fast++;
    s->uses += s->at;
    s->ns += bench_now() - s->since;
}

static void change(phase_state *s)
{
    s->at = 0;
    s->phase++;
    s->changes++;
    s->waiting = s->mode == STEPPED || s->mode == KEEPER;
    s->since = bench_now();
}

/* --- one scope ---------------------------------------------------------------------------- */

BENCH_INLINE void use(tide_pool *pool, const tide_type *pair)
{
    double *a = tide_acquire_type(pool, pair[0], 64);
    double *b = tide_acquire_type(pool, pair[1], 64);
    a[0] = 1;
    b[0] = 2;
    __asm__ volatile("" : : "r"(a), "r"(b) : "memory");
}

/* A body for each variant, so that each has a site of its own. */
#define PHASE(name, label)                                       \
    static uint64_t name##_run(void *state, uint64_t operations) \
    {                                                            \
        phase_state *s = state;                                  \
        tide_pool *const pool = s->pool;                         \
        const tide_type *pair = pairs[s->phase % BENCH_PHASES];  \
        for (uint64_t i = 0; i < operations; i++) {              \
            {                                                    \
                TIDE_SCOPE_NAMED(pool, label);                   \
                use(pool, pair);                                 \
            }                                                    \
            if (++s->at % LOOK_EVERY == 0)                       \
                look(s, pair);                                   \
            if (s->mode == STEPPED && s->at % STEP_EVERY == 0)   \
                tide_step();                                     \
            if (s->at == s->length) {                            \
                change(s);                                       \
                pair = pairs[s->phase % BENCH_PHASES];           \
            }                                                    \
        }                                                        \
        return operations;                                       \
    }
PHASE(full, "phase full")
PHASE(table, "phase table")
PHASE(stepped, "phase stepped")
PHASE(keeper, "phase keeper")

/* --- the variants ------------------------------------------------------------------------- */

/* What passes between the blocks is no time of this variant. */
void bench_phase_before(void *state)
{
    phase_state *s = state;
    s->break_even = bench_tune("break_even", 1); /* as it is for programs */
    if (s->paused != 0)
        s->since += bench_now() - s->paused;
    if (s->mode == KEEPER && tide_background_start() != TIDE_OK)
        bench_die("%s", tide_error_message());
}

void bench_phase_after(void *state)
{
    phase_state *s = state;
    s->paused = bench_now();
    bench_tune("break_even", s->break_even);
    if (s->mode == KEEPER && tide_background_stop() != TIDE_OK)
        bench_die("%s", tide_error_message());
}

static phase_state *make(const bench_case *job, manner mode, const char *site)
{
    phase_state *s = bench_state_make(sizeof *s);
    s->tide = bench_tide_make(job, NULL, BENCH_SHELVES, false);
    s->pool = s->tide->pool;
    s->mode = mode;
    s->length = job->phase;
    s->site = bench_site_named(site);
    if (mode == FULL || mode == TABLE)
        bench_tide_pin(s->tide, site, mode == FULL ? TIDE_TIER_FULL : TIDE_TIER_TABLE, pairs[0],
                       BENCH_PHASES * PAIR);
    else if (tide_site_reset(s->site) != TIDE_OK) /* the lengths share it */
        bench_die("%s", tide_error_message());
    return s;
}

static void warm(phase_state *s)
{
    bench_tide_warm(s->tide);
    if (tide_learning_stats(&s->warm) != TIDE_OK)
        bench_die("%s", tide_error_message());
    s->first = ask(s->site);
    s->fast = s->changes = s->uses = 0;
    s->ns = 0;
    s->waiting = false; /* it begins in the middle of a phase */
}

static bool verify(void *state, uint64_t operations)
{
    const phase_state *s = state;
    if (s->changes == operations / s->length)
        return bench_tide_verify(s->tide, operations);
    bench_complain("phase: %llu changes in %llu scopes", (unsigned long long)s->changes,
                   (unsigned long long)operations);
    return false;
}

/* For each change, but for the first figure. */
static size_t changes(void *state, uint64_t operations, bench_figure *out, size_t room)
{
    const phase_state *s = state;
    tide_site_information now = ask(s->site);
    tide_learning_statistics stats;
    double each = (double)s->changes;
    (void)operations;
    if (room < 7 || each == 0 || tide_learning_stats(&stats) != TIDE_OK ||
        (s->mode != STEPPED && s->mode != KEEPER))
        return 0;
    out[0] = (bench_figure){"changes", each};
    out[1] = (bench_figure){"fast_again", (double)s->fast / each};
    out[2] = (bench_figure){"uses_until", s->fast ? (double)s->uses / (double)s->fast : 0};
    out[3] = (bench_figure){"ns_until", s->fast ? s->ns / (double)s->fast : 0};
    out[4] = (bench_figure){"compiles", (double)(now.compiles - s->first.compiles) / each};
    out[5] = (bench_figure){"misses", (double)(now.misses - s->first.misses) / each};
    out[6] = (bench_figure){"generations", (double)(now.generation - s->first.generation) / each};
    return 7;
}

static void teardown(void *state)
{
    phase_state *s = state;
    if (s->mode == STEPPED || s->mode == KEEPER)
        tide_settle(BENCH_SETTLE_MS);
    bench_tide_free(s->tide);
    bench_state_free(s, sizeof *s);
}

#define PHASE_VARIANT(name, mode, missing)                                    \
    static void *name##_setup(const bench_case *job)                          \
    {                                                                         \
        return make(job, mode, "phase " #name);                               \
    }                                                                         \
    static void name##_prove(void *state, uint64_t operations)                \
    {                                                                         \
        (void)name##_run(state, operations);                                  \
        warm(state);                                                          \
    }                                                                         \
    static const bench_variant                                                \
        variant_##name = {"tide-" #name, missing, name##_setup, name##_prove, \
                          name##_run,    verify,  teardown,     changes};
PHASE_VARIANT(full, FULL, NULL)
PHASE_VARIANT(table, TABLE, NULL)
PHASE_VARIANT(stepped, STEPPED, BENCH_MISSING_STAGER)
PHASE_VARIANT(keeper, KEEPER, BENCH_MISSING_STAGER)

const bench_variant *const bench_phase_variants[] = {
    &variant_full, &variant_table, &variant_stepped, &variant_keeper, NULL,
};

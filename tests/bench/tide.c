/* SPDX-License-Identifier: MIT */
/* The scope4 variants of Tidepool itself, one for each form of scope and each tier. */
#include "tide.h"
#include "scope4.h"

#include <assert.h>
#include <string.h>

#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/upkeep.h>

/* --- what all of them share ------------------------------------------------------------- */

enum { SHELVES = 16 }; /* of the first of the built-in types */

bench_tide *bench_tide_make(const bench_case *job, bool disabled)
{
    /* Level 0 whatever the environment says: the checks are not what is measured. */
    tide_pool_options options = {.name = job->name, .check = TIDE_CHECK_NONE, .disabled = disabled};
    bench_tide *s = bench_state_make(sizeof *s);
    s->sizes = job->sizes;
    s->pool = tide_pool_create(&options);
    if (s->pool == NULL)
        bench_die("%s", tide_error_message());
    for (tide_type type = 1; type <= SHELVES; type++)
        if (tide_acquire_type(s->pool, type, 1) == NULL)
            bench_die("%s", tide_error_message());
    tide_pool_reset(s->pool);
    return s;
}

void bench_tide_warm(bench_tide *s)
{
    bench_compiled_warm(&s->compiled);
    tide_status status = tide_pool_stats(s->pool, &s->warm);
    assert(status == TIDE_OK);
    (void)status;
}

/* Exchanges an operation: large arrays of changing sizes change places for as long as they live. */
size_t bench_tide_figures(void *state, uint64_t operations, bench_figure *out, size_t room)
{
    const bench_tide *s = state;
    tide_pool_statistics now;
    if (room < 1 || tide_pool_stats(s->pool, &now) != TIDE_OK || now.exchanges == s->warm.exchanges)
        return 0;
    out[0] = (bench_figure){"exchanges",
                            (double)(now.exchanges - s->warm.exchanges) / (double)operations};
    return 1;
}

static bool at_its_tier(const bench_tide *s)
{
    tide_site_information site;
    if (s->site == NULL)
        return true;
    if (tide_site_info(s->site, &site) == TIDE_OK && site.tier == s->tier)
        return true;
    bench_complain("site %s left tier %s", s->site->name, tide_tier_name(s->tier));
    return false;
}

bool bench_tide_verify(void *state, uint64_t operations)
{
    const bench_tide *s = state;
    tide_pool_statistics now;
    if (tide_pool_stats(s->pool, &now) != TIDE_OK || tide_pool_check(s->pool) != TIDE_OK) {
        bench_complain("%s", tide_error_message());
        return false;
    }
    if (now.allocations != s->warm.allocations) {
        bench_complain("%llu allocations after the warm-up",
                       (unsigned long long)(now.allocations - s->warm.allocations));
        return false;
    }
    if (now.depth != 0 || now.slots_live != 0) {
        bench_complain("depth %zu and %zu live arrays at the end", now.depth, now.slots_live);
        return false;
    }
    return at_its_tier(s) && bench_compiled_verify(&s->compiled, operations);
}

void bench_tide_free(void *state)
{
    bench_tide *s = state;
    if (tide_pool_destroy(s->pool) != TIDE_OK)
        bench_die("%s", tide_error_message());
    bench_state_free(s, sizeof *s);
}

/* --- the forms of scope ----------------------------------------------------------------- */

static const tide_type both[] = {TIDE_F64, TIDE_I32};

static void *plain_setup(const bench_case *job)
{
    return bench_tide_make(job, false);
}

/* clang-format off */
#define FOUR_ACQUIRES                                            \
    double *a = tide_acquire(pool, double, n->count[0]);      \
    int32_t *b = tide_acquire(pool, int32_t, n->count[1]);    \
    double *c = tide_acquire(pool, double, n->count[2]);      \
    int32_t *d = tide_acquire(pool, int32_t, n->count[3]);    \
    BENCH_USE(a, b, c, d);

BENCH_TIDE4(full, TIDE_SCOPE_NAMED(pool, "scope4 full"); FOUR_ACQUIRES)

BENCH_TIDE4(table, TIDE_SCOPE_NAMED(pool, "scope4 table"); FOUR_ACQUIRES)

BENCH_TIDE4(compiled, TIDE_SCOPE_NAMED(pool, "scope4 compiled"); FOUR_ACQUIRES)

BENCH_TIDE4(counted, TIDE_SCOPE_NAMED(pool, "scope4 counted"); FOUR_ACQUIRES)

BENCH_TIDE4(types, TIDE_SCOPE_TYPES(pool, double, int32_t); FOUR_ACQUIRES)

BENCH_TIDE4(frame,
    TIDE_FRAME(pool, (double, a, n->count[0]), (int32_t, b, n->count[1]),
                        (double, c, n->count[2]), (int32_t, d, n->count[3]));
    BENCH_USE(a, b, c, d);
)

#define HOISTED(i, operations) TIDE_LOOP(pool, i, operations)
BENCH_SCOPE4_IN(HOISTED, BENCH_POOL, loop, bench_tide, FOUR_ACQUIRES)
/* clang-format on */

/* Finds the site, tells it the types and pins it. */
static void *pinned(const bench_case *job, const char *site, tide_tier tier)
{
    bench_tide *s = plain_setup(job);
    s->site = bench_site_named(site);
    s->tier = tier;
    if (tide_site_declare(s->site, both, 2) != TIDE_OK || tide_site_pin(s->site, tier) != TIDE_OK)
        bench_die("%s: %s", site, tide_error_message());
    return s;
}

static void *full_setup(const bench_case *job)
{
    return pinned(job, "scope4 full", TIDE_TIER_FULL);
}

static void *table_setup(const bench_case *job)
{
    return pinned(job, "scope4 table", TIDE_TIER_TABLE);
}

static void declare_unless_compiled(tide_site *site)
{
    tide_site_information info;
    if (tide_site_info(site, &info) != TIDE_OK ||
        (info.tier != TIDE_TIER_COMPILED && tide_site_declare(site, both, 2) != TIDE_OK))
        bench_die("%s", tide_error_message());
}

/* Its twin, which is the same but for counting, proves that compiled code is what runs. */
static void *compiled_setup(const bench_case *job)
{
    bench_tide *s = plain_setup(job);
    tide_site *timed = bench_site_named("scope4 compiled");
    tide_site *counted = bench_site_named("scope4 counted");
    declare_unless_compiled(counted);
    bench_compile(counted, counted_prove, s, BENCH_SIZES, true);
    bench_prove_executed(counted, counted_prove, s, BENCH_SIZES);
    declare_unless_compiled(timed); /* not before: it would have been compiled to count, too */
    bench_compile(timed, compiled_prove, s, BENCH_SIZES, false);
    s->compiled.site = timed;
    return s;
}

/* A disabled pool serves the very code of tide-types: this is what leaving it in costs. */
static void *disabled_setup(const bench_case *job)
{
    return bench_tide_make(job, true);
}

static bool disabled_verify(void *state, uint64_t operations)
{
    const bench_tide *s = state;
    tide_pool_statistics now;
    if (tide_pool_stats(s->pool, &now) == TIDE_OK &&
        now.allocations - s->warm.allocations == 4 * operations && now.slots_live == 0)
        return true;
    bench_complain("disabled: %llu allocations for %llu operations",
                   (unsigned long long)(now.allocations - s->warm.allocations),
                   (unsigned long long)operations);
    return false;
}

#define TIDE_VARIANT(name, setup, verify) TIDE_VARIANT_IF(NULL, name, "tide-" #name, setup, verify)
#define TIDE_VARIANT_IF(missing, name, label, setup, verify)                             \
    static void name##_proof(void *state, uint64_t operations)                           \
    {                                                                                    \
        name##_prove(state, operations);                                                 \
        bench_tide_warm(state);                                                          \
    }                                                                                    \
    const bench_variant bench_tide_##name = {label,           missing,           setup,  \
                                             name##_proof,    name##_run,        verify, \
                                             bench_tide_free, bench_tide_figures};
#define disabled_prove types_prove
#define disabled_run   types_run

TIDE_VARIANT(full, full_setup, bench_tide_verify)
TIDE_VARIANT(table, table_setup, bench_tide_verify)
TIDE_VARIANT_IF(BENCH_MISSING_STAGER, compiled, "tide-compiled", compiled_setup, bench_tide_verify)
TIDE_VARIANT(types, plain_setup, bench_tide_verify)
TIDE_VARIANT(frame, plain_setup, bench_tide_verify)
TIDE_VARIANT(loop, plain_setup, bench_tide_verify)
TIDE_VARIANT(disabled, disabled_setup, disabled_verify)

/* SPDX-License-Identifier: MIT */
/* untracked: a helper touches a type that the scope did not save. The first touch saves it; this
 * is what the touch costs, against `-told` variants whose plan was told of the type. */
#include <tidepool/callsite.h>

#include "cases.h"
#include "scope4.h"
#include "tide.h"
#include "untracked_helper.h"

static const tide_type both[] = {TIDE_F64, TIDE_I32};
static const tide_type three[] = {TIDE_F64, TIDE_I32, TIDE_I64};

static void *plain_setup(const bench_case *job)
{
    return bench_tide_make(job, NULL, BENCH_SHELVES, false);
}

static void *pinned(const bench_case *job, const char *site, tide_tier tier, const tide_type *types,
                    size_t count)
{
    bench_tide *s = plain_setup(job);
    bench_tide_pin(s, site, tier, types, count);
    return s;
}

static void *full_setup(const bench_case *job)
{
    return pinned(job, "untracked full", TIDE_TIER_FULL, both, 2);
}

static void *table_setup(const bench_case *job)
{
    return pinned(job, "untracked table", TIDE_TIER_TABLE, both, 2);
}

static void *table_told_setup(const bench_case *job)
{
    return pinned(job, "untracked table told", TIDE_TIER_TABLE, three, 3);
}

static bench_tide *compiled_pair(const bench_case *job, bench_twin timed, bench_twin counted,
                                 size_t count)
{
    bench_tide *s = plain_setup(job);
    bench_tide_compile(s, timed, counted, count == 2 ? both : three, count, 0);
    s->compiled.may_miss = count == 2 ? 1 : 0;
    return s;
}

/* clang-format off */
#define TWO_AND_TWO                                              \
    double *a = tide_acquire(pool, double, n->count[0]);      \
    int32_t *b = tide_acquire(pool, int32_t, n->count[1]);    \
    helper_pair rest = helper_from_pool(pool, n);             \
    BENCH_USE(a, b, rest.c, rest.d);

BENCH_TIDE4(full, TIDE_SCOPE_NAMED(pool, "untracked full"); TWO_AND_TWO)

BENCH_TIDE4(table, TIDE_SCOPE_NAMED(pool, "untracked table"); TWO_AND_TWO)

BENCH_TIDE4(table_told,
             TIDE_SCOPE_NAMED(pool, "untracked table told"); TWO_AND_TWO)

BENCH_TIDE4(compiled, TIDE_SCOPE_NAMED(pool, "untracked compiled"); TWO_AND_TWO)

BENCH_TIDE4(counted, TIDE_SCOPE_NAMED(pool, "untracked counted"); TWO_AND_TWO)

BENCH_TIDE4(compiled_told,
             TIDE_SCOPE_NAMED(pool, "untracked compiled told"); TWO_AND_TWO)

BENCH_TIDE4(counted_told,
             TIDE_SCOPE_NAMED(pool, "untracked counted told"); TWO_AND_TWO)

BENCH_TIDE4(types, TIDE_SCOPE_TYPES(pool, double, int32_t); TWO_AND_TWO)

BENCH_TIDE4(types_told,
             TIDE_SCOPE_TYPES(pool, double, int32_t, int64_t); TWO_AND_TWO)

#define HOISTED(i, operations) TIDE_LOOP(pool, i, operations)
BENCH_SCOPE4_IN(HOISTED, BENCH_POOL, loop, bench_tide, TWO_AND_TWO)

BENCH_SCOPE4(bump, bench_bump,
    char *mark = s->top;
    double *a = bench_bump_take(s, n->count[0] * sizeof *a);
    int32_t *b = bench_bump_take(s, n->count[1] * sizeof *b);
    helper_pair rest = helper_from_bump(s, n);
    BENCH_USE(a, b, rest.c, rest.d);
    s->top = mark;
)
/* clang-format on */

static void *compiled_setup(const bench_case *job)
{
    return compiled_pair(job, (bench_twin){bench_site_named("untracked compiled"), compiled_prove},
                         (bench_twin){bench_site_named("untracked counted"), counted_prove}, 2);
}

static void *compiled_told_setup(const bench_case *job)
{
    return compiled_pair(
        job, (bench_twin){bench_site_named("untracked compiled told"), compiled_told_prove},
        (bench_twin){bench_site_named("untracked counted told"), counted_told_prove}, 3);
}

static void *bump_setup(const bench_case *job)
{
    return bench_bump_make(job);
}

static bool bump_verify(void *state, uint64_t operations)
{
    (void)operations;
    return bench_bump_empty(state);
}

static const bench_variant variant_bump = {"bump",   NULL,        bump_setup,      bump_prove,
                                           bump_run, bump_verify, bench_bump_free, NULL};

#define UNTRACKED_VARIANT(name, label, setup) UNTRACKED_VARIANT_IF(NULL, name, label, setup)
#define UNTRACKED_VARIANT_IF(missing, name, label, setup)                                        \
    static void name##_proof(void *state, uint64_t operations)                                   \
    {                                                                                            \
        name##_prove(state, operations);                                                         \
        bench_tide_warm(state);                                                                  \
    }                                                                                            \
    static const bench_variant variant_##name = {label,           missing,    setup,             \
                                                 name##_proof,    name##_run, bench_tide_verify, \
                                                 bench_tide_free, NULL};
UNTRACKED_VARIANT(full, "tide-full", full_setup)
UNTRACKED_VARIANT(table, "tide-table", table_setup)
UNTRACKED_VARIANT(table_told, "tide-table-told", table_told_setup)
UNTRACKED_VARIANT_IF(BENCH_MISSING_STAGER, compiled, "tide-compiled", compiled_setup)
UNTRACKED_VARIANT_IF(BENCH_MISSING_STAGER, compiled_told, "tide-compiled-told", compiled_told_setup)
UNTRACKED_VARIANT(types, "tide-types", plain_setup)
UNTRACKED_VARIANT(types_told, "tide-types-told", plain_setup)
UNTRACKED_VARIANT(loop, "tide-loop", plain_setup)

const bench_variant *const bench_untracked_variants[] = {
    &variant_bump,     &variant_full,
    &variant_table,    &variant_table_told,
    &variant_compiled, &variant_compiled_told,
    &variant_types,    &variant_types_told,
    &variant_loop,     NULL,
};

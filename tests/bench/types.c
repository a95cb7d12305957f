/* SPDX-License-Identifier: MIT */
/* types-N: does a scope's cost grow with the types that the pool has, or only with its own two?
 *
 * The two are structs, registered like any other type of a program. */
#include "cases.h"
#include "plain.h"
#include "scope4.h"
#include "tide.h"

#include <stdio.h>

#include <tidepool/callsite.h>

typedef struct reading {
    double value;
} reading;

typedef struct station {
    int32_t number;
} station;

/* The two first, then as many others as the case wants in use. */
static const tide_type *types_registered(uint32_t count)
{
    static tide_type types[BENCH_TYPES_MAX];
    types[0] = tide_type_of(reading);
    types[1] = tide_type_of(station);
    for (uint32_t i = 2; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "struct record_%u", i);
        types[i] = tide_type_register(name, 8, 8);
        if (types[i] == TIDE_NO_TYPE)
            bench_die("%s", tide_error_message());
    }
    return types;
}

static bench_tide *make_pool(const bench_case *job)
{
    return bench_tide_make(job, types_registered(job->types), job->types, false);
}

static void *make(const bench_case *job, const char *site, tide_tier tier)
{
    bench_tide *s = make_pool(job);
    tide_type pair[] = {tide_type_of(reading), tide_type_of(station)};
    bench_tide_pin(s, site, tier, pair, 2);
    return s;
}

/* clang-format off */
#define FOUR_ACQUIRES                                               \
    reading *a = tide_acquire(pool, reading, n->count[0]);       \
    station *b = tide_acquire(pool, station, n->count[1]);       \
    reading *c = tide_acquire(pool, reading, n->count[2]);       \
    station *d = tide_acquire(pool, station, n->count[3]);       \
    BENCH_USE(&a->value, &b->number, &c->value, &d->number);

BENCH_TIDE4(full, TIDE_SCOPE_NAMED(pool, "types full"); FOUR_ACQUIRES)

BENCH_TIDE4(table, TIDE_SCOPE_NAMED(pool, "types table"); FOUR_ACQUIRES)

BENCH_TIDE4(compiled, TIDE_SCOPE_NAMED(pool, "types compiled"); FOUR_ACQUIRES)

BENCH_TIDE4(counted, TIDE_SCOPE_NAMED(pool, "types counted"); FOUR_ACQUIRES)
/* clang-format on */

static void *full_setup(const bench_case *job)
{
    return make(job, "types full", TIDE_TIER_FULL);
}

static void *table_setup(const bench_case *job)
{
    return make(job, "types table", TIDE_TIER_TABLE);
}

/* One site for all N: the code is the same. */
static void *compiled_setup(const bench_case *job)
{
    bench_tide *s = make_pool(job);
    tide_type pair[] = {tide_type_of(reading), tide_type_of(station)};
    bench_twin timed = {bench_site_named("types compiled"), compiled_prove};
    bench_twin counted = {bench_site_named("types counted"), counted_prove};
    bench_tide_compile(s, timed, counted, pair, 2, 0);
    return s;
}

/* The pool really has N shelves, or the figure says nothing about N. */
static bool verify(void *state, uint64_t operations)
{
    const bench_tide *s = state;
    tide_pool_statistics now;
    if (tide_pool_stats(s->pool, &now) != TIDE_OK || now.shelves != s->warm.shelves)
        return false;
    return bench_tide_verify(state, operations);
}

static size_t shelves(void *state, uint64_t operations, bench_figure *out, size_t room)
{
    (void)operations;
    if (room < 1)
        return 0;
    out[0] = (bench_figure){"shelves", (double)((bench_tide *)state)->warm.shelves};
    return 1;
}

#define TYPES_VARIANT(name, missing)                                                        \
    static void name##_proof(void *state, uint64_t operations)                              \
    {                                                                                       \
        name##_prove(state, operations);                                                    \
        bench_tide_warm(state);                                                             \
    }                                                                                       \
    static const bench_variant variant_##name = {"tide-" #name,   missing,    name##_setup, \
                                                 name##_proof,    name##_run, verify,       \
                                                 bench_tide_free, shelves};
TYPES_VARIANT(full, NULL)
TYPES_VARIANT(table, NULL)
TYPES_VARIANT(compiled, BENCH_MISSING_STAGER)

const bench_variant *const bench_types_variants[] = {
    &bench_floor, &bench_bump_variant, &variant_full, &variant_table, &variant_compiled, NULL,
};

/* SPDX-License-Identifier: MIT */
/* dispatch-…: a loop over tagged values calls the method of each one's type.
 *
 *   lookup         TIDE_DISPATCH (with a name), its site pinned to the general plan: the methods' table
 *   switch         what a person would write who knows all types beforehand
 *   tide-table     TIDE_DISPATCH by the table that its site has learned
 *   direct         calls of the known methods, in the order of the stream
 *   floor          the methods' bodies in place of the calls
 *
 * Methods are functions of their own in all but floor; each stores a result by its type, so that
 * calls do not wait for one another. */
#include "cases.h"

#include "compiled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/hooks.h"
#include <tidepool/generic.h>
#include <tidepool/learn.h>
#include <tidepool/site.h>

enum { TYPES = 16 };

typedef struct item {
    tide_type type;
    uint32_t number; /* of the method, from 0 */
    uint32_t value, result;
} item;

typedef struct dispatch_state {
    tide_generic *generic;
    bench_compiled learned;
    tide_site *site;
    item *items;
    size_t rows;
    uint64_t unmet;
} dispatch_state;

/* --- methods ------------------------------------------------------------------------------ */

/* One for each type, told apart by a constant, so that none can be merged with another. */
#define BODY(n, i) ((i)->value ^ (n))
#define METHOD(n)                                                \
    static __attribute__((noinline)) void method_##n(void *args) \
    {                                                            \
        item *at = args;                                         \
        at->result = BODY(n, at);                                \
    }
/* clang-format off */
#define SIXTEEN(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
/* clang-format on */
SIXTEEN(METHOD)

static tide_method *const methods[TYPES] = {
#define METHOD_ENTRY(n) method_##n,
    SIXTEEN(METHOD_ENTRY)};

/* --- streams ------------------------------------------------------------------------------ */

static tide_type types[TYPES];

static tide_generic *make_generic(void)
{
    static tide_generic *generic;
    char name[32];
    if (generic != NULL)
        return generic;
    generic = tide_generic_create("bench");
    for (uint32_t i = 0; i < TYPES; i++) {
        snprintf(name, sizeof name, "struct message_%u", i);
        types[i] = tide_type_register(name, 8, 8);
        if (generic == NULL || types[i] == TIDE_NO_TYPE ||
            tide_generic_add(generic, types[i], methods[i]) != TIDE_OK)
            bench_die("%s", tide_error_message());
    }
    return generic;
}

static item make_item(uint32_t number, uint64_t *random)
{
    return (item){.type = types[number], .number = number, .value = (uint32_t)bench_random(random)};
}

/* So many types in turn. */
static dispatch_state *make(size_t rows, uint32_t turns)
{
    dispatch_state *s = bench_state_make(sizeof *s);
    item *items = bench_allocate(rows * sizeof *items);
    uint64_t random = 77;
    s->generic = make_generic();
    s->rows = rows;
    for (size_t i = 0; i < rows; i++)
        items[i] = make_item((uint32_t)(i % turns), &random);
    s->items = items;
    return s;
}

/* --- bodies ------------------------------------------------------------------------------- */

/* Passes over the rows; statements see the item `at`, and end what they do with it. The empty
 * assembly makes the count opaque, as in scope4.h. */
#define DISPATCH(name, ...)                                                                \
    static __attribute__((noinline)) uint64_t name##_run(void *state, uint64_t operations) \
    {                                                                                      \
        dispatch_state *const s = state;                                                   \
        tide_generic *const generic = s->generic;                                          \
        item *const end = s->items + s->rows;                                              \
        uint64_t done = 0;                                                                 \
        (void)generic;                                                                     \
        while (done < operations)                                                          \
            for (item *at = s->items; at != end;) {                                        \
                __VA_ARGS__                                                                \
            }                                                                              \
        return done;                                                                       \
    }
#define NEXT      \
    at++, done++; \
    __asm__ volatile("" : "+r"(done) : "r"(at) : "memory")
#define CALL(method) \
    (method)(at);    \
    NEXT;
#define SITE(name)                                                                  \
    tide_site_dispatch(TIDE_SITE(TIDE_KIND_DISPATCH, name), generic, at->type, at); \
    NEXT;
#define IN_PLACE(n)           \
    at->result = BODY(n, at); \
    NEXT;

/* clang-format off */
DISPATCH(lookup, SITE("dispatch lookup"))
DISPATCH(table, SITE("dispatch table"))

DISPATCH(direct_3, CALL(method_0) CALL(method_1) CALL(method_2))
DISPATCH(floor_3, IN_PLACE(0) IN_PLACE(1) IN_PLACE(2))

#define CASE(n) case n: method_##n(at); break;
DISPATCH(switch_3,
    switch (at->number) { CASE(0) CASE(1) CASE(2) }
    NEXT;
)
DISPATCH(switch_all,
    switch (at->number) { SIXTEEN(CASE) }
    NEXT;
)
/* clang-format on */

/* --- proofs ------------------------------------------------------------------------------- */

/* Has each value met the method of its type? */
static void prove_results(dispatch_state *s, bench_use_function *use, uint64_t operations)
{
    for (size_t i = 0; i < s->rows; i++)
        s->items[i].result = 0;
    use(s, operations);
    for (size_t i = 0; i < s->rows; i++)
        if (s->items[i].result != BODY(s->items[i].number, &s->items[i]))
            bench_die("dispatch: value %zu did not meet the method of its type", i);
}

static void warm(dispatch_state *s)
{
    bench_compiled_warm(&s->learned);
    s->unmet = tide_generic_unmet(s->generic);
}

#define PROVE(name)                                                                    \
    static void name##_use(void *state, uint64_t operations)                           \
    {                                                                                  \
        (void)name##_run(state, operations);                                           \
    }                                                                                  \
    static __attribute__((unused)) void name##_prove(void *state, uint64_t operations) \
    {                                                                                  \
        prove_results(state, name##_use, operations);                                  \
        warm(state);                                                                   \
    }
PROVE(lookup)
PROVE(table)
PROVE(direct_3)
PROVE(floor_3)
PROVE(switch_3)
PROVE(switch_all)

static bool verify(void *state, uint64_t operations)
{
    dispatch_state *s = state;
    tide_site_information site;
    if (s->site != NULL &&
        (tide_site_info(s->site, &site) != TIDE_OK || site.tier != TIDE_TIER_FULL)) {
        bench_complain("dispatch: the site left tier full");
        return false;
    }
    if (tide_generic_unmet(s->generic) != s->unmet) {
        bench_complain("dispatch: calls found no method");
        return false;
    }
    return bench_compiled_verify(&s->learned, operations);
}

static void teardown(void *state)
{
    dispatch_state *s = state;
    bench_release(s->items, s->rows * sizeof *s->items);
    bench_state_free(s, sizeof *s);
}

/* --- setting up --------------------------------------------------------------------------- */

static void *setup_3(const bench_case *job)
{
    (void)job;
    return make(BENCH_DISPATCH_3, 3);
}

/* dispatch-random-N. */
static void *setup_random(const bench_case *job)
{
    uint32_t kinds = (uint32_t)strtoul(strrchr(job->name, '-') + 1, NULL, 10);
    dispatch_state *s = make(BENCH_DISPATCH_RANDOM, 1);
    uint64_t random = 77;
    for (size_t i = 0; i < s->rows; i++)
        s->items[i] = make_item((uint32_t)((bench_random(&random) >> 32) % kinds), &random);
    return s;
}

static void *looked_up(dispatch_state *s)
{
    s->site = bench_site_named("dispatch lookup");
    if (tide_site_pin(s->site, TIDE_TIER_FULL) != TIDE_OK)
        bench_die("%s", tide_error_message());
    return s;
}

/* What an earlier case of this process has had learned is for its own types. `may_miss`: this part of
 * the calls may find no guard. */
static void *learn(dispatch_state *s, double may_miss)
{
    tide_site *site = bench_site_named("dispatch table");
    if (tide_site_unpin(site) != TIDE_OK || tide_site_reset(site) != TIDE_OK)
        bench_die("%s", tide_error_message());
    s->learned = (bench_compiled){.site = site, .may_miss = may_miss};
    bench_compile(site, table_use, s, s->rows, false);
    return s;
}

static void *lookup_3_setup(const bench_case *job)
{
    return looked_up(setup_3(job));
}

static void *table_3_setup(const bench_case *job)
{
    return learn(setup_3(job), 0);
}

#define DISPATCH_VARIANT(variable, label, missing, setup, name)                         \
    static const bench_variant variable = {label,      missing, setup,    name##_prove, \
                                           name##_run, verify,  teardown, NULL};
DISPATCH_VARIANT(lookup_3, "lookup", NULL, lookup_3_setup, lookup)
DISPATCH_VARIANT(table_3, "tide-table", NULL, table_3_setup, table)
DISPATCH_VARIANT(known_3, "direct", NULL, setup_3, direct_3)
DISPATCH_VARIANT(least_3, "floor", NULL, setup_3, floor_3)
DISPATCH_VARIANT(cases_3, "switch", NULL, setup_3, switch_3)
const bench_variant *const bench_dispatch_3_variants[] = {
    &least_3, &known_3, &cases_3, &lookup_3, &table_3, NULL,
};
/* --- types at random ---------------------------------------------------------------------- */

static void *lookup_random_setup(const bench_case *job)
{
    return looked_up(setup_random(job));
}

/* Of sixteen types alike the model would test for none, so it is told that a lookup is dear. A
 * window may not see them all. */
static void *table_random_setup(const bench_case *job)
{
    double before = get_constant("cost_dynamic");
    set_constant("cost_dynamic", 64);
    dispatch_state *s = learn(setup_random(job), 0.1);
    set_constant("cost_dynamic", before);
    return s;
}

DISPATCH_VARIANT(lookup_random, "lookup", NULL, lookup_random_setup, lookup)
DISPATCH_VARIANT(table_random, "tide-table", NULL, table_random_setup, table)
DISPATCH_VARIANT(cases_random, "switch", NULL, setup_random, switch_all)

const bench_variant *const bench_dispatch_random_variants[] = {
    &cases_random,
    &lookup_random,
    &table_random,
    NULL,
};

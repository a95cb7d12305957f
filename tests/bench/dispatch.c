/* SPDX-License-Identifier: MIT */
/* dispatch-…: a loop over tagged values calls the method of each one's type. The three streams
 * are those of the examples of Catwalk.jl, whose idea staging by type is.
 *
 *   lookup         TIDE_DISPATCH, its site pinned to the general plan: the methods' table
 *   switch         what a person would write who knows all types beforehand
 *   tide-compiled  TIDE_DISPATCH with compiled code; in the sweep: as it learns, one step a round
 *   tide-each      tide_dispatch_each over lists of types and values, 4096 values a call; -many: each
 *                  type also has a method for many values; -gathered: that, and the lists are
 *                  written first, which is part of the figure
 *   direct         calls of the known methods, in the order of the stream
 *   floor          the methods' bodies in place of the calls
 *
 * Methods are functions of their own in all but floor; each stores a result by its type, so that
 * calls do not wait for one another. */
#include "dispatch.h"

#include "compiled.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/settings.h"
#include "runtime/base/test_hooks.h"
#include <tidepool/generic.h>
#include <tidepool/learn.h>
#include <tidepool/site.h>

enum { TYPES = 100, ROWS_MAX = BENCH_DISPATCH_SWEEP, ONE_OFFS = 10 };

typedef struct item {
    tide_type type;
    uint32_t number; /* of the method, from 0 */
    uint32_t value, result;
} item;

typedef struct dispatch_state {
    tide_generic *generic;
    bench_compiled compiled;
    tide_site *site;
    item *items;
    size_t rows;
    tide_type *listed; /* of each item; dispatch-random and -uneven */
    void **args;
    tide_learning_statistics warm;
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
#define TEN(X, t) X(t##0) X(t##1) X(t##2) X(t##3) X(t##4) X(t##5) X(t##6) X(t##7) X(t##8) X(t##9)
#define HUNDRED(X)                                                                  \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) TEN(X, 1) TEN(X, 2) TEN(X, 3) \
    TEN(X, 4) TEN(X, 5) TEN(X, 6) TEN(X, 7) TEN(X, 8) TEN(X, 9)
/* clang-format on */
HUNDRED(METHOD)

static tide_method *const methods[TYPES] = {
#define METHOD_ENTRY(n) method_##n,
    HUNDRED(METHOD_ENTRY)};

/* For many values at once. */
#define METHOD_MANY(n)                                    \
    static void many_##n(void *const *args, size_t count) \
    {                                                     \
        for (size_t i = 0; i < count; i++) {              \
            item *at = args[i];                           \
            at->result = BODY(n, at);                     \
        }                                                 \
    }
HUNDRED(METHOD_MANY)

static tide_method_many *const manies[TYPES] = {
#define MANY_ENTRY(n) many_##n,
    HUNDRED(MANY_ENTRY)};

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

/* The absolute value of a normal deviate of deviation 10, by the polar method. */
static uint32_t half_normal(uint64_t *random)
{
    double x, y, s;
    do {
        x = 2 * (double)(bench_random(random) >> 11) * 0x1p-53 - 1;
        y = 2 * (double)(bench_random(random) >> 11) * 0x1p-53 - 1;
        s = x * x + y * y;
    } while (s >= 1 || s == 0);
    return (uint32_t)fabs(10 * x * sqrt(-2 * log(s) / s));
}

/* A round of the sweep is 256 calls; the centre moves by one every 10 rounds, so that after 1000
 * rounds it is back. */
enum { ROUND = 256, ROUNDS_A_CENTRE = 10 };

static uint32_t sweep_number(size_t row, uint64_t *random)
{
    uint32_t centre = (uint32_t)(row / (ROUND * ROUNDS_A_CENTRE));
    return (centre + half_normal(random)) % TYPES;
}

/* Of sixteen, each 1.4 times as frequent as the next. */
static uint32_t uneven_number(uint64_t *random)
{
    double at = (double)(bench_random(random) >> 11) * 0x1p-53, share = 1, all = 0, sum = 0;
    for (int i = 0; i < 16; i++, share /= 1.4)
        all += share;
    share = 1;
    for (uint32_t i = 0; i < 15; i++, share /= 1.4)
        if ((sum += share) > at * all)
            return i;
    return 15;
}

static dispatch_state *make(size_t rows, uint32_t turns)
{
    dispatch_state *s = bench_state_make(sizeof *s);
    item *items = bench_allocate(rows * sizeof *items);
    uint64_t random = 77;
    s->generic = make_generic();
    s->rows = rows;
    for (size_t i = 0; i < rows; i++) {
        uint32_t number = turns != 0 ? (uint32_t)(i % turns) : sweep_number(i, &random);
        items[i] = make_item(number, &random);
    }
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
#define SITE                              \
    TIDE_DISPATCH(generic, at->type, at); \
    NEXT;
#define IN_PLACE(n)           \
    at->result = BODY(n, at); \
    NEXT;

/* clang-format off */
DISPATCH(lookup, SITE)
DISPATCH(compiled, SITE)
DISPATCH(counted, SITE)

DISPATCH(direct_3, CALL(method_0) CALL(method_1) CALL(method_2))
DISPATCH(direct_2, CALL(method_0) CALL(method_1))
DISPATCH(floor_3, IN_PLACE(0) IN_PLACE(1) IN_PLACE(2))
DISPATCH(floor_2, IN_PLACE(0) IN_PLACE(1))

#define CASE(n) case n: method_##n(at); break;
DISPATCH(switch_3,
    switch (at->number) { CASE(0) CASE(1) CASE(2) }
    NEXT;
)
DISPATCH(switch_all,
    switch (at->number) { HUNDRED(CASE) }
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
    bench_compiled_warm(&s->compiled);
    s->unmet = tide_generic_unmet(s->generic);
    tide_learning_stats(&s->warm);
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
PROVE(compiled)
PROVE(counted)
PROVE(direct_3)
PROVE(direct_2)
PROVE(floor_3)
PROVE(floor_2)
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
    return bench_compiled_verify(&s->compiled, operations);
}

static void teardown(void *state)
{
    dispatch_state *s = state;
    bench_release(s->items, s->rows * sizeof *s->items);
    if (s->listed != NULL) {
        bench_release(s->listed, s->rows * sizeof *s->listed);
        bench_release(s->args, s->rows * sizeof *s->args);
    }
    bench_state_free(s, sizeof *s);
}

/* --- setting up --------------------------------------------------------------------------- */

static void *setup_3(const bench_case *job)
{
    (void)job;
    return make(BENCH_DISPATCH_3, 3);
}

static void *setup_actors(const bench_case *job)
{
    (void)job;
    return make(BENCH_DISPATCH_ACTORS, 2);
}

static void *setup_sweep(const bench_case *job)
{
    (void)job;
    return make(ROWS_MAX, 0);
}

/* dispatch-random-N, and dispatch-uneven, which has no number. */
static void *setup_random(const bench_case *job)
{
    uint32_t kinds = (uint32_t)strtoul(strrchr(job->name, '-') + 1, NULL, 10);
    dispatch_state *s = make(BENCH_DISPATCH_RANDOM, 1);
    uint64_t random = 77;
    s->listed = bench_allocate(s->rows * sizeof *s->listed);
    s->args = bench_allocate(s->rows * sizeof *s->args);
    for (size_t i = 0; i < s->rows; i++) {
        uint32_t number =
            kinds != 0 ? (uint32_t)((bench_random(&random) >> 32) % kinds) : uneven_number(&random);
        s->items[i] = make_item(number, &random);
        s->listed[i] = s->items[i].type;
        s->args[i] = &s->items[i];
    }
    return s;
}

static void *setup_many(const bench_case *job)
{
    dispatch_state *s = setup_random(job);
    for (uint32_t i = 0; i < TYPES; i++)
        if (tide_generic_add_many(s->generic, types[i], manies[i]) != TIDE_OK)
            bench_die("%s", tide_error_message());
    return s;
}

static bench_compiled site_of(const char *function)
{
    bench_compiled c = {.count = 1};
    bench_sites_in(__FILE__, function, TIDE_KIND_DISPATCH, c.sites, 1);
    return c;
}

static void *looked_up(dispatch_state *s)
{
    s->site = site_of("lookup_run").sites[0];
    if (tide_site_pin(s->site, TIDE_TIER_FULL) != TIDE_OK)
        bench_die("%s", tide_error_message());
    return s;
}

/* Ten messages of ten other types come first. */
static void one_offs(dispatch_state *s, bench_use_function *use)
{
    dispatch_state others = *s;
    item items[ONE_OFFS];
    for (uint32_t i = 0; i < ONE_OFFS; i++)
        items[i] = (item){types[2 + i], 2 + i, i, 0};
    others.items = items;
    others.rows = ONE_OFFS;
    use(&others, ONE_OFFS);
}

/* What an earlier case of this process has had compiled is for its own types. */
static void forget(const bench_compiled *c)
{
    tide_site *site = c->sites[0];
    if (tide_site_unpin(site) != TIDE_OK || tide_site_reset(site) != TIDE_OK)
        bench_die("%s", tide_error_message());
}

/* `may_miss`: this part of the calls may find no guard. */
static void *compile(dispatch_state *s, bool actors, double may_miss)
{
    bench_compiled twin = site_of("counted_run");
    s->compiled = site_of("compiled_run");
    forget(&twin);
    forget(&s->compiled);
    s->compiled.may_miss = may_miss;
    if (actors)
        one_offs(s, counted_use);
    bench_compile(&twin, counted_use, s, s->rows, true);
    bench_prove_executed(&twin, counted_use, s, s->rows, (uint64_t)(may_miss * (double)s->rows));
    if (actors)
        one_offs(s, compiled_use);
    bench_compile(&s->compiled, compiled_use, s, s->rows, false);
    return s;
}

static void *lookup_3_setup(const bench_case *job)
{
    return looked_up(setup_3(job));
}

static void *lookup_actors_setup(const bench_case *job)
{
    return looked_up(setup_actors(job));
}

static void *lookup_sweep_setup(const bench_case *job)
{
    return looked_up(setup_sweep(job));
}

static void *compiled_3_setup(const bench_case *job)
{
    return compile(setup_3(job), false, 0);
}

static void *compiled_actors_setup(const bench_case *job)
{
    return compile(setup_actors(job), true, 0);
}

#define DISPATCH_VARIANT(variable, label, missing, setup, name)                         \
    static const bench_variant variable = {label,      missing, setup,    name##_prove, \
                                           name##_run, verify,  teardown, NULL};
DISPATCH_VARIANT(lookup_3, "lookup", NULL, lookup_3_setup, lookup)
DISPATCH_VARIANT(compiled_3, "tide-compiled", BENCH_MISSING_STAGER, compiled_3_setup, compiled)
DISPATCH_VARIANT(known_3, "direct", NULL, setup_3, direct_3)
DISPATCH_VARIANT(least_3, "floor", NULL, setup_3, floor_3)
DISPATCH_VARIANT(cases_3, "switch", NULL, setup_3, switch_3)
DISPATCH_VARIANT(lookup_actors, "lookup", NULL, lookup_actors_setup, lookup)
DISPATCH_VARIANT(compiled_actors, "tide-compiled", BENCH_MISSING_STAGER, compiled_actors_setup,
                 compiled)
DISPATCH_VARIANT(known_actors, "direct", NULL, setup_actors, direct_2)
DISPATCH_VARIANT(least_actors, "floor", NULL, setup_actors, floor_2)
DISPATCH_VARIANT(cases_actors, "switch", NULL, setup_actors, switch_all)
DISPATCH_VARIANT(lookup_sweep, "lookup", NULL, lookup_sweep_setup, lookup)
DISPATCH_VARIANT(cases_sweep, "switch", NULL, setup_sweep, switch_all)

const bench_variant *const bench_dispatch_3_variants[] = {
    &least_3, &known_3, &cases_3, &lookup_3, &compiled_3, NULL,
};
const bench_variant *const bench_dispatch_actors_variants[] = {
    &least_actors, &known_actors, &cases_actors, &lookup_actors, &compiled_actors, NULL,
};

/* --- types at random ---------------------------------------------------------------------- */

enum { EACH = 4096 }; /* values a call */

static uint64_t each_block(dispatch_state *s, uint64_t operations, bool gather)
{
    uint64_t done = 0;
    while (done < operations)
        for (size_t row = 0; row < s->rows; row += EACH, done += EACH) {
            for (size_t i = row; gather && i < row + EACH; i++) {
                s->listed[i] = s->items[i].type;
                s->args[i] = &s->items[i];
            }
            if (tide_dispatch_each(s->generic, s->listed + row, s->args + row, EACH) != EACH)
                bench_die("%s", tide_error_message());
        }
    return done;
}

static uint64_t each_run(void *state, uint64_t operations)
{
    return each_block(state, operations, false);
}

static uint64_t gathered_run(void *state, uint64_t operations)
{
    return each_block(state, operations, true);
}
PROVE(each)
PROVE(gathered)

static void *lookup_random_setup(const bench_case *job)
{
    return looked_up(setup_random(job));
}

/* Of sixteen types alike the model would test for none, so it is told that a lookup is dear. Of
 * uneven ones a window may not see the rarest. */
static void *compiled_random_setup(const bench_case *job)
{
    double before = tide_constant_get(TIDE_CONSTANT_cost_dynamic);
    (void)tide_constant_set("cost_dynamic", 64);
    dispatch_state *s = compile(setup_random(job), false, 0.1);
    (void)tide_constant_set("cost_dynamic", before);
    return s;
}

/* Methods for many stay with the generic function; tide-each has one of its own. */
static void *each_setup(const bench_case *job)
{
    dispatch_state *s = setup_random(job);
    s->generic = tide_generic_create("bench: one by one");
    for (uint32_t i = 0; i < TYPES; i++)
        if (s->generic == NULL || tide_generic_add(s->generic, types[i], methods[i]) != TIDE_OK)
            bench_die("%s", tide_error_message());
    return s;
}

DISPATCH_VARIANT(lookup_random, "lookup", NULL, lookup_random_setup, lookup)
DISPATCH_VARIANT(compiled_random, "tide-compiled", BENCH_MISSING_STAGER, compiled_random_setup,
                 compiled)
DISPATCH_VARIANT(cases_random, "switch", NULL, setup_random, switch_all)
DISPATCH_VARIANT(each_one, "tide-each", NULL, each_setup, each)
DISPATCH_VARIANT(each_many, "tide-each-many", NULL, setup_many, each)
DISPATCH_VARIANT(each_gathered, "tide-each-gathered", NULL, setup_many, gathered)

const bench_variant *const bench_dispatch_random_variants[] = {
    &cases_random, &lookup_random, &compiled_random, &each_one, &each_many, &each_gathered, NULL,
};

/* --- the sweep, as it learns -------------------------------------------------------------- */

/* One step after each round, as a program does that steps by hand; the stager works meanwhile. */
static uint64_t learning_pass(dispatch_state *s)
{
    uint64_t done = 0;
    for (item *at = s->items, *end = s->items + s->rows; at != end;) {
        TIDE_DISPATCH(s->generic, at->type, at);
        NEXT;
        if (done % ROUND == 0)
            tide_step();
    }
    return done;
}

static uint64_t learning_run(void *state, uint64_t operations)
{
    uint64_t done = 0;
    while (done < operations)
        done += learning_pass(state);
    return done;
}
PROVE(learning)

static bool learning_verify(void *state, uint64_t operations)
{
    dispatch_state *s = state;
    (void)operations;
    if (tide_generic_unmet(s->generic) == s->unmet)
        return true;
    bench_complain("dispatch: calls found no method");
    return false;
}

/* Per 100 000 calls, but for the tier at the end. */
static size_t learned(void *state, uint64_t operations, bench_figure *out, size_t room)
{
    const dispatch_state *s = state;
    tide_learning_statistics now;
    tide_site_information site;
    double each = 1e5 / (double)operations;
    if (room < 4 || tide_learning_stats(&now) != TIDE_OK ||
        tide_site_info(site_of("learning_pass").sites[0], &site) != TIDE_OK)
        return 0;
    out[0] = (bench_figure){"windows", (double)(now.windows - s->warm.windows) * each};
    out[1] = (bench_figure){"compiles", (double)(now.compiled - s->warm.compiled) * each};
    out[2] = (bench_figure){"reused", (double)(now.reused - s->warm.reused) * each};
    out[3] = (bench_figure){"tier", (double)site.tier};
    return 4;
}

static const bench_variant learning_sweep = {
    "tide-learning", BENCH_MISSING_STAGER, setup_sweep, learning_prove,
    learning_run,    learning_verify,      teardown,    learned};

const bench_variant *const bench_dispatch_sweep_variants[] = {
    &cases_sweep,
    &lookup_sweep,
    &learning_sweep,
    NULL,
};

/* SPDX-License-Identifier: MIT */
/* Sites of both kinds, from the macro in the source to code that runs: learned without being
 * told anything, executed, missed when they should be. (That code does what the general path does is
 * tested in tests/stage/compiled.c.) */
#define _GNU_SOURCE
#include "learning.h"

#include <stdio.h>

#include <tidepool/dynamic.h>
#include <tidepool/generic.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>

static tide_generic *generic;

/* ---- as written in a program ------------------------------------------------------------- */

static void add_one(void *args)
{
    ++*(unsigned *)args;
}

static void add_ten(void *args)
{
    *(unsigned *)args += 10;
}

static bool written_scope(tide_type type)
{
    TIDE_SCOPE(learning_pool);
    return tide_acquire_type(learning_pool, type, 5) != NULL &&
           tide_acquire(learning_pool, float, 3) != NULL;
}

static bool written_dispatch(tide_type type)
{
    unsigned calls = 0;
    TIDE_DISPATCH(generic, type, &calls);
    return calls == 1;
}

struct written {
    const char *function;
    bool (*use)(tide_type);
    tide_site *site;
};

static bool find_written(tide_site *site, void *user)
{
    struct written *wanted = user;
    if (site->place.function != NULL && strcmp(site->place.function, wanted->function) == 0)
        wanted->site = site;
    return wanted->site == NULL;
}

static void every_kind_is_learned_as_written(void **state)
{
    (void)state;
    need_stager();
    struct written all[] = {{"written_scope", written_scope, NULL},
                            {"written_dispatch", written_dispatch, NULL}};
    generic = tide_generic_create("written");
    expect_ok(tide_generic_add(generic, TIDE_F64, add_one));
    for (unsigned k = 0; k < TIDE_KIND_COUNT; k++) {
        struct written *w = &all[k];
        assert_true(w->use(TIDE_F64));
        tide_site_each(find_written, w);
        assert_non_null(w->site);
        assert_int_equal(w->site->kind, k);
        for (unsigned i = 0; i < 800; i++) {
            assert_true(w->use(TIDE_F64));
            if (i % 100 == 99)
                settle();
        }
        assert_int_equal(tier_of(w->site), best_tier(k));
        assert_true(w->use(TIDE_F64));
        uint64_t runs = runs_of(w->site), misses = misses_of(w->site);
        for (unsigned i = 0; i < 500; i++)
            assert_true(w->use(TIDE_F64));
        assert_int_equal(runs_of(w->site), k == TIDE_KIND_DISPATCH ? 0 : runs + 500);
        assert_int_equal(misses_of(w->site), misses);
    }
}

/* ---- misses ------------------------------------------------------------------------------ */

static void misses_are_counted_one_for_each_use(void **state)
{
    (void)state;
    need_stager();
    for (tide_kind kind = 0; kind < TIDE_KIND_COUNT; kind++) {
        char name[64];
        snprintf(name, sizeof name, "kinds: misses %s", tide_kind_name(kind));
        use u = use_of(name, kind, learning_pool, 2, TIDE_F64, TIDE_I32), other = u;
        other.types[0] = TIDE_U64;
        until(&u, TIDE_TIER_COMPILED);
        use_times(&u, 1);
        uint64_t misses = misses_of(u.site), runs = runs_of(u.site);
        use_times(&other, 50);
        assert_int_equal(misses_of(u.site), misses + 50);
        assert_int_equal(runs_of(u.site), kind == TIDE_KIND_SCOPE ? runs + 50 : runs);
        expect_executed(&u, 50);
    }
}

/* ---- many types -------------------------------------------------------------------------- */

static void use_each(use *u, const tide_type *types, unsigned count, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        u->types[0] = types[i % count];
        use_times(u, 1);
        if (i % 100 == 99)
            settle();
    }
}

static void a_megamorphic_dispatch_stays_general_and_says_why(void **state)
{
    (void)state;
    static const tide_type types[] = {TIDE_F64, TIDE_I32, TIDE_F32, TIDE_U8,
                                      TIDE_I64, TIDE_U16, TIDE_I16, TIDE_I8};
    use u = use_of("kinds: mega", TIDE_KIND_DISPATCH, NULL, 1, TIDE_F64);
    uint64_t ordered = learned().ordered;
    use_each(&u, types, 8, 1200);
    assert_int_equal(tier_of(u.site), TIDE_TIER_FULL);
    assert_int_equal(learned().ordered, ordered);
    assert_string_equal(reason_of(u.site), "more different types than are worth testing for");
}

enum { GUARDS = 16 };

/* Each of the types is 1.4 times as frequent as the one before it, in any part of the stream: each
 * use earns every type its share, and the type that has earned most is used. */
static void use_unevenly(use *u, const tide_type *types, unsigned times)
{
    double share[GUARDS], earned[GUARDS] = {0}, all = 0;
    for (unsigned i = 0; i < GUARDS; i++)
        all += share[i] = i == 0 ? 1 : share[i - 1] * 1.4;
    for (; times > 0; times--) {
        unsigned most = 0;
        for (unsigned i = 0; i < GUARDS; i++) {
            earned[i] += share[i];
            most = earned[i] > earned[most] ? i : most;
        }
        earned[most] -= all;
        u->types[0] = types[most];
        use_times(u, 1);
    }
    settle();
}

static void sixteen_types_get_guards_in_the_order_of_their_frequency(void **state)
{
    (void)state;
    tide_type types[GUARDS + 1];
    for (unsigned i = 0; i <= GUARDS; i++) {
        char name[64];
        snprintf(name, sizeof name, "kinds: guarded %u", i);
        types[i] = tide_type_register(name, 8, 8);
    }
    set("window_calls", 600);
    use u = use_of("kinds: sixteen", TIDE_KIND_DISPATCH, NULL, 1, types[0]);
    for (unsigned i = 0; i < 500 && tier_of(u.site) != TIDE_TIER_TABLE; i++)
        use_unevenly(&u, types, 700);
    tide_site_information info = info_of(u.site);
    assert_int_equal(info.tier, TIDE_TIER_TABLE);
    assert_int_equal(info.type_count, GUARDS);
    for (unsigned i = 0; i < 10; i++) /* the rarer ones may be seen equally often */
        assert_int_equal(info.types[i], types[GUARDS - 1 - i]);
    for (unsigned i = 0; i < GUARDS; i++) {
        u.types[0] = types[i];
        expect_executed(&u, 3);
    }
    uint64_t misses = misses_of(u.site);
    u.types[0] = types[GUARDS];
    use_times(&u, 1);
    assert_int_equal(misses_of(u.site), misses + 1);
}

/* ---- generic functions ------------------------------------------------------------------- */

static unsigned dispatch_once(tide_site *site, tide_generic *of, tide_type type)
{
    unsigned sum = 0;
    tide_site_dispatch(site, of, type, &sum);
    return sum;
}

static void a_method_that_was_replaced_is_the_one_called(void **state)
{
    (void)state;
    use u = use_of("kinds: replaced", TIDE_KIND_DISPATCH, NULL, 1, TIDE_F64);
    until(&u, TIDE_TIER_TABLE);
    expect_executed(&u, 100);
    expect_ok(tide_generic_add(u.generic, TIDE_F64, add_ten));
    assert_int_equal(dispatch_once(u.site, u.generic, TIDE_F64), 10);
    expect_ok(tide_generic_add(u.generic, TIDE_F64, add_one));
    expect_executed(&u, 100);
}

static void types_served_by_the_fallback_stay_general_and_say_why(void **state)
{
    (void)state;
    tide_site *site = tide_site_register_kind("kinds: fallback", TIDE_KIND_DISPATCH);
    tide_generic *of = tide_generic_create("kinds: fallback");
    expect_ok(tide_generic_add(of, TIDE_ALL_TYPES, add_ten));
    for (unsigned i = 0; i < 1000; i++) {
        assert_int_equal(dispatch_once(site, of, TIDE_F64), 10);
        if (i % 100 == 99)
            settle();
    }
    assert_int_equal(tier_of(site), TIDE_TIER_FULL);
    assert_string_equal(reason_of(site), "its generic function has no method of the types' own");
    assert_int_equal(dispatch_once(site, of, TIDE_I32), 10);
    assert_int_equal(tide_generic_unmet(of), 0);
}

/* A plan is for one generic function. What was seen while there were several says nothing once there
 * is one. */
static void a_dispatch_of_several_functions_learns_when_there_is_one(void **state)
{
    (void)state;
    enum { USES = 200 };
    use one = use_of("kinds: several functions", TIDE_KIND_DISPATCH, NULL, 1, TIDE_F64);
    use other = one;
    other.generic = tide_generic_create("kinds: several functions, the second");
    expect_ok(tide_generic_add(other.generic, TIDE_I32, add_one));
    other.types[0] = TIDE_I32;
    for (size_t i = 0; i < USES; i++) {
        use_times(&one, 1);
        use_times(&other, 1);
    }
    settle();
    assert_true(info_of(one.site).samples != 0);
    assert_int_equal(tier_of(one.site), TIDE_TIER_FULL);
    assert_string_equal(reason_of(one.site), "its generic function differs from use to use");
    until(&other, TIDE_TIER_TABLE);
    expect_types(one.site, 1, TIDE_I32);
}

/* A table of another function would make each use dearer than none. */
static void a_dispatch_that_gets_no_plan_more_keeps_no_table_of_another_function(void **state)
{
    (void)state;
    use one = use_of("kinds: plans full", TIDE_KIND_DISPATCH, NULL, 1, TIDE_F64);
    use other = one;
    other.generic = tide_generic_create("kinds: plans full, the second");
    expect_ok(tide_generic_add(other.generic, TIDE_F64, add_one));
    set("plans_max", 1);
    until(&one, TIDE_TIER_TABLE);
    until(&other, TIDE_TIER_FULL);
    assert_non_null(strstr(reason_of(one.site), "as many plans as are remembered"));
    uint64_t misses = misses_of(one.site);
    use_times(&other, 100);
    assert_int_equal(misses_of(one.site), misses);
    until(&one, TIDE_TIER_TABLE); /* that of its function is still there */
    expect_executed(&one, 100);
}

/* It tests for the most frequent type still. */
static void a_dispatch_that_gets_no_plan_more_keeps_a_table_of_its_function(void **state)
{
    (void)state;
    static const tide_type types[] = {TIDE_F64, TIDE_F64, TIDE_F64, TIDE_I32};
    use u = use_of("kinds: plans full, one function", TIDE_KIND_DISPATCH, NULL, 1, TIDE_F64);
    set("plans_max", 1);
    until(&u, TIDE_TIER_TABLE);
    set("window_every", 1);
    use_each(&u, types, 4, 2000);
    assert_non_null(strstr(reason_of(u.site), "as many plans as are remembered"));
    assert_int_equal(tier_of(u.site), TIDE_TIER_TABLE);
    expect_types(u.site, 1, TIDE_F64);
}

static void a_dispatch_without_a_method_says_so(void **state)
{
    (void)state;
    tide_generic *of = tide_generic_create("kinds: unmet");
    use u = use_of("kinds: unmet", TIDE_KIND_DISPATCH, NULL, 1, TIDE_F64);
    u.generic = of;
    expect_ok(tide_generic_add(of, TIDE_F64, add_one));
    until(&u, TIDE_TIER_TABLE);
    assert_int_equal(dispatch_once(u.site, of, TIDE_I32), 0);
    assert_int_equal(tide_generic_unmet(of), 1);
    assert_non_null(strstr(tide_error_message(), "kinds: unmet"));
    expect_executed(&u, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(every_kind_is_learned_as_written),
        LEARNING_TEST(misses_are_counted_one_for_each_use),
        LEARNING_TEST(a_megamorphic_dispatch_stays_general_and_says_why),
        LEARNING_TEST(sixteen_types_get_guards_in_the_order_of_their_frequency),
        LEARNING_TEST(a_method_that_was_replaced_is_the_one_called),
        LEARNING_TEST(types_served_by_the_fallback_stay_general_and_say_why),
        LEARNING_TEST(a_dispatch_of_several_functions_learns_when_there_is_one),
        LEARNING_TEST(a_dispatch_that_gets_no_plan_more_keeps_no_table_of_another_function),
        LEARNING_TEST(a_dispatch_that_gets_no_plan_more_keeps_a_table_of_its_function),
        LEARNING_TEST(a_dispatch_without_a_method_says_so),
    };
    return cmocka_run_group_tests_name("learning: kinds", tests, learning_make_pool,
                                       learning_drop_pool);
}

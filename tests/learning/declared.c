/* SPDX-License-Identifier: MIT */
/* Dispatches whose types the program declares: compiled before their first use, with guards in the
 * order given, and kept whatever comes. */
#include "learning.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include <tidepool/generic.h>
#include <tidepool/learn.h>
#include <tidepool/site.h>

#include "tests/random.h"

static void add_ten(void *args)
{
    *(unsigned *)args += 10;
}

static unsigned dispatch_once(tide_site *site, tide_generic *of, tide_type type)
{
    unsigned sum = 0;
    tide_site_dispatch(site, of, type, &sum);
    return sum;
}

/* A generic function whose methods for two types add ten. */
static tide_generic *make_tens(const char *name)
{
    tide_generic *made = tide_generic_create(name);
    assert_non_null(made);
    expect_ok(tide_generic_add(made, TIDE_F64, add_ten));
    expect_ok(tide_generic_add(made, TIDE_I32, add_ten));
    return made;
}

/* The plan in force is compiled, with guards for exactly these types in this order. */
static void expect_guards(const tide_site *site, const tide_type *types, uint32_t count)
{
    tide_site_information info = info_of(site);
    assert_int_equal(info.tier, TIDE_TIER_TABLE);
    assert_int_equal(info.type_count, count);
    assert_memory_equal(info.types, types, count * sizeof *types);
}

static use declare(const char *name, const tide_type *types, uint32_t count)
{
    use u = use_of(name, TIDE_KIND_DISPATCH, NULL, 1, types[0]);
    expect_ok(tide_site_declare_dispatch(u.site, u.generic, types, count));
    return u;
}

/* ---- what a declaration gives ------------------------------------------------------------ */

static void a_declared_dispatch_has_its_table_before_its_first_use(void **state)
{
    (void)state;
    static const tide_type types[] = {TIDE_U8, TIDE_F64, TIDE_I32};
    use u = declare("declared: unused", types, 3);
    settle();
    expect_guards(u.site, types, 3);
    assert_int_equal(info_of(u.site).samples, 0);
    for (unsigned i = 0; i < 3; i++) {
        u.types[0] = types[i];
        expect_executed(&u, 10);
    }
    uint64_t misses = misses_of(u.site);
    u.types[0] = TIDE_F32;
    use_times(&u, 5);
    assert_int_equal(misses_of(u.site), misses + 5);
}

static void as_many_types_as_a_plan_has_methods_are_guarded(void **state)
{
    (void)state;
    tide_type types[TIDE_PLAN_METHODS];
    for (unsigned i = 0; i < TIDE_PLAN_METHODS; i++) {
        char name[64];
        snprintf(name, sizeof name, "declared: type %u", i);
        types[TIDE_PLAN_METHODS - 1 - i] = tide_type_register(name, 8, 8);
    }
    set("guards_max", 2); /* a limit of what is learned */
    use u = declare("declared: sixteen", types, TIDE_PLAN_METHODS);
    settle();
    expect_guards(u.site, types, TIDE_PLAN_METHODS);
    for (unsigned i = 0; i < TIDE_PLAN_METHODS; i++) {
        u.types[0] = types[i];
        expect_executed(&u, 3);
    }
}

static void a_declaration_holds_whatever_is_observed_until_reset(void **state)
{
    (void)state;
    static const tide_type types[] = {TIDE_F64, TIDE_I32};
    use u = declare("declared: held", types, 2);
    settle();
    u.types[0] = TIDE_U8;
    learn_windows(&u, 5);
    expect_guards(u.site, types, 2);
    assert_string_equal(reason_of(u.site), "its types were declared");
    expect_ok(tide_site_reset(u.site));
    assert_int_equal(tier_of(u.site), TIDE_TIER_FULL);
    until(&u, TIDE_TIER_TABLE);
    expect_guards(u.site, &(tide_type){TIDE_U8}, 1);
}

static void a_declaration_replaces_what_was_learned(void **state)
{
    (void)state;
    static const tide_type types[] = {TIDE_I32, TIDE_F64};
    use u = use_of("declared: late", TIDE_KIND_DISPATCH, NULL, 1, TIDE_F64);
    until(&u, TIDE_TIER_TABLE);
    expect_ok(tide_site_declare_dispatch(u.site, u.generic, types, 2));
    assert_int_equal(tier_of(u.site), TIDE_TIER_FULL);
    assert_true(use_once(&u));
    settle();
    expect_guards(u.site, types, 2);
    expect_executed(&u, 10);
}

static void another_order_is_another_plan_and_the_same_one_comes_back(void **state)
{
    (void)state;
    static const tide_type one[] = {TIDE_I32, TIDE_F64}, other[] = {TIDE_F64, TIDE_I32};
    use u = declare("declared: order", one, 2);
    settle();
    expect_guards(u.site, one, 2);
    expect_ok(tide_site_declare_dispatch(u.site, u.generic, other, 2));
    settle();
    expect_guards(u.site, other, 2);
    expect_ok(tide_site_declare_dispatch(u.site, u.generic, other, 2));
    settle();
    expect_guards(u.site, other, 2);
    expect_ok(tide_site_declare_dispatch(u.site, u.generic, one, 2));
    settle();
    expect_guards(u.site, one, 2);
    expect_executed(&u, 10);
}

static void a_pinned_site_keeps_its_tier_when_it_is_declared(void **state)
{
    (void)state;
    static const tide_type types[] = {TIDE_F64};
    use u = use_of("declared: pinned", TIDE_KIND_DISPATCH, NULL, 1, TIDE_F64);
    expect_ok(tide_site_pin(u.site, TIDE_TIER_FULL));
    expect_ok(tide_site_declare_dispatch(u.site, u.generic, types, 1));
    settle();
    assert_int_equal(tier_of(u.site), TIDE_TIER_FULL);
    expect_ok(tide_site_unpin(u.site));
    settle();
    expect_guards(u.site, types, 1);
}

static void code_for_declared_types_waits_until_it_pays(void **state)
{
    (void)state;
    set("break_even", 1);
    uint64_t ordered = learned().ordered;
    use u = use_of("declared: cold", TIDE_KIND_FRAME, learning_pool, 2, TIDE_F64, TIDE_I32);
    expect_ok(tide_site_declare(u.site, u.types, 2));
    use_times(&u, 10);
    settle();
    assert_int_equal(learned().ordered, ordered);
    assert_int_equal(tier_of(u.site), TIDE_TIER_FULL);
    set("break_even", 0);
    settle();
    assert_int_equal(learned().ordered, ordered + 1);
}

/* ---- other generic functions ------------------------------------------------------------- */

static void a_declaration_for_another_generic_function_gets_a_table_of_that(void **state)
{
    (void)state;
    static const tide_type types[] = {TIDE_F64, TIDE_I32};
    use u = declare("declared: first function", types, 2);
    settle();
    expect_executed(&u, 10);
    tide_generic *tens = make_tens("declared: second function");
    expect_ok(tide_site_declare_dispatch(u.site, tens, types, 2));
    settle();
    expect_guards(u.site, types, 2);
    uint64_t misses = misses_of(u.site);
    assert_int_equal(dispatch_once(u.site, tens, TIDE_I32), 10);
    use_times(&u, 3);
    assert_int_equal(misses_of(u.site), misses + 3);
}

/* ---- other threads ----------------------------------------------------------------------- */

enum { CALLERS = 3, CALLED = 4 };

static const tide_type called_types[CALLED] = {TIDE_F64, TIDE_I32, TIDE_F32, TIDE_U8};
static const unsigned called_sums[CALLED] = {1, 10, 100, 1000};

static struct {
    tide_site *site;
    tide_generic *of;
    bool stop, failed; /* atomic */
    uint64_t calls;    /* atomic */
} called;

/* Each method adds another number. */
#define CALLED_METHOD(index)                     \
    static void add_##index(void *args)          \
    {                                            \
        *(unsigned *)args += called_sums[index]; \
    }
CALLED_METHOD(0)
CALLED_METHOD(1)
CALLED_METHOD(2)
CALLED_METHOD(3)
#undef CALLED_METHOD

static void *call_at_random(void *seed)
{
    rng random = {(uintptr_t)seed};
    while (!__atomic_load_n(&called.stop, __ATOMIC_RELAXED)) {
        uint64_t i = rng_below(&random, CALLED);
        if (dispatch_once(called.site, called.of, called_types[i]) != called_sums[i])
            __atomic_store_n(&called.failed, true, __ATOMIC_RELAXED);
        __atomic_fetch_add(&called.calls, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* Lets the callers go on for some calls. */
static void wait_for_calls(void)
{
    enum { SOME = 50 };
    uint64_t before = __atomic_load_n(&called.calls, __ATOMIC_RELAXED);
    while (__atomic_load_n(&called.calls, __ATOMIC_RELAXED) < before + SOME)
        sched_yield();
}

/* Declares some of the types, the first of them somewhere in the list. */
static void declare_some(rng *random)
{
    tide_type types[CALLED];
    uint64_t count = 1 + rng_below(random, CALLED), first = rng_below(random, CALLED);
    for (uint64_t i = 0; i < count; i++)
        types[i] = called_types[(first + i) % CALLED];
    expect_ok(tide_site_declare_dispatch(called.site, called.of, types, count));
}

/* What is tested for changes, and the site is pinned and reset, while threads are in that very
 * code. */
static void types_change_while_threads_dispatch(void **state)
{
    (void)state;
    static tide_method *const methods[CALLED] = {add_0, add_1, add_2, add_3};
    pthread_t threads[CALLERS];
    rng random = {77};
    called.site = tide_site_register_kind("declared: threads", TIDE_KIND_DISPATCH);
    called.of = tide_generic_create("declared: threads");
    for (unsigned i = 0; i < CALLED; i++)
        expect_ok(tide_generic_add(called.of, called_types[i], methods[i]));
    called.stop = called.failed = false;
    for (uintptr_t i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_at_random, (void *)(i + 1)), 0);
    for (size_t i = 0, times = scaled(200, 50); i < times; i++) {
        declare_some(&random);
        if (i % 10 == 9)
            settle();
        else
            expect_ok(tide_step());
        wait_for_calls();
        if (i % 50 == 25)
            expect_ok(tide_site_pin(called.site, TIDE_TIER_FULL));
        if (i % 50 == 30)
            expect_ok(tide_site_reset(called.site));
    }
    declare_some(&random);
    settle();
    assert_int_equal(tier_of(called.site), TIDE_TIER_TABLE);
    __atomic_store_n(&called.stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_false(called.failed);
}

/* ---- refusals ---------------------------------------------------------------------------- */

static void a_wrong_declaration_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    static const tide_type held[] = {TIDE_I32}, own[] = {TIDE_F64, TIDE_I32},
                           twice[] = {TIDE_F64, TIDE_I32, TIDE_F64}, unmet[] = {TIDE_F64, TIDE_U8},
                           many[TIDE_PLAN_METHODS + 1] = {TIDE_F64};
    const tide_type unknown[] = {TIDE_F64, TIDE_TYPE_LIMIT - 1};
    tide_generic *of = make_tens("declared: refused");
    expect_ok(tide_generic_add(of, TIDE_ALL_TYPES, add_ten));
    tide_site *site = tide_site_register_kind("declared: refused", TIDE_KIND_DISPATCH);
    tide_site *scope = tide_site_register("declared: a scope");
    expect_ok(tide_site_declare_dispatch(site, of, held, 1));
    settle();
    expect_status(tide_site_declare_dispatch(NULL, of, own, 2), TIDE_ERROR_ARGUMENT);
    expect_status(tide_site_declare_dispatch(site, NULL, own, 2), TIDE_ERROR_ARGUMENT);
    expect_status(tide_site_declare_dispatch(site, of, NULL, 2), TIDE_ERROR_ARGUMENT);
    expect_status(tide_site_declare_dispatch(site, of, own, 0), TIDE_ERROR_ARGUMENT);
    expect_status(tide_site_declare_dispatch(site, of, many, TIDE_PLAN_METHODS + 1),
                  TIDE_ERROR_ARGUMENT);
    expect_status(tide_site_declare_dispatch(site, of, twice, 3), TIDE_ERROR_ARGUMENT);
    expect_status(tide_site_declare_dispatch(scope, of, own, 2), TIDE_ERROR_ARGUMENT);
    expect_status(tide_site_declare_dispatch(site, of, unknown, 2), TIDE_ERROR_TYPE);
    expect_status(tide_site_declare_dispatch(site, of, &(tide_type){TIDE_ALL_TYPES}, 1),
                  TIDE_ERROR_TYPE);
    expect_status(tide_site_declare_dispatch(site, of, unmet, 2), TIDE_ERROR_TYPE);
    assert_non_null(strstr(tide_error_message(), "declared: refused"));
    settle();
    expect_guards(site, held, 1);
    assert_int_equal(tier_of(scope), TIDE_TIER_FULL);
}

static unsigned gave_up; /* events */

static void count_gave_up(const tide_event *event, void *user)
{
    (void)user;
    gave_up += event->kind == TIDE_EVENT_GAVE_UP;
}

/* What no plan is left for stays general, however often a round asks: the plan that was in force
 * does not come back, and it is said once. */
static void a_declaration_beyond_the_plans_leaves_the_site_general(void **state)
{
    (void)state;
    static const tide_type first[] = {TIDE_F64}, second[] = {TIDE_I32, TIDE_F64};
    set("plans_max", 1);
    use u = declare("declared: beyond", first, 1);
    settle();
    expect_guards(u.site, first, 1);
    gave_up = 0;
    tide_event_set_handler(count_gave_up, NULL);
    expect_ok(tide_site_declare_dispatch(u.site, u.generic, second, 2));
    for (unsigned i = 0; i < 20; i++) {
        use_times(&u, 10);
        expect_ok(tide_step());
    }
    assert_int_equal(tier_of(u.site), TIDE_TIER_FULL);
    assert_int_equal(gave_up, 1);
    expect_ok(tide_site_declare_dispatch(u.site, u.generic, first, 1)); /* for this there is one */
    settle();
    expect_guards(u.site, first, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(a_declared_dispatch_has_its_table_before_its_first_use),
        LEARNING_TEST(as_many_types_as_a_plan_has_methods_are_guarded),
        LEARNING_TEST(a_declaration_holds_whatever_is_observed_until_reset),
        LEARNING_TEST(a_declaration_replaces_what_was_learned),
        LEARNING_TEST(another_order_is_another_plan_and_the_same_one_comes_back),
        LEARNING_TEST(a_pinned_site_keeps_its_tier_when_it_is_declared),
        LEARNING_TEST(code_for_declared_types_waits_until_it_pays),
        LEARNING_TEST(a_declaration_for_another_generic_function_gets_a_table_of_that),
        LEARNING_TEST(types_change_while_threads_dispatch),
        LEARNING_TEST(a_wrong_declaration_is_refused_and_changes_nothing),
        LEARNING_TEST(a_declaration_beyond_the_plans_leaves_the_site_general),
    };
    return cmocka_run_group_tests_name("learning: declared", tests, learning_make_pool,
                                       learning_drop_pool);
}

/* SPDX-License-Identifier: MIT */
/* What the program says of scopes before they are used; code that it orders
 * though it does not pay. */
#define _GNU_SOURCE
#include "learning.h"

#include <stdio.h>
#include <stdlib.h>

#include <tidepool/learn.h>
#include <tidepool/profile.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>

/* The plan in force is compiled, for exactly these types in this order. */
static void expect_code_for(const tide_site *site, const tide_type *types, uint32_t count)
{
    tide_site_information info = info_of(site);
    assert_int_equal(info.tier, TIDE_TIER_COMPILED);
    assert_int_equal(info.type_count, count);
    assert_memory_equal(info.types, types, count * sizeof *types);
    assert_string_equal(info.reason_code, "untried");
}

/* ---- declared ---------------------------------------------------------------------------- */

static void a_declared_scope_is_compiled_before_its_first_use(void **state)
{
    (void)state;
    need_stager();
    static const tide_type types[] = {TIDE_I32, TIDE_F64};
    use u = use_of("ordered: first", TIDE_KIND_SCOPE, learning_pool, 2, TIDE_F64, TIDE_I32);
    expect_ok(tide_site_declare(u.site, u.types, 2));
    settle();
    expect_code_for(u.site, types, 2);
    assert_int_equal(info_of(u.site).samples, 0);
    expect_executed(&u, 10);
}

static void a_declared_scope_is_compiled_and_keeps_its_types(void **state)
{
    (void)state;
    need_stager();
    static const tide_type types[] = {TIDE_I32, TIDE_F64};
    use u = use_of("ordered: kept", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    expect_ok(tide_site_declare(u.site, types, 2));
    settle();
    expect_code_for(u.site, types, 2);
    expect_executed(&u, 10);
    u.types[0] = TIDE_U8;
    learn_windows(&u, 5);
    expect_code_for(u.site, types, 2);
    expect_ok(tide_site_reset(u.site));
    until(&u, TIDE_TIER_COMPILED);
    expect_code_for(u.site, &(tide_type){TIDE_U8}, 1);
}

static void a_wrong_declaration_is_refused(void **state)
{
    (void)state;
    static const tide_type one[] = {TIDE_F64};
    tide_site *scope = tide_site_register("ordered: bad scope");
    tide_site *dispatch = tide_site_register_kind("ordered: bad dispatch", TIDE_KIND_DISPATCH);
    expect_status(tide_site_declare(scope, &(tide_type){0}, 1), TIDE_ERROR_TYPE);
    expect_status(tide_site_declare(scope, NULL, 1), TIDE_ERROR_ARGUMENT);
    expect_status(tide_site_declare(NULL, one, 1), TIDE_ERROR_ARGUMENT);
    expect_status(tide_site_declare(dispatch, one, 1), TIDE_ERROR_ARGUMENT);
    assert_non_null(strstr(tide_error_message(), "dispatch declares nothing"));
    expect_status(tide_site_compile_now(dispatch), TIDE_ERROR_STATE);
}

/* A declaration of no types takes away what was learned before, and the code for that. */
static void a_scope_declared_without_types_gets_no_code(void **state)
{
    (void)state;
    need_stager();
    set("break_even", 1e6);
    use u = use_of("ordered: no types", TIDE_KIND_SCOPE, learning_pool, 2, TIDE_F64, TIDE_I32);
    learn_windows(&u, 2);
    expect_types(u.site, 2, TIDE_F64, TIDE_I32);
    uint64_t ordered = learned().ordered;
    expect_ok(tide_site_declare(u.site, NULL, 0));
    set("break_even", 0);
    learn_windows(&u, 3);
    tide_site_information info = info_of(u.site);
    assert_int_equal(info.tier, TIDE_TIER_TABLE);
    assert_int_equal(info.type_count, 0);
    assert_string_equal(info.reason_code, "declared");
    assert_int_equal(learned().ordered, ordered);
}

/* It would fail again and again, and keep other sites from being compiled. */
static void a_scope_of_more_types_than_code_saves_is_not_ordered(void **state)
{
    (void)state;
    need_stager();
    static const tide_type types[] = {TIDE_I32, TIDE_F32, TIDE_F64, TIDE_I64, TIDE_I8, TIDE_U8};
    use u = use_of("ordered: wide", TIDE_KIND_SCOPE, learning_pool, 6, types[0], types[1], types[2],
                   types[3], types[4], types[5]);
    uint64_t ordered = learned().ordered, failed = learned().failed;
    expect_ok(tide_site_declare(u.site, types, 6));
    learn_windows(&u, 3);
    assert_int_equal(tier_of(u.site), TIDE_TIER_TABLE);
    assert_string_equal(info_of(u.site).reason_code, "many_types");
    expect_status(tide_site_compile_now(u.site), TIDE_ERROR_STATE);
    assert_non_null(strstr(tide_error_message(), "more types"));
    assert_int_equal(learned().ordered, ordered);
    assert_int_equal(learned().failed, failed);
    u.count = 4;
    expect_ok(tide_site_declare(u.site, types, 4));
    settle();
    expect_code_for(u.site, types, 4);
}

/* What was learned before is not ordered in place of what was declared since, and comes back without code. */
static void an_order_is_not_for_a_plan_without_code(void **state)
{
    (void)state;
    need_stager();
    static const tide_type types[] = {TIDE_I32, TIDE_F32, TIDE_F64, TIDE_I64, TIDE_I8, TIDE_U8};
    use u = use_of("ordered: replaced", TIDE_KIND_SCOPE, learning_pool, 6, types[0], types[1],
                   types[2], types[3], types[4], types[5]);
    learn_windows(&u, 2);
    assert_int_equal(tier_of(u.site), TIDE_TIER_TABLE);
    for (uint32_t i = 0; i < info_of(u.site).rival_count; i++)
        assert_int_not_equal(info_of(u.site).rivals[i].tier, TIDE_TIER_COMPILED);
    expect_ok(tide_site_declare(u.site, types, 1));
    expect_ok(tide_site_compile_now(u.site));
    settle();
    expect_code_for(u.site, types, 1);
    expect_ok(tide_site_declare(u.site, types, 6));
    learn_windows(&u, 3);
    settle();
    assert_int_equal(tier_of(u.site), TIDE_TIER_TABLE);
}

/* ---- ordered ----------------------------------------------------------------------------- */

static void ordered_code_need_not_pay(void **state)
{
    (void)state;
    need_stager();
    set("break_even", 1e6);
    use u = use_of("ordered: now", TIDE_KIND_SCOPE, learning_pool, 2, TIDE_F64, TIDE_U64);
    learn_windows(&u, 2);
    settle();
    assert_int_equal(tier_of(u.site), TIDE_TIER_TABLE);
    uint64_t ordered = learned().ordered;
    expect_ok(tide_site_compile_now(u.site));
    expect_ok(tide_site_compile_now(u.site));     /* twice is once */
    assert_int_equal(learned().ordered, ordered); /* it waits for nothing: rounds do it */
    until(&u, TIDE_TIER_COMPILED);
    assert_int_equal(learned().ordered, ordered + 1);
    expect_executed(&u, 10);
    expect_ok(tide_site_compile_now(u.site)); /* it is there */
    settle();
    assert_int_equal(learned().ordered, ordered + 1);
}

/* Before anything is measured there is a model: the more specialised, the cheaper. */
static void each_tier_has_a_cost(void **state)
{
    (void)state;
    for (tide_kind kind = 0; kind < TIDE_KIND_COUNT; kind++) {
        char name[64];
        snprintf(name, sizeof name, "ordered: costs %s", tide_kind_name(kind));
        set("break_even", 1e6);
        use u = use_of(name, kind, learning_pool, 2, TIDE_F64, TIDE_I32);
        assert_true(use_once(&u));
        tide_site_information before = info_of(u.site);
        assert_true(before.use_ns > 0 && !before.use_measured && before.rival_count == 0);
        learn_windows(&u, 2);
        tide_site_information info = info_of(u.site);
        bool code = kind == TIDE_KIND_SCOPE;
        assert_int_equal(info.rival_count, 1 + (unsigned)code);
        const tide_site_rival *last = &info.rivals[info.rival_count - 1];
        assert_true(!last->measured && !info.use_measured && last->ns > 0);
        assert_true(!code || (last->tier == TIDE_TIER_COMPILED && last->ns < info.use_ns));
        assert_true(info.rivals[0].tier == TIDE_TIER_FULL && info.rivals[0].ns > info.use_ns &&
                    info.tier == TIDE_TIER_TABLE);
    }
}

static void what_is_declared_can_be_ordered_before_its_first_use(void **state)
{
    (void)state;
    need_stager();
    static const tide_type types[] = {TIDE_I32, TIDE_F64}, later[] = {TIDE_U8};
    set("break_even", 1e6);
    use u = use_of("ordered: declared", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    expect_ok(tide_site_declare(u.site, types, 2));
    settle();
    assert_int_equal(tier_of(u.site), TIDE_TIER_TABLE);
    expect_ok(tide_site_compile_now(u.site));
    settle();
    expect_code_for(u.site, types, 2);
    expect_ok(tide_site_compile_now(u.site)); /* it is there: nothing is left to be done later */
    settle();
    expect_ok(tide_site_declare(u.site, later, 1));
    settle();
    assert_int_equal(tier_of(u.site), TIDE_TIER_TABLE); /* that was for the types before */
    expect_ok(tide_site_compile_now(u.site));
    settle();
    expect_code_for(u.site, later, 1);
}

static void an_order_that_cannot_be_is_refused_with_the_reason(void **state)
{
    (void)state;
    tide_type many[9];
    for (unsigned i = 0; i < 9; i++)
        many[i] = (tide_type)(TIDE_I32 + i);
    use u = use_of("ordered: refused", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    expect_status(tide_site_compile_now(NULL), TIDE_ERROR_ARGUMENT);
    expect_status(tide_site_compile_now(u.site), TIDE_ERROR_STATE);
    assert_non_null(strstr(tide_error_message(), "nothing is known"));
    expect_ok(tide_site_declare(u.site, many, 9));
    expect_status(tide_site_compile_now(u.site), TIDE_ERROR_STATE);
    assert_non_null(strstr(tide_error_message(), "more types"));
    expect_ok(tide_site_declare(u.site, many, 1));
    expect_ok(tide_site_pin(u.site, TIDE_TIER_FULL));
    expect_status(tide_site_compile_now(u.site), TIDE_ERROR_STATE);
    assert_non_null(strstr(tide_error_message(), "pinned"));
    expect_ok(tide_site_unpin(u.site));
    set("learn", 0);
    expect_status(tide_site_compile_now(u.site), TIDE_ERROR_STATE);
    assert_non_null(strstr(tide_error_message(), "learning is off"));
    set("learn", 1);
    expect_ok(tide_site_compile_now(u.site));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(a_declared_scope_is_compiled_before_its_first_use),
        LEARNING_TEST(a_declared_scope_is_compiled_and_keeps_its_types),
        LEARNING_TEST(a_wrong_declaration_is_refused),
        LEARNING_TEST(a_scope_declared_without_types_gets_no_code),
        LEARNING_TEST(a_scope_of_more_types_than_code_saves_is_not_ordered),
        LEARNING_TEST(an_order_is_not_for_a_plan_without_code),
        LEARNING_TEST(ordered_code_need_not_pay),
        LEARNING_TEST(each_tier_has_a_cost),
        LEARNING_TEST(what_is_declared_can_be_ordered_before_its_first_use),
        LEARNING_TEST(an_order_that_cannot_be_is_refused_with_the_reason),
    };
    return cmocka_run_group_tests_name("learning: ordered", tests, learning_make_pool,
                                       learning_drop_pool);
}

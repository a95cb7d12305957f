/* SPDX-License-Identifier: MIT */
/* Call sites: found by themselves or registered by name, declared, pinned, reset. */
#define _GNU_SOURCE
#include "forms.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tidepool/buffers.h>
#include <tidepool/check.h>
#include <tidepool/device.h>
#include <tidepool/dynamic.h>
#include <tidepool/facts.h>
#include <tidepool/learn.h>
#include <tidepool/listen.h>
#include <tidepool/profile.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/tune.h>

/* ---- found by themselves ---- */

static unsigned named_line;

static tide_tier enter_named(tide_pool *pool)
{
    named_line = __LINE__ + 1;
    TIDE_SCOPE_AT(scope, pool, "a named site");
    tide_acquire(pool, double, 1);
    return scope.plan->tier;
}

static tide_tier enter_unnamed(tide_pool *pool)
{
    TIDE_SCOPE_AT(scope, pool, NULL);
    return scope.plan->tier;
}

void never_entered(tide_pool *pool);
void never_entered(tide_pool *pool)
{
    TIDE_SCOPE_NAMED(pool, "never entered");
    TIDE_SCOPE(pool);
}

struct query {
    const char *name, *function;
    tide_site *found;
    size_t matches;
};

static bool site_matches(tide_site *site, void *user)
{
    struct query *query = user;
    bool name = query->name == NULL || (site->name && strcmp(site->name, query->name) == 0);
    bool function = query->function == NULL ||
                    (site->place.function && strcmp(site->place.function, query->function) == 0);
    if (name && function) {
        query->found = site;
        query->matches++;
    }
    return true;
}

static tide_site *find_one(const char *name, const char *function)
{
    struct query query = {name, function, NULL, 0};
    tide_site_each(site_matches, &query);
    assert_int_equal(query.matches, 1);
    return query.found;
}

static tide_site_information info_of(const tide_site *site)
{
    tide_site_information info;
    expect_ok(tide_site_info(site, &info));
    return info;
}

static void a_scope_of_c_is_known_before_it_is_entered(void **state)
{
    (void)state;
    tide_site_information info = info_of(find_one("never entered", NULL));
    assert_string_equal(info.function, "never_entered");
    struct query both = {NULL, "never_entered", NULL, 0};
    tide_site_each(site_matches, &both);
    assert_int_equal(both.matches, 2);
}

static void a_site_knows_where_it_stands(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    enter_named(pool);
    enter_unnamed(pool);
    tide_site_information info = info_of(find_one("a named site", NULL));
    assert_string_equal(info.name, "a named site");
    assert_string_equal(info.function, "enter_named");
    assert_non_null(strstr(info.file, "sites.c"));
    assert_int_equal(info.line, named_line);
    assert_false(info.pinned);
    info = info_of(find_one(NULL, "enter_unnamed"));
    assert_string_equal(info.name, "enter_unnamed");
    expect_ok(tide_pool_destroy(pool));
}

static bool count_site(tide_site *site, void *user)
{
    assert_non_null(site->plan);
    ++*(size_t *)user;
    return true;
}

static bool stop_at_the_third(tide_site *site, void *user)
{
    (void)site;
    return ++*(size_t *)user < 3;
}

static void the_list_holds_each_site_once(void **state)
{
    (void)state;
    size_t count = 0;
    tide_site_each(count_site, &count);
    assert_int_equal(count, tide_site_count());
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    enter_named(pool);
    enter_named(pool);
    assert_int_equal(tide_site_count(), count);
    expect_ok(tide_pool_destroy(pool));
    count = 0;
    tide_site_each(stop_at_the_third, &count);
    assert_int_equal(count, 3);
}

static tide_buffers *of_visitor;

static void expect_kept_out(tide_status status, const char *call)
{
    assert_int_equal(status, TIDE_ERROR_STATE);
    assert_non_null(strstr(tide_error_message(), call));
    assert_non_null(strstr(tide_error_message(), "called by a visitor of sites"));
}

static bool try_what_waits(tide_site *site, void *user)
{
    (void)site;
    expect_kept_out(tide_step(), "tide_step");
    expect_kept_out(tide_settle(1), "tide_settle");
    expect_kept_out(tide_background_stop(), "tide_background_stop");
    expect_kept_out(tide_listen(NULL), "tide_listen");
    expect_kept_out(tide_listen_end(), "tide_listen_end");
    expect_kept_out(tide_buffers_destroy(of_visitor), "tide_buffers_destroy");
    assert_null(tide_device_open("cuda:0"));
    expect_kept_out(tide_error_status(), "tide_device_open");
    expect_ok(tide_device_close(tide_device_open("host"))); /* nothing to wait for */
    *(bool *)user = true;
    return false;
}

/* It has the registry, which those may want for whom the call would wait. */
static void what_waits_is_refused_to_a_visitor(void **state)
{
    (void)state;
    bool tried = false;
    of_visitor = tide_buffers_create(NULL, NULL);
    tide_site_each(try_what_waits, &tried);
    assert_true(tried);
    expect_ok(tide_buffers_destroy(of_visitor));
}

/* ---- registered by name ---- */

static void a_name_registered_twice_is_one_site(void **state)
{
    (void)state;
    char name[] = "by name";
    size_t before = tide_site_count();
    tide_site *site = tide_site_register(name);
    assert_non_null(site);
    name[0] = 'm'; /* it was copied */
    assert_ptr_equal(tide_site_register("by name"), site);
    assert_ptr_not_equal(tide_site_register(name), site);
    assert_int_equal(tide_site_count(), before + 2);
    tide_site_information info = info_of(site);
    assert_string_equal(info.name, "by name");
    assert_string_equal(info.function, "");
    assert_string_equal(info.file, "");
    assert_int_equal(info.line, 0);
}

/* By what tide_site_info calls it: the name, or the function of a static one. */
static void a_site_is_found_by_name_and_kind(void **state)
{
    (void)state;
    tide_site *scope = tide_site_register("found by name");
    tide_site *dispatch = tide_site_register_kind("found by name too", TIDE_KIND_DISPATCH);
    assert_ptr_equal(tide_site_find("found by name", TIDE_KIND_SCOPE), scope);
    assert_ptr_equal(tide_site_find("found by name too", TIDE_KIND_DISPATCH), dispatch);
    assert_null(tide_site_find("found by name", TIDE_KIND_DISPATCH));
    assert_non_null(strstr(tide_error_message(), "no dispatch is named 'found by name'"));
    assert_int_equal(tide_error_status(), TIDE_ERROR_NAME);
    assert_null(tide_site_find(NULL, TIDE_KIND_SCOPE));
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    assert_null(tide_site_find("found by name", TIDE_KIND_COUNT));
    assert_ptr_equal(tide_site_find("a named site", TIDE_KIND_SCOPE),
                     find_one("a named site", NULL));
    assert_ptr_equal(tide_site_find("enter_unnamed", TIDE_KIND_SCOPE),
                     find_one(NULL, "enter_unnamed"));
}

static void a_site_without_a_name_is_refused(void **state)
{
    (void)state;
    tide_site_information info;
    assert_null(tide_site_register(NULL));
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    assert_null(tide_site_register(""));
    expect_status(tide_site_info(NULL, &info), TIDE_ERROR_ARGUMENT);
    expect_status(tide_site_info(tide_site_register("x"), NULL), TIDE_ERROR_ARGUMENT);
    expect_status(tide_site_pin(NULL, TIDE_TIER_FULL), TIDE_ERROR_ARGUMENT);
    expect_status(tide_site_unpin(NULL), TIDE_ERROR_ARGUMENT);
    expect_status(tide_site_reset(NULL), TIDE_ERROR_ARGUMENT);
    expect_status(tide_site_declare(NULL, NULL, 0), TIDE_ERROR_ARGUMENT);
}

/* ---- declared and pinned ---- */

static void expect_plan(const tide_site *site, tide_tier tier, bool pinned, uint32_t types)
{
    tide_site_information info = info_of(site);
    assert_string_equal(tide_tier_name(info.tier), tide_tier_name(tier));
    assert_int_equal(info.pinned, pinned);
    assert_int_equal(info.type_count, types);
}

static void declared_types_are_saved_each_once_in_order(void **state)
{
    (void)state;
    const tide_type types[] = {TIDE_I32, TIDE_F64, TIDE_I32, TIDE_I8, TIDE_F64}, bad[] = {1, 60000};
    tide_site *site = tide_site_register("declared");
    expect_ok(tide_site_declare(site, types, 5));
    expect_plan(site, TIDE_TIER_TABLE, false, 3);
    tide_site_information info = info_of(site);
    assert_true(info.declared);
    assert_int_equal(info.types[0], TIDE_I32);
    assert_int_equal(info.types[1], TIDE_F64);
    assert_int_equal(info.types[2], TIDE_I8);
    expect_status(tide_site_declare(site, bad, 2), TIDE_ERROR_TYPE);
    expect_status(tide_site_declare(site, NULL, 2), TIDE_ERROR_ARGUMENT);
    expect_plan(site, TIDE_TIER_TABLE, false, 3);
    expect_ok(tide_site_declare(site, types, 1));
    expect_plan(site, TIDE_TIER_TABLE, false, 1);
    expect_ok(tide_site_reset(site));
    expect_plan(site, TIDE_TIER_FULL, false, 0);
    assert_false(info_of(site).declared);
}

static void enter_and_leave(tide_site *site, tide_pool *pool, tide_tier tier)
{
    counts before = counts_of(pool);
    tide_scope scope;
    expect_ok(tide_scope_enter(pool, site, &scope));
    assert_string_equal(tide_tier_name(scope.plan->tier), tide_tier_name(tier));
    take(pool, TIDE_F64, 4, 1);
    take(pool, TIDE_F32, 4, 1);
    expect_ok(tide_scope_leave(&scope));
    counts_same(before, pool);
}

static void a_pinned_site_stays_at_its_tier(void **state)
{
    (void)state;
    const tide_type types[] = {TIDE_F64, TIDE_I32};
    tide_site *site = tide_site_register("pinned");
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    expect_ok(tide_site_pin(site, TIDE_TIER_FULL));
    enter_and_leave(site, pool, TIDE_TIER_FULL);
    expect_ok(tide_site_declare(site, types, 2));
    expect_plan(site, TIDE_TIER_FULL, true, 0);
    expect_ok(tide_profile_observe(true));
    for (size_t i = 0; i < 200; i++)
        enter_and_leave(site, pool, TIDE_TIER_FULL);
    expect_ok(tide_profile_observe(false));
    expect_plan(site, TIDE_TIER_FULL, true, 0);
    expect_ok(tide_site_pin(site, TIDE_TIER_TABLE));
    for (size_t i = 0; i < 200; i++)
        enter_and_leave(site, pool, TIDE_TIER_TABLE);
    expect_plan(site, TIDE_TIER_TABLE, true, 2);
    expect_ok(tide_site_pin(site, TIDE_TIER_FULL));
    expect_ok(tide_site_unpin(site));
    expect_plan(site, TIDE_TIER_TABLE, false, 2);
    expect_ok(tide_site_reset(site));
    expect_plan(site, TIDE_TIER_FULL, false, 0);
    expect_ok(tide_pool_destroy(pool));
}

static void a_tier_without_a_plan_is_refused(void **state)
{
    (void)state;
    tide_site *site = tide_site_register("nothing compiled");
    expect_ok(tide_site_pin(site, TIDE_TIER_TABLE));
    expect_status(tide_site_pin(site, TIDE_TIER_COMPILED), TIDE_ERROR_STATE);
    expect_plan(site, TIDE_TIER_TABLE, true, 0);
    assert_int_not_equal(tide_site_pin(site, (tide_tier)77), TIDE_OK);
    expect_plan(site, TIDE_TIER_TABLE, true, 0);
}

/* Leaves by the plan it entered by, whatever happened to the site. */
static void a_site_may_be_restaged_while_its_scope_is_open(void **state)
{
    (void)state;
    static const tide_type types[] = {TIDE_F64, TIDE_F32, TIDE_I8};
    static const tide_tier tiers[] = {TIDE_TIER_FULL, TIDE_TIER_TABLE};
    tide_site *site = tide_site_register("restaged");
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    for (size_t i = 0; i < 8; i++) {
        tide_scope scope;
        expect_ok(tide_site_pin(site, tiers[i % 2]));
        expect_ok(tide_scope_enter(pool, site, &scope));
        take(pool, TIDE_F64, 4, 1);
        expect_ok(tide_site_declare(site, types, i % 4));
        expect_ok(tide_site_pin(site, tiers[(i + 1) % 2]));
        enter_and_leave(site, pool, tiers[(i + 1) % 2]);
        if (i % 3 == 0)
            expect_ok(tide_site_reset(site));
        take(pool, TIDE_F32, 4, 1);
        assert_string_equal(tide_tier_name(scope.plan->tier), tide_tier_name(tiers[i % 2]));
        expect_ok(tide_scope_leave(&scope));
        counts_same((counts){0, 0, 0, 0}, pool);
    }
    expect_ok(tide_pool_destroy(pool));
}

static void a_scope_of_a_pinned_site_is_at_its_tier(void **state)
{
    (void)state;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    enter_named(pool);
    tide_site *site = find_one("a named site", NULL);
    expect_ok(tide_site_pin(site, TIDE_TIER_TABLE));
    assert_string_equal(tide_tier_name(enter_named(pool)), "table");
    expect_ok(tide_site_pin(site, TIDE_TIER_FULL));
    assert_string_equal(tide_tier_name(enter_named(pool)), "full");
    expect_ok(tide_site_reset(site));
    expect_ok(tide_pool_destroy(pool));
}

/* A tuner's own data stays with the site, whatever is learned of it. */
static void a_site_keeps_what_a_tuner_gives_it(void **state)
{
    (void)state;
    int one, other;
    struct query query = {.name = "never entered"};
    tide_site_each(site_matches, &query);
    assert_null(tide_site_user(query.found));
    assert_int_equal(tide_site_set_user(query.found, &one), TIDE_OK);
    assert_int_equal(tide_site_reset(query.found), TIDE_OK);
    assert_ptr_equal(tide_site_user(query.found), &one);
    tide_site *made = tide_site_register("a tuner's");
    assert_int_equal(tide_site_set_user(made, &other), TIDE_OK);
    assert_true(tide_site_user(made) == &other && tide_site_user(query.found) == &one);
    assert_int_equal(tide_site_set_user(query.found, NULL), TIDE_OK);
    assert_null(tide_site_user(query.found));
    assert_int_equal(tide_site_set_user(NULL, &one), TIDE_ERROR_ARGUMENT);
    assert_null(tide_site_user(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scope_of_c_is_known_before_it_is_entered),
        cmocka_unit_test(a_site_knows_where_it_stands),
        cmocka_unit_test(the_list_holds_each_site_once),
        cmocka_unit_test(what_waits_is_refused_to_a_visitor),
        cmocka_unit_test(a_name_registered_twice_is_one_site),
        cmocka_unit_test(a_site_is_found_by_name_and_kind),
        cmocka_unit_test(a_site_without_a_name_is_refused),
        cmocka_unit_test(declared_types_are_saved_each_once_in_order),
        cmocka_unit_test(a_pinned_site_stays_at_its_tier),
        cmocka_unit_test(a_tier_without_a_plan_is_refused),
        cmocka_unit_test(a_site_may_be_restaged_while_its_scope_is_open),
        cmocka_unit_test(a_scope_of_a_pinned_site_is_at_its_tier),
        cmocka_unit_test(a_site_keeps_what_a_tuner_gives_it),
    };
    return cmocka_run_group_tests_name("sites", tests, NULL, NULL);
}

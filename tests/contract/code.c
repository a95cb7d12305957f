/* SPDX-License-Identifier: MIT */
/* Compiled code is loaded once and stays, up to a cap in bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <tidepool/dynamic.h>
#include <tidepool/learn.h>
#include <tidepool/profile.h>
#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/tidepool.h>
#include <tidepool/tune.h>

#include "tests/hooks.h"

#define expect_ok(call) assert_int_equal((call), TIDE_OK)

enum { SITES = 8, ROOM = 3, PATIENCE_MS = 120000 };

static tide_pool *pool;
static tide_site *sites[SITES];
static tide_type first[SITES][2]; /* each site has types of its own, and so code of its own */
static const tide_type second[] = {TIDE_F32, TIDE_U8};

static tide_site_information info_of(const tide_site *site)
{
    tide_site_information info;
    expect_ok(tide_site_info(site, &info));
    return info;
}

static tide_learning_statistics learned(void)
{
    tide_learning_statistics now;
    expect_ok(tide_learning_stats(&now));
    return now;
}

static void use_site(tide_site *site, const tide_type types[2])
{
    tide_scope scope;
    expect_ok(tide_scope_enter(pool, site, &scope));
    assert_non_null(tide_acquire_type(pool, types[0], 10));
    assert_non_null(tide_acquire_type(pool, types[1], 10));
    expect_ok(tide_scope_leave(&scope));
}

/* Declared for these types and used, by code or by a table. */
static void settle_for(tide_site *site, const tide_type types[2])
{
    expect_ok(tide_site_declare(site, types, 2));
    use_site(site, types);
    expect_ok(tide_settle(PATIENCE_MS));
}

/* Each use of a site with code is counted by it; of the others none is. */
static void expect_code(tide_site *site, bool code, const tide_type types[2])
{
    enum { USES = 20 };
    tide_site_information before = info_of(site);
    assert_int_equal(before.tier, code ? TIDE_TIER_COMPILED : TIDE_TIER_TABLE);
    for (unsigned i = 0; i < USES; i++)
        use_site(site, types);
    assert_int_equal(info_of(site).runs - before.runs, code ? USES : 0);
    assert_int_equal(info_of(site).misses, before.misses);
}

static int prepare(void **state)
{
    (void)state;
    set_either("background", 0);
    set_either("trial", 0);
    set_either("break_even", 0);
    set_either("count_runs", 1);
    set_either("batch_max", 1);
    set_either("back_off_max", 1);
    pool = tide_pool_create(NULL);
    for (unsigned i = 0; i < SITES; i++) {
        char name[32];
        snprintf(name, sizeof name, "contract: code %u", i);
        sites[i] = tide_site_register(name);
        assert_non_null(sites[i]);
        first[i][0] = TIDE_F64;
        first[i][1] = tide_type_register(name, 8, 8);
    }
    settle_for(sites[0], first[0]);
    return 0;
}

static void need_compiler(void)
{
    if (strcmp(info_of(sites[0]).reason_code, "stager_missing") == 0)
        skip();
    assert_int_equal(info_of(sites[0]).tier, TIDE_TIER_COMPILED);
}

static void beyond_the_cap_sites_stay_at_tables_and_say_why(void **state)
{
    (void)state;
    need_compiler();
    uint64_t one = learned().code_bytes; /* the others' are as large */
    assert_int_equal(learned().code_objects, 1);
    set_either("code_bytes", (double)(ROOM * one + one / 2));
    for (unsigned i = 1; i < SITES; i++)
        settle_for(sites[i], first[i]);
    for (unsigned i = 0; i < SITES; i++) {
        expect_code(sites[i], i < ROOM, first[i]);
        if (i >= ROOM)
            assert_string_equal(info_of(sites[i]).reason_code, "code_full");
    }
    assert_int_equal(learned().code_objects, ROOM);
    assert_in_range(learned().code_bytes, one, ROOM * one + one / 2);

    uint64_t ordered = learned().ordered; /* what would not be loaded is not compiled */
    for (unsigned i = 0; i < 50; i++)
        expect_ok(tide_step());
    assert_int_equal(learned().ordered, ordered);
}

static void a_higher_cap_gives_them_code(void **state)
{
    (void)state;
    need_compiler();
    set_either("code_bytes", 64 << 20);
    for (unsigned i = 0; i < 50 && learned().code_objects < SITES; i++) {
        expect_ok(tide_step());
        expect_ok(tide_settle(PATIENCE_MS));
    }
    assert_int_equal(learned().code_objects, SITES);
    for (unsigned i = 0; i < SITES; i++)
        expect_code(sites[i], true, first[i]);
}

static void code_that_is_not_in_force_stays_and_is_used_again(void **state)
{
    (void)state;
    need_compiler();
    settle_for(sites[0], second);
    expect_code(sites[0], true, second);
    tide_learning_statistics before = learned();
    for (unsigned i = 0; i < 10; i++) {
        const tide_type *types = i % 2 == 0 ? first[0] : second;
        settle_for(sites[0], types);
        expect_code(sites[0], true, types);
    }
    assert_int_equal(learned().ordered, before.ordered);
    assert_int_equal(learned().code_objects, before.code_objects);
    assert_int_equal(learned().code_bytes, before.code_bytes);
}

static void sites_of_the_same_types_share_code(void **state)
{
    (void)state;
    need_compiler();
    tide_learning_statistics before = learned();
    tide_site *other = tide_site_register("contract: shared code");
    settle_for(other, first[1]);
    expect_code(other, true, first[1]);
    assert_int_equal(learned().ordered, before.ordered);
    assert_int_equal(learned().code_objects, before.code_objects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beyond_the_cap_sites_stay_at_tables_and_say_why),
        cmocka_unit_test(a_higher_cap_gives_them_code),
        cmocka_unit_test(code_that_is_not_in_force_stays_and_is_used_again),
        cmocka_unit_test(sites_of_the_same_types_share_code),
    };
    return cmocka_run_group_tests_name("contract: code", tests, prepare, NULL);
}

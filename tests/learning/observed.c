/* SPDX-License-Identifier: MIT */
/* From what is observed of a site to code that runs: the first scenarios of learning, with real
 * compiles, each shown by counting executions. */
#define _GNU_SOURCE
#include "learning.h"

#include <stdio.h>

#include <tidepool/learn.h>
#include <tidepool/site.h>
#include <tidepool/upkeep.h>

/* ---- 51, 62: one type -------------------------------------------------------------------- */

static void a_site_with_one_type_gets_a_plan_of_exactly_that_type(void **state)
{
    (void)state;
    need_stager();
    set("window_rounds", 1e6); /* none gets old while the stager takes its time */
    use u = use_of("51: one type", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    learn_windows(&u, 1);
    expect_ok(tide_step());
    learn_windows(&u, 1);
    assert_true(info_of(u.site).samples >= 2 * 200);
    assert_int_equal(tier_of(u.site), TIDE_TIER_COMPILED);
    expect_types(u.site, 1, TIDE_F64);
    expect_executed(&u, 1000);
}

/* Attempts are not executions: a pool that checks sends every use to the general path, and the
 * count does not move. */
static void executions_are_counted_not_attempts(void **state)
{
    (void)state;
    need_stager();
    use u = use_of("62: counted", TIDE_KIND_SCOPE, learning_pool, 2, TIDE_F64, TIDE_I32);
    until(&u, TIDE_TIER_COMPILED);
    expect_executed(&u, 1000);
    use careful = u;
    careful.pool = pool_of(TIDE_CHECK_POISON);
    uint64_t runs = runs_of(u.site);
    use_times(&careful, 100);
    assert_int_equal(runs_of(u.site), runs);
    assert_int_equal(tier_of(u.site), TIDE_TIER_COMPILED);
    expect_ok(tide_pool_destroy(careful.pool));
    expect_executed(&u, 1000);
}

/* Code that was not compiled to count does not: the setting is asked when it is made. */
static void without_the_setting_nothing_is_counted(void **state)
{
    (void)state;
    need_stager();
    set("count_runs", 0);
    use u = use_of("62: not counted", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F32);
    until(&u, TIDE_TIER_COMPILED);
    use_times(&u, 1000);
    assert_int_equal(runs_of(u.site), 0);
}

/* ---- 52: rare types ---------------------------------------------------------------------- */

static void a_type_of_one_use_in_a_thousand_is_not_in_the_plan(void **state)
{
    (void)state;
    need_stager();
    set("window_calls", 2000);
    use u = use_of("52: rare", TIDE_KIND_SCOPE, learning_pool, 2, TIDE_F64, TIDE_I32), rare = u;
    rare.types[rare.count++] = TIDE_I8;
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned j = 0; j < 1000; j++)
            use_times(j == 500 ? &rare : &u, 1);
        settle();
        expect_ok(tide_step());
    }
    settle();
    assert_int_equal(tier_of(u.site), TIDE_TIER_COMPILED);
    expect_types(u.site, 2, TIDE_F64, TIDE_I32);
    use_times(&u, 1);
    uint64_t runs = runs_of(u.site), misses = misses_of(u.site);
    use_times(&rare, 10); /* use_once checks that all of it was rewound */
    assert_int_equal(runs_of(u.site), runs + 10);
    assert_int_equal(misses_of(u.site), misses + 10);
    assert_int_equal(tide_pool_active(learning_pool, TIDE_I8), 0);
    expect_executed(&u, 100);
}

/* ---- 53: phases -------------------------------------------------------------------------- */

static void types_that_change_are_missed_and_learned_and_found_again(void **state)
{
    (void)state;
    need_stager();
    use first = use_of("53: phases", TIDE_KIND_SCOPE, learning_pool, 2, TIDE_F64, TIDE_I32),
        second = first;
    second.types[0] = TIDE_F32;
    second.types[1] = TIDE_U16;
    until(&first, TIDE_TIER_COMPILED);
    expect_types(first.site, 2, TIDE_F64, TIDE_I32);

    use_times(&first, 1);
    uint64_t misses = misses_of(first.site), compiles = info_of(first.site).compiles;
    use_times(&second, 100);
    assert_int_equal(misses_of(first.site), misses + 100);
    until(&second, TIDE_TIER_COMPILED);
    while (info_of(first.site).types[0] != TIDE_F32 && info_of(first.site).types[0] != TIDE_U16)
        until(&second, TIDE_TIER_COMPILED);
    expect_types(first.site, 2, TIDE_F32, TIDE_U16);
    assert_true(info_of(first.site).compiles > compiles);
    expect_executed(&second, 1000);

    tide_learning_statistics before = learned();
    compiles = info_of(first.site).compiles;
    while (info_of(first.site).types[0] != TIDE_F64 && info_of(first.site).types[0] != TIDE_I32)
        until(&first, TIDE_TIER_COMPILED);
    expect_types(first.site, 2, TIDE_F64, TIDE_I32);
    assert_int_equal(tier_of(first.site), TIDE_TIER_COMPILED);
    assert_true(learned().reused > before.reused);
    assert_int_equal(info_of(first.site).compiles, compiles);
    expect_executed(&first, 1000);
}

/* ---- 55: too little to go by ------------------------------------------------------------- */

/* A site that acquires nothing, or too little of anything, need not save all that the pool has. */
static void a_site_that_acquires_nothing_saves_nothing(void **state)
{
    (void)state;
    use u = use_of("55: empty", TIDE_KIND_SCOPE, learning_pool, 0);
    uint64_t ordered = learned().ordered;
    learn_windows(&u, 10);
    assert_int_equal(learned().ordered, ordered);
    assert_int_equal(tier_of(u.site), TIDE_TIER_TABLE);
    expect_types(u.site, 0);
    assert_string_equal(reason_of(u.site), "its uses acquired nothing");
}

/* A window that the site's uses never fill closes by itself, and what it saw counts. */
static void a_site_that_is_seldom_used_is_decided_when_its_window_gets_old(void **state)
{
    (void)state;
    need_stager();
    set("window_rounds", 3);
    use u = use_of("55: seldom", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    use_times(&u, 60);
    for (unsigned i = 0; i < 6; i++)
        expect_ok(tide_step());
    settle();
    for (unsigned i = 0; i < 6;
         i++) /* code that came early waits for the second window to get old */
        expect_ok(tide_step());
    assert_int_equal(tier_of(u.site), TIDE_TIER_COMPILED);
    expect_executed(&u, 10);
}

/* ---- 56: types that alternate ------------------------------------------------------------ */

/* So many uses, every `period` of them the other's; returns how often the site was compiled. */
static uint64_t alternate(const use *a, const use *b, size_t uses, size_t period)
{
    for (size_t i = 0; i < uses; i++) {
        const use *u = i / period % 2 == 0 ? a : b;
        if (!use_once(u))
            fail_msg("use %zu: %s", i, tide_error_message());
        if (i % 100 == 99)
            settle();
    }
    return info_of(a->site).compiles;
}

static void types_that_alternate_do_not_compile_without_end(void **state)
{
    (void)state;
    need_stager();
    static const size_t periods[] = {1, 2, 100, 200, 1000, 7000};
    set("window_every", 5);
    for (tide_kind kind = 0; kind < TIDE_KIND_COUNT; kind++)
        for (size_t p = 0; p < sizeof periods / sizeof *periods; p++) {
            char name[64];
            snprintf(name, sizeof name, "56: %s %zu", tide_kind_name(kind), periods[p]);
            use a = use_of(name, kind, learning_pool, 2, TIDE_F64, TIDE_I32), b = a;
            b.types[0] = TIDE_I32;
            b.types[1] = TIDE_F32;
            uint64_t compiles = alternate(&a, &b, scaled(100000, 5000), periods[p]);
            if (compiles > 4 || reason_of(a.site)[0] == '\0')
                fail_msg("%s: %u compiles, reason '%s'", name, (unsigned)compiles,
                         reason_of(a.site));
        }
}

/* ---- 59: pins ---------------------------------------------------------------------------- */

static void a_pinned_site_stays_where_it_is(void **state)
{
    (void)state;
    need_stager();
    use full = use_of("59: full", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    use table = use_of("59: table", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64);
    use code = use_of("59: compiled", TIDE_KIND_SCOPE, learning_pool, 1, TIDE_F64), changed = code;
    changed.types[0] = TIDE_I64;
    expect_ok(tide_site_pin(full.site, TIDE_TIER_FULL));
    until(&table, TIDE_TIER_COMPILED);
    until(&code, TIDE_TIER_COMPILED);
    expect_ok(tide_site_pin(table.site, TIDE_TIER_TABLE));
    expect_ok(tide_site_pin(code.site, TIDE_TIER_COMPILED));
    for (unsigned i = 0; i < 5; i++) {
        learn_windows(&full, 1);
        learn_windows(&table, 1);
        learn_windows(&changed, 1);
    }
    assert_int_equal(tier_of(full.site), TIDE_TIER_FULL);
    assert_int_equal(runs_of(full.site), 0);
    assert_int_equal(tier_of(table.site), TIDE_TIER_TABLE);
    expect_types(table.site, 1, TIDE_F64);
    uint64_t runs = runs_of(table.site);
    use_times(&table, 100);
    assert_int_equal(runs_of(table.site), runs);
    assert_int_equal(tier_of(code.site), TIDE_TIER_COMPILED);
    expect_types(code.site, 1, TIDE_F64);
    use_times(&changed, 1);
    runs = runs_of(code.site);
    use_times(&changed, 100);
    assert_int_equal(runs_of(code.site), runs + 100);
    assert_string_equal(reason_of(code.site), "pinned");
    expect_ok(tide_site_unpin(full.site));
    until(&full, TIDE_TIER_COMPILED);
    expect_executed(&full, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEARNING_TEST(a_site_with_one_type_gets_a_plan_of_exactly_that_type),
        LEARNING_TEST(executions_are_counted_not_attempts),
        LEARNING_TEST(without_the_setting_nothing_is_counted),
        LEARNING_TEST(a_type_of_one_use_in_a_thousand_is_not_in_the_plan),
        LEARNING_TEST(types_that_change_are_missed_and_learned_and_found_again),
        LEARNING_TEST(a_site_that_acquires_nothing_saves_nothing),
        LEARNING_TEST(a_site_that_is_seldom_used_is_decided_when_its_window_gets_old),
        LEARNING_TEST(types_that_alternate_do_not_compile_without_end),
        LEARNING_TEST(a_pinned_site_stays_where_it_is),
    };
    return cmocka_run_group_tests_name("learning: observed", tests, learning_make_pool,
                                       learning_drop_pool);
}

/* SPDX-License-Identifier: MIT */
/* Each guard of compiled code, failing alone: the general path takes over, counts what it should,
 * and nothing else has changed. Sites here count their executions, so that a test can say exactly
 * which uses compiled code served. */
#include "support.h"

#include <dlfcn.h>

#include <tidepool/scope.h>
#include <tidepool/upkeep.h>

#include "runtime/pool/core.h"
#include "runtime/scope/plan.h"

static void *object;
static tide_spec spec;
static test_plan plan;
static tide_site site;
static tide_pool *pool;

static int set_up(void **state)
{
    (void)state;
    spec = spec_of("scope", true, (tide_type)2, (tide_type)3, 0);
    object = compile_specs(&spec, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_int_equal(dlclose(object), 0);
    remove_test_folder();
    return 0;
}

/* A pool with slots for all types in use, and plans whose counts are 0. */
static int fresh(void **state)
{
    (void)state;
    pool = tide_pool_create(&(tide_pool_options){.name = "guards"});
    assert_non_null(pool);
    for (int i = 0; i < 4; i++)
        for (tide_type type = 2; type <= 4; type++)
            assert_non_null(tide_acquire_type(pool, type, 100));
    assert_int_equal(tide_pool_reset(pool), TIDE_OK);
    plan_of(&plan, &spec, object);
    return 0;
}

static int done(void **state)
{
    (void)state;
    assert_int_equal(tide_pool_depth(pool), 0);
    assert_int_equal(tide_pool_check(pool), TIDE_OK);
    return tide_pool_reset(pool) != TIDE_OK || tide_pool_destroy(pool) != TIDE_OK;
}

#define expect_counts(some_runs, some_misses)              \
    do {                                                   \
        assert_int_equal(plan.counts.runs, some_runs);     \
        assert_int_equal(plan.counts.misses, some_misses); \
    } while (0)

static ptrdiff_t position(tide_type type)
{
    const tide_pool_core *core = pool->core;
    for (uint32_t i = 0; i < core->rows.used_count; i++)
        if (core->rows.used[i]->type == type)
            return pool->shelves[type].next - core->rows.used[i]->slots;
    return -1;
}

/* ---- scopes ---- */

static void enter(tide_scope *scope)
{
    plan.plan.enter(scope, pool, &plan.plan, &site);
}

static void leave(tide_scope *scope)
{
    scope->plan->leave(scope);
}

static void test_scope_kept(void **state)
{
    tide_scope scope;
    (void)state;
    tide_entry *top = pool->log_top;
    enter(&scope);
    assert_ptr_equal(pool->log_top, top);
    tide_acquire_type(pool, 2, 10);
    tide_acquire_type(pool, 3, 10);
    leave(&scope);
    assert_int_equal(position(2) + position(3), 0);
    expect_counts(1, 0);
}

/* A level that has not saved a scope's types saves them when a second scope asks: once, for all
 * scopes inside it. */
static void test_scope_in_a_level(void **state)
{
    tide_scope scope, inner;
    (void)state;
    tide_mark mark = tide_checkpoint(pool);
    tide_acquire_type(pool, 4, 10);
    tide_scope around;
    const tide_plan *none = tide_plan_table(NULL, 0, "guards");
    none->enter(&around, pool, none, &site);
    tide_entry *top = pool->log_top;
    enter(&scope); /* the first in a level writes the log itself, which goes with it */
    assert_ptr_equal(pool->log_top, top + 2);
    tide_acquire_type(pool, 2, 10);
    leave(&scope);
    assert_ptr_equal(pool->log_top, top);
    assert_int_equal(position(2), 0);
    expect_counts(0, 0);
    enter(&scope); /* for the second the level does, and the code runs */
    assert_ptr_equal(pool->log_top, top + 2);
    tide_acquire_type(pool, 2, 10);
    tide_acquire_type(pool, 3, 10);
    enter(&inner);
    assert_ptr_equal(pool->log_top, top + 2);
    tide_acquire_type(pool, 3, 10);
    assert_int_equal(position(3), 2);
    leave(&inner);
    assert_int_equal(position(3), 1);
    leave(&scope);
    assert_int_equal(position(3), 0);
    enter(&scope);
    leave(&scope);
    assert_ptr_equal(pool->log_top, top + 2);
    none->leave(&around);
    assert_ptr_equal(pool->log_top, top);
    assert_int_equal(tide_rewind(pool, mark), TIDE_OK);
    expect_counts(3, 0);
}

static void test_scope_untracked(void **state)
{
    tide_scope scope;
    (void)state;
    enter(&scope);
    tide_acquire_type(pool, 4, 10);
    leave(&scope);
    assert_int_equal(position(4), 0);
    expect_counts(1, 1);
}

static void test_scope_not_set_up(void **state)
{
    tide_scope scope;
    (void)state;
    tide_pool *used = pool;
    pool = tide_pool_create(NULL);
    enter(&scope);
    assert_non_null(tide_acquire_type(pool, 3, 10));
    leave(&scope);
    assert_int_equal(position(3), 0);
    expect_counts(1, 0); /* the general path has set it up and asked the code again */
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
    pool = used;
}

/* Of two names of one address debuggers and profilers choose any. */
static void an_address_of_code_has_one_name(void **state)
{
    (void)state;
    const void *first = code_of(object, "tide_object", "_code");
    const void *code;
    Dl_info info;
    memcpy(&code, &plan.plan.enter, sizeof code);
    assert_ptr_not_equal(code, first);
    assert_int_not_equal(dladdr(code, &info), 0);
    assert_int_equal(strncmp(info.dli_sname, spec.stem, strlen(spec.stem)), 0);
}

int main(int count, char **args)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, done)
    const struct CMUnitTest tests[] = {
        TEST(test_scope_kept),
        TEST(test_scope_in_a_level),
        TEST(test_scope_untracked),
        TEST(test_scope_not_set_up),
        TEST(an_address_of_code_has_one_name),
    };
    if (count != 2)
        return 2;
    stager = args[1];
    return cmocka_run_group_tests_name("stage: guards", tests, set_up, tear_down);
}

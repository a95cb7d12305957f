/* SPDX-License-Identifier: MIT */
/* Each guard of compiled code, failing alone: the general path takes over, counts what it should,
 * and nothing else has changed. Sites here count their executions, so that a test can say exactly
 * which uses compiled code served. */
#include "support.h"

#include <dlfcn.h>

#include <tidepool/array.h>
#include <tidepool/callsite.h>
#include <tidepool/generic.h>
#include <tidepool/upkeep.h>

#include "runtime/pool/core.h"
#include "runtime/scope/general.h"
#include "runtime/scope/plan.h"

enum { SCOPE, FRAME, ACQUIRE, ARRAY, COUNT };

static void *object;
static tide_spec specs[COUNT];
static test_plan plans[COUNT];
static tide_site site;
static tide_pool *pool;

static int set_up(void **state)
{
    (void)state;
    specs[SCOPE] = spec_of(TIDE_KIND_SCOPE, "scope", true, (tide_type)2, (tide_type)3, 0);
    specs[FRAME] =
        spec_of(TIDE_KIND_FRAME, "frame", true, (tide_type)3, (tide_type)2, (tide_type)3, 0);
    specs[ACQUIRE] = spec_of(TIDE_KIND_ACQUIRE, "acquire", true, (tide_type)3, (tide_type)2, 0);
    specs[ARRAY] = spec_of(TIDE_KIND_ARRAY, "array", true, 0);
    spec_add_array(&specs[ARRAY], 3, 2);
    spec_add_array(&specs[ARRAY], 3, 1);
    spec_add_array(&specs[ARRAY], 2, 0);
    object = compile_specs(specs, COUNT);
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
    for (int i = 0; i < COUNT; i++)
        plan_of(&plans[i], &specs[i], object);
    return 0;
}

static int done(void **state)
{
    (void)state;
    assert_int_equal(tide_pool_depth(pool), 0);
    assert_int_equal(tide_pool_check(pool), TIDE_OK);
    return tide_pool_reset(pool) != TIDE_OK || tide_pool_destroy(pool) != TIDE_OK;
}

#define expect_counts(which, some_runs, some_misses)               \
    do {                                                           \
        assert_int_equal(plans[which].counts.runs, some_runs);     \
        assert_int_equal(plans[which].counts.misses, some_misses); \
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
    plans[SCOPE].plan.enter(scope, pool, &plans[SCOPE].plan, &site);
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
    expect_counts(SCOPE, 1, 0);
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
    tide_plan_open_frame(&around, pool, &tide_plans_general[TIDE_KIND_SCOPE], &site);
    tide_entry *top = pool->log_top;
    enter(&scope); /* the first in a level writes the log itself, which goes with it */
    assert_ptr_equal(pool->log_top, top + 2);
    tide_acquire_type(pool, 2, 10);
    leave(&scope);
    assert_ptr_equal(pool->log_top, top);
    assert_int_equal(position(2), 0);
    expect_counts(SCOPE, 0, 0);
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
    tide_plan_leave_full(&around);
    assert_ptr_equal(pool->log_top, top);
    assert_int_equal(tide_rewind(pool, mark), TIDE_OK);
    expect_counts(SCOPE, 3, 0);
}

static void test_scope_untracked(void **state)
{
    tide_scope scope;
    (void)state;
    enter(&scope);
    tide_acquire_type(pool, 4, 10);
    leave(&scope);
    assert_int_equal(position(4), 0);
    expect_counts(SCOPE, 1, 1);
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
    expect_counts(SCOPE, 1, 0); /* the general path has set it up and asked the code again */
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
    pool = used;
}

/* ---- frames ---- */

static const tide_type foreseen[] = {3, 2, 3};
static const size_t small[] = {10, 20, 30};

static void *frame(uint32_t count, const tide_type *types, const size_t *counts)
{
    void *data[4] = {NULL};
    tide_scope scope = {.plan = &plans[FRAME].plan, .site = &site};
    plans[FRAME].plan.frame(&scope, pool, count, types, counts, data);
    for (uint32_t i = 0; i < count; i++)
        assert_non_null(data[i]);
    assert_int_equal(position(3), (types[0] == 3) + (count > 2 && types[2] == 3));
    leave(&scope);
    assert_int_equal(position(2) + position(3) + position(4), 0);
    return data[0];
}

static void test_frames(void **state)
{
    (void)state;
    const size_t first_large[] = {5000, 20, 30}, last_large[] = {10, 20, 9000};
    const tide_type first_other[] = {4, 2, 3}, last_other[] = {3, 2, 4};
    frame(3, foreseen, small);
    expect_counts(FRAME, 1, 0);
    frame(2, foreseen, small); /* too few */
    expect_counts(FRAME, 1, 1);
    frame(3, first_other, small);
    expect_counts(FRAME, 1, 2);
    frame(3, last_other, small);
    expect_counts(FRAME, 1, 3);
    frame(3, foreseen, first_large); /* slots too small: they grow */
    frame(3, foreseen, last_large);
    expect_counts(FRAME, 1, 5);
    frame(3, foreseen, first_large);
    frame(3, foreseen, last_large);
    expect_counts(FRAME, 3, 5);
    tide_scope around;
    tide_plan_open_frame(&around, pool, &tide_plans_general[TIDE_KIND_SCOPE], &site);
    frame(3, foreseen, small); /* the level around first saves the shelves */
    tide_plan_leave_full(&around);
    expect_counts(FRAME, 4, 5);
}

/* ---- acquires ---- */

static void *acquire(tide_type type, size_t n)
{
    return plans[ACQUIRE].plan.acquire(pool, type, n, &plans[ACQUIRE].plan, &site);
}

static void test_acquires(void **state)
{
    (void)state;
    assert_non_null(acquire(3, 100));
    assert_non_null(acquire(2, 0));
    expect_counts(ACQUIRE, 2, 0);
    assert_non_null(acquire(3, 5000)); /* too small a slot is no miss */
    expect_counts(ACQUIRE, 2, 0);
    assert_non_null(acquire(4, 10));
    expect_counts(ACQUIRE, 2, 1);
    assert_null(acquire(3, SIZE_MAX));
    assert_int_equal(tide_error_status(), TIDE_ERROR_SIZE);
    assert_null(acquire(60000, 1));
    assert_int_equal(tide_error_status(), TIDE_ERROR_TYPE);
    assert_null(acquire(UINT32_MAX, 1));
    expect_counts(ACQUIRE, 2, 3);
    tide_scope scope;
    tide_plan_open_frame(&scope, pool, &tide_plans_general[TIDE_KIND_SCOPE], &site);
    assert_non_null(acquire(2, 1)); /* the first touch */
    assert_non_null(acquire(2, 1));
    tide_plan_leave_full(&scope);
    expect_counts(ACQUIRE, 3, 3);
    assert_int_equal(position(3), 2);
    assert_int_equal(position(2), 1);
}

/* ---- arrays ---- */

static tide_array *array(tide_type type, int ndim, int64_t first, int64_t second)
{
    const int64_t shape[3] = {first, second, 1};
    tide_array *got = plans[ARRAY].plan.array(pool, type, ndim, shape, &plans[ARRAY].plan, &site);
    assert_true(got == NULL || (got->tensor.ndim == ndim && got->order == TIDE_ROW_MAJOR));
    for (int d = 0; got != NULL && d < ndim; d++)
        assert_int_equal(got->tensor.shape[d], shape[d]);
    assert_int_equal(tide_pool_reset(pool), TIDE_OK);
    return got;
}

static void test_arrays(void **state)
{
    (void)state;
    assert_non_null(array(3, 2, 4, 5)); /* no header yet */
    expect_counts(ARRAY, 0, 0);
    assert_non_null(array(3, 2, 4, 5));
    expect_counts(ARRAY, 1, 0);
    assert_non_null(array(3, 2, 5, 4)); /* foreseen, but the header has another shape */
    expect_counts(ARRAY, 1, 0);
    assert_non_null(array(3, 2, 5, 4));
    expect_counts(ARRAY, 2, 0);
    assert_non_null(array(3, 1, 7, 0)); /* another rank: another header */
    assert_non_null(array(3, 1, 7, 0));
    expect_counts(ARRAY, 3, 0);
    assert_non_null(array(3, 1, 8, 0));
    expect_counts(ARRAY, 3, 0);
    assert_non_null(array(3, 3, 7, 1)); /* not foreseen: a rank, a type */
    assert_non_null(array(4, 1, 7, 0));
    expect_counts(ARRAY, 3, 2);
    assert_non_null(array(2, 0, 0, 0));
    assert_non_null(array(2, 0, 0, 0));
    expect_counts(ARRAY, 4, 2);
    assert_non_null(array(2, 1, 3, 0));
    expect_counts(ARRAY, 4, 3);
}

/* Their extents and lengths are the request's: only the form tells them from it. */
static void test_headers_of_another_form(void **state)
{
    (void)state;
    const int64_t shape[3] = {4, 5, 1};
    assert_non_null(tide_array_acquire(pool, 3, 3, shape));
    assert_int_equal(tide_pool_reset(pool), TIDE_OK);
    assert_non_null(array(3, 2, 4, 5));
    expect_counts(ARRAY, 0, 0);
    assert_non_null(tide_array_acquire_order(pool, 3, TIDE_COLUMN_MAJOR, 2, shape));
    assert_int_equal(tide_pool_reset(pool), TIDE_OK);
    assert_non_null(array(3, 2, 4, 5));
    expect_counts(ARRAY, 0, 0);
    assert_non_null(array(3, 2, 4, 5));
    expect_counts(ARRAY, 1, 0);
}

/* Of two names of one address debuggers and profilers choose any. */
static void an_address_of_code_has_one_name(void **state)
{
    (void)state;
    const void *first = code_of(object, "tide_object", "_code");
    for (int i = 0; i < COUNT; i++) {
        const void *code;
        Dl_info info;
        memcpy(&code, &plans[i].plan.enter, sizeof code);
        assert_ptr_not_equal(code, first);
        assert_int_not_equal(dladdr(code, &info), 0);
        assert_int_equal(strncmp(info.dli_sname, specs[i].stem, strlen(specs[i].stem)), 0);
    }
}

int main(int count, char **args)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, done)
    const struct CMUnitTest tests[] = {
        TEST(test_scope_kept),
        TEST(test_scope_in_a_level),
        TEST(test_scope_untracked),
        TEST(test_scope_not_set_up),
        TEST(test_frames),
        TEST(test_acquires),
        TEST(test_arrays),
        TEST(test_headers_of_another_form),
        TEST(an_address_of_code_has_one_name),
    };
    if (count != 2)
        return 2;
    stager = args[1];
    return cmocka_run_group_tests_name("stage: guards", tests, set_up, tear_down);
}

/* SPDX-License-Identifier: MIT */
/* Pools that come and go: the memory of a destroyed one serves the next, which is as new. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include <tidepool/array.h>
#include <tidepool/learn.h>
#include <tidepool/tidepool.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

#include "hooks.h"
#include "support.h"

/* Of what is asked for only a shell lies between; a log that is mapped at once is larger. KEPT shells
 * are kept. */
enum { SHELL_BYTES = 1 << 22, LOG_BYTES = 1 << 24, KEPT = 16 };

/* ---- what is asked of the system ---- */

static size_t reserved; /* shells asked for */

static bool count_reserves(size_t bytes)
{
    if (bytes < SHELL_BYTES || bytes >= LOG_BYTES)
        return false;
    __atomic_add_fetch(&reserved, 1, __ATOMIC_RELAXED);
    return false;
}

static size_t reserves_for(size_t pools)
{
    tide_pool *all[2 * KEPT];
    reserved = 0;
    for (size_t i = 0; i < pools; i++)
        assert_non_null(all[i] = tide_pool_create(NULL));
    size_t asked = reserved;
    for (size_t i = 0; i < pools; i++)
        assert_int_equal(tide_pool_destroy(all[i]), TIDE_OK);
    return asked;
}

/* Nothing kept, as in a new process. */
static int start_afresh(void **state)
{
    (void)state;
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.check = TIDE_CHECK_POISON});
    assert_non_null(pool);
    tide_pool_trim(pool, TIDE_ALL_TYPES);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
    set_memory_fault(count_reserves);
    return 0;
}

static int stop_counting(void **state)
{
    (void)state;
    set_memory_fault(NULL);
    return 0;
}

/* ---- kept ---- */

static void the_next_pools_ask_the_system_for_nothing(void **state)
{
    (void)state;
    assert_int_equal(reserves_for(1), 1);
    assert_int_equal(reserves_for(1), 0);
    assert_int_equal(reserves_for(3), 2);
    assert_int_equal(reserves_for(3), 0);
}

static void so_many_are_kept_and_no_more(void **state)
{
    (void)state;
    assert_int_equal(reserves_for(2 * KEPT), 2 * KEPT);
    assert_int_equal(reserves_for(2 * KEPT), KEPT);
}

static void a_trim_of_all_types_gives_them_back(void **state)
{
    (void)state;
    assert_int_equal(reserves_for(4), 4);
    tide_pool *pool = tide_pool_create(NULL);
    tide_pool_trim(pool, TIDE_F64);
    assert_int_equal(reserves_for(3), 0);
    tide_pool_trim(pool, TIDE_ALL_TYPES);
    assert_int_equal(reserves_for(3), 3);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
}

/* ---- which are not ---- */

static void expect_not_kept(tide_pool *pool)
{
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
    assert_int_equal(reserves_for(1), 1);
    start_afresh(NULL);
}

static void one_that_has_grown_large_is_not(void **state)
{
    (void)state;
    tide_pool *pool = tide_pool_create(NULL);
    for (int i = 0; i < 129; i++)
        assert_non_null(tide_acquire(pool, double, 1));
    expect_not_kept(pool);

    pool = tide_pool_create(NULL);
    for (int i = 0; i < 13; i++) {
        char name[] = {'s', (char)('a' + i), 0};
        assert_non_null(tide_acquire_type(pool, tide_type_register(name, 8, 8), 1));
    }
    expect_not_kept(pool);

    pool = tide_pool_create(NULL);
    tide_mark mark = tide_checkpoint(pool);
    for (int i = 0; i < 300; i++)
        tide_checkpoint(pool);
    assert_int_equal(tide_rewind(pool, mark), TIDE_OK);
    expect_not_kept(pool);
}

static void one_that_checks_is_not(void **state)
{
    (void)state;
    expect_not_kept(tide_pool_create(&(tide_pool_options){.check = TIDE_CHECK_POISON}));
    expect_not_kept(tide_pool_create(&(tide_pool_options){.disabled = true}));
}

/* ---- as new ---- */

static tide_mark use_in_every_way(tide_pool *pool)
{
    int64_t shape[] = {3, 4};
    tide_mark mark = tide_checkpoint(pool);
    {
        TIDE_SCOPE(pool);
        for (size_t i = 1; i < 40; i++)
            assert_non_null(tide_acquire(pool, double, i));
        assert_non_null(tide_acquire(pool, float, 100));
        tide_array *array = tide_array_acquire(pool, TIDE_F64, 2, shape);
        assert_non_null(array);
        assert_non_null(tide_array_view(pool, array, (int64_t[]){0, 0}, (int64_t[]){2, 2}, NULL));
        assert_non_null(tide_fill(pool, int32_t, 100, -1));
        (void)tide_pool_reset(pool); /* with a scope open: an event that outlives it */
    }
    (void)tide_acquire_type(pool, TIDE_NO_TYPE, 1); /* refused */
    assert_non_null(tide_acquire(pool, uint8_t, 100));
    return mark;
}

static tide_pool_statistics stats_of(const tide_pool *pool)
{
    tide_pool_statistics stats;
    memset(&stats, 0, sizeof stats);
    assert_int_equal(tide_pool_stats(pool, &stats), TIDE_OK);
    return stats;
}

static void it_is_as_new(void **state)
{
    (void)state;
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.name = "new"});
    tide_pool_statistics new_stats = stats_of(pool);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);

    tide_pool *used = tide_pool_create(
        &(tide_pool_options){.name = "a much longer name", .limit_bytes = 1 << 20});
    assert_ptr_equal(used, pool);
    tide_mark old = use_in_every_way(used);
    assert_int_equal(tide_pool_destroy(used), TIDE_OK);

    tide_pool *again = tide_pool_create(&(tide_pool_options){.name = "new"});
    assert_ptr_equal(again, pool);
    assert_int_equal(tide_pool_check(again), TIDE_OK);
    tide_pool_statistics stats = stats_of(again);
    assert_memory_equal(&stats, &new_stats, sizeof stats);
    assert_int_not_equal(tide_rewind(again, old), TIDE_OK); /* a mark of the one before */
    tide_mark own = tide_checkpoint(again);
    assert_int_not_equal(tide_rewind(again, old), TIDE_OK);
    assert_int_equal(tide_rewind(again, own), TIDE_OK);
    use_in_every_way(again);
    assert_int_equal(tide_pool_check(again), TIDE_OK);
    assert_int_equal(tide_pool_destroy(again), TIDE_OK);
}

/* As long as nobody has got its memory. */
static void a_destroyed_pool_is_refused(void **state)
{
    (void)state;
    tide_pool *pool = tide_pool_create(NULL);
    assert_int_equal(tide_pool_destroy(pool), TIDE_OK);
    assert_int_equal(tide_pool_destroy(pool), TIDE_ERROR_ARGUMENT);
    assert_non_null(strstr(tide_error_message(), "destroyed"));
    assert_int_equal(tide_pool_reset(pool), TIDE_ERROR_ARGUMENT);
    assert_int_equal(reserves_for(2), 1); /* and was not given twice */
}

/* ---- threads ---- */

enum { THREADS = 4 };

static void *make_and_destroy(void *state)
{
    size_t rounds = *(const size_t *)state;
    for (size_t i = 0; i < rounds; i++) {
        tide_pool *pool = tide_pool_create(NULL);
        size_t *own = pool != NULL ? tide_acquire(pool, size_t, 16) : NULL;
        if (own == NULL || tide_pool_active(pool, tide_type_of(size_t)) != 1)
            return "no array";
        for (int j = 0; j < 16; j++)
            own[j] = (size_t)state + i;
        if (tide_pool_check(pool) != TIDE_OK || own[15] != (size_t)state + i)
            return "not its own";
        if (i % 16 == 0)
            tide_pool_trim(pool, TIDE_ALL_TYPES);
        if (tide_pool_destroy(pool) != TIDE_OK)
            return "not destroyed";
    }
    return tide_pool_local() != NULL ? NULL : "no pool of its own";
}

static void threads_share_them(void **state)
{
    (void)state;
    size_t rounds[THREADS];
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        rounds[i] = scaled(2000, 100);
        assert_int_equal(pthread_create(&threads[i], NULL, make_and_destroy, &rounds[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *trouble = NULL;
        assert_int_equal(pthread_join(threads[i], &trouble), 0);
        assert_null(trouble);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_afresh, stop_counting)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_next_pools_ask_the_system_for_nothing),
        TEST(so_many_are_kept_and_no_more),
        TEST(a_trim_of_all_types_gives_them_back),
        TEST(one_that_has_grown_large_is_not),
        TEST(one_that_checks_is_not),
        TEST(it_is_as_new),
        TEST(a_destroyed_pool_is_refused),
        TEST(threads_share_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

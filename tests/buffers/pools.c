/* SPDX-License-Identifier: MIT */
/* Pools that draw their slots from buffers: what one gives back another gets. */
#include "bed.h"

#include <pthread.h>

#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/dlpack.h>
#include <tidepool/upkeep.h>

static tide_pool *pool_on(tide_buffers *buffers, const tide_pool_options *more)
{
    tide_pool_options options = more != NULL ? *more : (tide_pool_options){0};
    options.buffers = buffers;
    tide_pool *pool = tide_pool_create(&options);
    if (pool == NULL)
        fail_msg("%s", tide_error_message());
    return pool;
}

static void *acquired_in(tide_pool *pool, tide_type type, size_t n)
{
    void *data = tide_acquire_type(pool, type, n);
    if (data == NULL)
        fail_msg("%s", tide_error_message());
    memset(data, 0x5A, n * tide_type_size(type));
    return data;
}

static void what_one_pool_gives_back_another_gets(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    tide_pool *first = pool_on(buffers, NULL), *second = pool_on(buffers, NULL);
    void *memory = acquired_in(first, TIDE_F64, 1000);
    assert_int_equal(stats_of(buffers).live, 1);
    expect_ok(tide_pool_reset(first));
    assert_int_equal(stats_of(buffers).live, 1); /* its slots are the pool's until it trims */
    tide_pool_trim(first, TIDE_ALL_TYPES);
    assert_int_equal(stats_of(buffers).live, 0);
    assert_ptr_equal(acquired_in(second, TIDE_F32, 2000), memory); /* of any type */
    assert_int_equal(stats_of(buffers).hits, 1);
    expect_ok(tide_pool_check(second));
    expect_ok(tide_pool_destroy(first));
    expect_ok(tide_pool_destroy(second));
    assert_int_equal(stats_of(buffers).live, 0);
    expect_ok(tide_buffers_destroy(buffers));
}

static void *job(void *buffers)
{
    tide_pool *pool = pool_on(buffers, NULL);
    for (unsigned i = 0; i < 10; i++) {
        tide_mark mark = tide_checkpoint(pool);
        for (size_t k = 1; k <= 8; k++)
            acquired_in(pool, TIDE_F64, k * 1000);
        expect_ok(tide_rewind(pool, mark));
    }
    expect_ok(tide_pool_destroy(pool));
    return NULL;
}

static void pools_of_many_threads_share(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    pthread_t threads[4];
    uint64_t misses = 0;
    for (unsigned round = 0; round < 5; round++) {
        pthread_create(&threads[0], NULL, job, buffers);
        pthread_join(threads[0], NULL);
        misses = round == 0 ? stats_of(buffers).misses : misses;
    }
    assert_int_equal(stats_of(buffers).misses, misses); /* one after the other: nothing new */
    for (size_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, job, buffers);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    tide_buffers_statistics s = stats_of(buffers);
    assert_true(s.misses <= 4 * misses);
    assert_int_equal(s.live, 0);
    assert_int_equal(s.refused, 0);
    expect_ok(tide_buffers_destroy(buffers));
}

static void a_slot_uses_all_of_its_buffer(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    tide_pool *pool = pool_on(buffers, NULL);
    acquired_in(pool, TIDE_U8, 9000);
    tide_pool_statistics s;
    expect_ok(tide_pool_stats(pool, &s));
    assert_int_equal(s.bytes_held, tide_buffers_round_up(buffers, 9000));
    expect_ok(tide_pool_reset(pool));
    acquired_in(pool, TIDE_U8, tide_buffers_round_up(buffers, 9000));
    expect_ok(tide_pool_stats(pool, &s));
    assert_int_equal(s.allocations, 1);
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_buffers_destroy(buffers));
}

/* By a quarter at least, whatever the sizes of buffers are. */
static void sizes_that_creep_allocate_seldom(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    tide_pool *pool = pool_on(buffers, NULL);
    size_t bytes = 4096;
    for (int i = 0; i < 200; i++, bytes += bytes / 100) {
        TIDE_SCOPE(pool);
        acquired_in(pool, TIDE_U8, bytes);
    }
    assert_true(bytes > 7 * 4096);
    assert_in_range(stats_of(buffers).misses, 4, 10);
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_buffers_destroy(buffers));
}

static void the_limit_of_the_pool_holds(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    tide_pool *pool = pool_on(buffers, &(tide_pool_options){.limit_bytes = 6000});
    acquired_in(pool, TIDE_U8, 5130); /* of a buffer of 6144: beyond 6000 it is not the pool's */
    tide_pool_statistics s;
    expect_ok(tide_pool_stats(pool, &s));
    assert_true(s.bytes_held <= 6000);
    assert_null(tide_acquire_type(pool, TIDE_U8, 2000));
    expect_refused(tide_error_status(), TIDE_ERROR_LIMIT, "6000");
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_buffers_destroy(buffers));
}

static void buffers_last_as_long_as_their_pools(void **state)
{
    (void)state;
    tide_buffers *buffers = made(&(tide_buffers_options){.name = "drawn"});
    tide_pool *pool = pool_on(buffers, NULL);
    expect_refused(tide_buffers_destroy(buffers), TIDE_ERROR_STATE, "1 pools draw from 'drawn'");
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_buffers_destroy(buffers));
    assert_null(tide_pool_create(&(tide_pool_options){.buffers = buffers}));
    expect_refused(tide_error_status(), TIDE_ERROR_ARGUMENT, "no buffers");
}

static void memory_that_was_exported_goes_back_to_the_buffers(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    tide_pool *pool = pool_on(buffers, NULL);
    int64_t shape[] = {1000};
    tide_array *array = tide_array_acquire(pool, TIDE_F64, 1, shape);
    assert_non_null(array);
    tide_dl_managed *out = tide_array_export(pool, array);
    assert_non_null(out);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
    assert_int_equal(stats_of(buffers).live, 1);
    assert_int_equal(tide_buffers_destroy(buffers), TIDE_ERROR_STATE);
    out->deleter(out);
    assert_int_equal(stats_of(buffers).live, 0);
    assert_int_equal(stats_of(buffers).cached, 1);
    expect_ok(tide_buffers_destroy(buffers));
}

static void exported_memory_that_came_back_is_the_slots_again(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    tide_pool *pool = pool_on(buffers, NULL);
    int64_t shape[] = {1000};
    tide_array *array = tide_array_acquire(pool, TIDE_F64, 1, shape);
    void *memory = tide_array_data(array);
    tide_dl_managed *out = tide_array_export(pool, array);
    assert_non_null(out);
    out->deleter(out);
    expect_ok(tide_pool_reset(pool));
    assert_ptr_equal(acquired_in(pool, TIDE_F64, 1000), memory);
    assert_int_equal(stats_of(buffers).live, 1);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
    assert_int_equal(stats_of(buffers).live, 0);
    expect_ok(tide_buffers_destroy(buffers));
}

static void careful_and_disabled_pools_draw_too(void **state)
{
    (void)state;
    static const tide_pool_options kinds[] = {
        {.check = TIDE_CHECK_POISON}, {.check = TIDE_CHECK_GUARD}, {.disabled = true}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        tide_buffers *buffers = made(NULL);
        tide_pool *pool = pool_on(buffers, &kinds[i]);
        for (unsigned round = 0; round < 10; round++) {
            tide_mark mark = tide_checkpoint(pool);
            acquired_in(pool, TIDE_F64, 100);
            acquired_in(pool, TIDE_I32, 3000);
            expect_ok(tide_rewind(pool, mark));
        }
        if (kinds[i].disabled)
            assert_int_equal(stats_of(buffers).hits, 18);
        expect_ok(tide_pool_destroy(pool));
        assert_int_equal(stats_of(buffers).live, 0);
        expect_ok(tide_buffers_destroy(buffers));
    }
}

static void types_aligned_further_than_buffers_come_from_the_device(void **state)
{
    (void)state;
    tide_buffers *buffers = made(NULL);
    tide_pool *pool = pool_on(buffers, NULL);
    tide_type wide = tide_type_register("wide256", 256, 256);
    void *data = acquired_in(pool, wide, 10);
    assert_int_equal((uintptr_t)data % 256, 0);
    assert_int_equal(stats_of(buffers).misses, 0);
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_buffers_destroy(buffers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_one_pool_gives_back_another_gets),
        cmocka_unit_test(pools_of_many_threads_share),
        cmocka_unit_test(a_slot_uses_all_of_its_buffer),
        cmocka_unit_test(sizes_that_creep_allocate_seldom),
        cmocka_unit_test(the_limit_of_the_pool_holds),
        cmocka_unit_test(buffers_last_as_long_as_their_pools),
        cmocka_unit_test(memory_that_was_exported_goes_back_to_the_buffers),
        cmocka_unit_test(exported_memory_that_came_back_is_the_slots_again),
        cmocka_unit_test(careful_and_disabled_pools_draw_too),
        cmocka_unit_test(types_aligned_further_than_buffers_come_from_the_device),
    };
    return cmocka_run_group_tests_name("pools on buffers", tests, NULL, NULL);
}

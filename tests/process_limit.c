/* SPDX-License-Identifier: MIT */
/* One limit for all pools and buffers of the process: what counts, who is asked before more is
 * taken, and what is refused. */
#define _GNU_SOURCE
#include "arrays_support.h"
#include "hooks.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/device_memory.h>
#include <tidepool/dlpack.h>
#include <tidepool/limit.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

static tide_limit_statistics limit_stats(void)
{
    tide_limit_statistics stats;
    expect_ok(tide_limit_stats(&stats));
    return stats;
}

static size_t held(void)
{
    return limit_stats().bytes_held;
}

static void set_hard(size_t bytes)
{
    expect_ok(tide_limit_set(&(tide_limit_options){.hard_bytes = bytes}));
}

/* ---- what counts ---- */

static void take_some(tide_pool *pool, void *state)
{
    (void)state;
    take(pool, TIDE_F64, 1000, 1);
    take(pool, TIDE_U8, 3 << 20, 2); /* a mapping */
    TAKE(pool, TIDE_F32, 20, 30);
    CHECK_POOL(pool);
}

static void slots_count_until_they_are_given_back(const scene *s)
{
    if (s->kind->check == TIDE_CHECK_GUARD)
        return; /* guarded arrays do not count */
    size_t before = held() - stats_of(s->pool).bytes_held;
    form_run(s->form, s->pool, take_some, NULL);
    assert_int_equal(held() - before, stats_of(s->pool).bytes_held);
    assert_true(s->kind->disabled || held() - before >= 8000 + (3 << 20));
    tide_pool_trim(s->pool, TIDE_ALL_TYPES);
    assert_int_equal(held() - before, stats_of(s->pool).bytes_held);
    assert_true(limit_stats().bytes_peak >= held());
}

static void buffers_and_exports_count(void **state)
{
    (void)state;
    size_t before = held();
    tide_buffers *buffers = tide_buffers_create(NULL, NULL);
    tide_buffer b = tide_buffer_acquire(buffers, 1 << 20);
    assert_int_equal(held() - before, 1 << 20);
    expect_ok(tide_buffer_release(buffers, b));
    assert_int_equal(held() - before, 1 << 20); /* it is cached */
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.buffers = buffers});
    take(pool, TIDE_U8, 1 << 20, 1);
    assert_int_equal(held() - before, 1 << 20); /* the same megabyte */
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_buffers_destroy(buffers));
    assert_int_equal(held(), before);

    pool = pool_of(TIDE_CHECK_NONE);
    tide_dl_managed *managed = tide_array_export(pool, TAKE(pool, TIDE_U8, 6400));
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
    assert_int_equal(held() - before, 6400);
    managed->deleter(managed);
    assert_int_equal(held(), before);

    static uint8_t memory[65536];
    pool = tide_pool_create(&(tide_pool_options){.memory = memory, .memory_bytes = sizeof memory});
    take(pool, TIDE_U8, 10000, 1);
    assert_int_equal(held(), before); /* the program's */
    expect_ok(tide_pool_destroy(pool));
}

/* ---- hard ---- */

static void refuse_at_the_limit(tide_pool *pool, void *state)
{
    (void)state;
    uint8_t *array = take(pool, TIDE_U8, 1000, 1);
    tide_pool_trim(pool, TIDE_ALL_TYPES);
    uint64_t refused = limit_stats().refused;
    set_hard(held() + 64000);
    assert_null(tide_acquire(pool, uint8_t, 64001));
    expect_error(TIDE_ERROR_LIMIT, "64 are missing");
    assert_int_equal(limit_stats().refused, refused + 1);
    assert_null(tide_grow(pool, uint8_t, array, 64001));
    expect_error(TIDE_ERROR_LIMIT, "the process");
    expect_bytes(array, 1000, 1);
    take(pool, TIDE_U8, 64000, 2);
    set_hard(0);
    take(pool, TIDE_U8, 128000, 3);
    CHECK_POOL(pool);
}

static void beyond_the_hard_limit_acquires_are_refused(const scene *s)
{
    if (s->kind->check == TIDE_CHECK_GUARD)
        return;
    counts before = counts_of(s->pool);
    form_run(s->form, s->pool, refuse_at_the_limit, NULL);
    counts_same(before, s->pool);
}

static void buffers_give_back_what_they_cached_before_they_refuse(void **state)
{
    (void)state;
    tide_buffers *cache = tide_buffers_create(NULL, NULL);
    tide_buffers *buffers = tide_buffers_create(NULL, NULL);
    tide_buffer b = tide_buffer_acquire(cache, 1 << 20);
    expect_ok(tide_buffer_release(cache, b));
    set_hard(held() + 4096);
    b = tide_buffer_acquire(buffers, 1 << 20);
    assert_true(b.generation != 0);
    assert_int_equal(tide_buffer_acquire(buffers, 1 << 20).generation, 0);
    expect_error(TIDE_ERROR_LIMIT, "are missing");
    set_hard(0);
    expect_ok(tide_buffer_release(buffers, b));
    expect_ok(tide_buffers_destroy(cache));
    expect_ok(tide_buffers_destroy(buffers));
}

static void *take_and_give(void *user)
{
    (void)user;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    for (int i = 0; i < 2000; i++) {
        (void)tide_acquire(pool, uint8_t, 100000);
        if (held() > limit_stats().hard_bytes)
            abort();
        if (tide_pool_empty(pool) != TIDE_OK)
            abort();
    }
    tide_pool_destroy(pool);
    return NULL;
}

static void threads_together_never_hold_more(void **state)
{
    (void)state;
    size_t before = held();
    pthread_t threads[4];
    set_hard(before + 250000);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(held(), before);
    set_hard(0);
}

static void the_setting_is_the_limit_where_none_is_set(void **state)
{
    (void)state;
    expect_ok(tide_tune_set("process_limit", 1));
    assert_int_equal(limit_stats().hard_bytes, 1 << 20);
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    assert_null(tide_acquire(pool, uint8_t, 2 << 20));
    expect_error(TIDE_ERROR_LIMIT, "process");
    set_hard(4 << 20);
    assert_non_null(tide_acquire(pool, uint8_t, 2 << 20));
    set_hard(0);
    expect_ok(tide_tune_set("process_limit", 0));
    assert_int_equal(limit_stats().hard_bytes, 0);
    expect_ok(tide_pool_destroy(pool));
}

/* ---- soft ---- */

struct giver {
    tide_pool *other, *asking;
    tide_buffers *buffers;
    unsigned calls;
    size_t wanted;
};

/* Has a pool and buffers to trim; the pool that asks refuses it. */
static bool give_something(size_t held_now, size_t wanted, void *user)
{
    struct giver *giver = user;
    giver->calls++;
    giver->wanted = wanted;
    assert_true(held_now + wanted > limit_stats().soft_bytes);
    if (giver->asking != NULL) {
        assert_null(tide_acquire(giver->asking, double, 1));
        assert_int_equal(tide_error_status(), TIDE_ERROR_STATE);
        assert_int_equal(tide_pool_reset(giver->asking), TIDE_ERROR_STATE);
        assert_int_equal(tide_pool_destroy(giver->asking), TIDE_ERROR_STATE);
    }
    if (giver->calls == 1)
        return tide_pool_trim(giver->other, TIDE_ALL_TYPES).bytes != 0;
    if (giver->calls == 2 && giver->buffers != NULL)
        return tide_buffers_trim(giver->buffers, 0).bytes != 0;
    return false;
}

static void take_beyond_the_soft_limit(tide_pool *pool, void *state)
{
    struct giver *giver = state;
    uint8_t *mine = take(pool, TIDE_U8, 700, 9);
    giver->asking = pool;
    giver->calls = 0;
    expect_ok(tide_limit_set(&(tide_limit_options){
        .soft_bytes = held() + 1000, .function = give_something, .user = giver}));
    take(pool, TIDE_U8, 50000, 1);
    take(pool, TIDE_I64, 50, 1);
    expect_ok(tide_limit_set(NULL));
    expect_bytes(mine, 700, 9);
    CHECK_POOL(pool);
}

static void who_wants_more_lets_the_program_give_something_first(const scene *s)
{
    if (s->kind->check == TIDE_CHECK_GUARD)
        return;
    struct giver giver = {.other = pool_of(TIDE_CHECK_NONE)};
    tide_mark mark = tide_checkpoint(giver.other);
    take(giver.other, TIDE_U8, 100000, 1);
    expect_ok(tide_rewind(giver.other, mark));
    tide_pool_trim(s->pool, TIDE_ALL_TYPES);
    form_run(s->form, s->pool, take_beyond_the_soft_limit, &giver);
    assert_int_equal(giver.calls, 1); /* what it gave was enough */
    assert_in_range(giver.wanted, 50000, 50100);
    assert_int_equal(stats_of(giver.other).bytes_held, 0);
    expect_ok(tide_pool_destroy(giver.other));
}

static bool always_more(size_t held_now, size_t wanted, void *user)
{
    (void)held_now, (void)wanted;
    ++*(unsigned *)user;
    return true;
}

static void who_never_gives_is_asked_sixteen_times(void **state)
{
    (void)state;
    unsigned calls = 0;
    tide_pool *pool = pool_of(TIDE_CHECK_NONE);
    tide_device *host = tide_device_open("host");
    tide_device_memory before, after;
    expect_ok(tide_device_memory_stats(host, &before));
    expect_ok(tide_limit_set(
        &(tide_limit_options){.soft_bytes = 1, .function = always_more, .user = &calls}));
    take(pool, TIDE_F64, 100, 1); /* the soft limit refuses nothing */
    assert_int_equal(calls, 16);
    expect_ok(
        tide_device_memory_stats(host, &after)); /* the process is asked, as a device's user is */
    assert_int_equal(after.asked, before.asked + 16);
    take(pool, TIDE_F64, 0, 1);
    expect_ok(tide_limit_set(NULL));
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_device_close(host));
}

static void limits_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    unsigned calls = 0;
    set_hard(1 << 30);
    assert_int_equal(tide_limit_set(&(tide_limit_options){.soft_bytes = 5}), TIDE_ERROR_ARGUMENT);
    assert_int_equal(tide_limit_set(&(tide_limit_options){.function = always_more}),
                     TIDE_ERROR_ARGUMENT);
    assert_int_equal(
        tide_limit_set(&(tide_limit_options){
            .soft_bytes = 5, .hard_bytes = 4, .function = always_more, .user = &calls}),
        TIDE_ERROR_ARGUMENT);
    assert_int_equal(tide_limit_stats(NULL), TIDE_ERROR_ARGUMENT);
    assert_int_equal(limit_stats().hard_bytes, 1 << 30);
    set_hard(0);
}

static const form_case cases[] = {
    CASE(slots_count_until_they_are_given_back),
    CASE(beyond_the_hard_limit_acquires_are_refused),
    CASE(who_wants_more_lets_the_program_give_something_first),
};

static const struct CMUnitTest others[] = {
    cmocka_unit_test(buffers_and_exports_count),
    cmocka_unit_test(buffers_give_back_what_they_cached_before_they_refuse),
    cmocka_unit_test(threads_together_never_hold_more),
    cmocka_unit_test(the_setting_is_the_limit_where_none_is_set),
    cmocka_unit_test(who_never_gives_is_asked_sixteen_times),
    cmocka_unit_test(limits_that_make_no_sense_are_refused),
};

int main(void)
{
    return FORMS_MAIN("process_limit", cases, others);
}

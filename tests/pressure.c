/* SPDX-License-Identifier: MIT */
/* Where memory is short, what nobody uses goes back before anything is refused. All of it in bytes, never
 * in seconds. */
#define _GNU_SOURCE
#include "arrays_support.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/buffers.h>
#include <tidepool/learn.h>
#include <tidepool/limit.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

enum { MIB = 1 << 20 };

static tide_limit_statistics limit_stats(void)
{
    tide_limit_statistics stats;
    expect_ok(tide_limit_stats(&stats));
    return stats;
}

/* So many bytes more than are held now. */
static void leave_room(size_t bytes)
{
    size_t hard = bytes != 0 ? limit_stats().bytes_held + bytes : 0;
    expect_ok(tide_limit_set(&(tide_limit_options){.hard_bytes = hard}));
}

static void use_and_free(tide_pool *pool, size_t bytes)
{
    TIDE_SCOPE(pool);
    char *used = tide_acquire(pool, char, bytes);
    assert_non_null(used);
    used[0] = used[bytes - 1] = 1;
}

/* ---- the pool's own limit ------------------------------------------------------------------ */

static void use_two(tide_pool *pool, void *state)
{
    (void)state;
    take(pool, TIDE_F32, 6 * MIB, 1);
    take(pool, TIDE_F32, 6 * MIB, 2);
}

static void use_another_type(tide_pool *pool, void *state)
{
    (void)state;
    take(pool, TIDE_F64, 3 * MIB, 3);
    CHECK_POOL(pool);
}

static void use_a_larger_one(tide_pool *pool, void *state)
{
    (void)state;
    take(pool, TIDE_F32, 11 * MIB, 4);
    CHECK_POOL(pool);
}

static void free_slots_make_room_below_the_limit(void **state)
{
    (void)state;
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.limit_bytes = 64 * MIB});
    {
        TIDE_SCOPE(pool);
        use_two(pool, NULL);
    }
    {
        TIDE_SCOPE(pool);
        use_another_type(pool, NULL);
    }
    assert_int_equal(stats_of(pool).pressed, 1); /* no more than is missing */
    {
        TIDE_SCOPE(pool);
        use_a_larger_one(pool, NULL);
    }
    assert_true(stats_of(pool).bytes_peak <= 64 * MIB);
    expect_ok(tide_pool_destroy(pool));
}

static void the_smallest_free_slot_that_is_enough_goes_alone(void **state)
{
    (void)state;
    enum { SMALL = 100 };
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.limit_bytes = 64 * MIB});
    {
        TIDE_SCOPE(pool);
        take(pool, TIDE_BOOL, 20 * MIB, 1);
        take(pool, TIDE_BOOL, 32 * MIB, 2);
        for (unsigned i = 0; i < SMALL; i++)
            take(pool, TIDE_I16, 32, i);
    }
    use_and_free(pool, 24 * MIB);
    CHECK_POOL(pool);
    assert_int_equal(stats_of(pool).slots, 1 + SMALL + 1);
    assert_int_equal(stats_of(pool).pressed, 1);
    assert_true(stats_of(pool).bytes_held > 56 * MIB);
    {
        TIDE_SCOPE(pool);
        take(pool, TIDE_I64, 7 * MIB + MIB / 2, 3); /* the two that are left, and the small ones */
    }
    CHECK_POOL(pool);
    assert_int_equal(stats_of(pool).pressed, 1 + 2 + SMALL);
    expect_ok(tide_pool_destroy(pool));
}

/* Two of three are needed, and none would be enough: the last ones go, and the first serves again. */
static void of_equal_free_slots_only_those_go_that_are_needed(void **state)
{
    (void)state;
    enum { UNIT = 1024 };
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.limit_bytes = 40 * UNIT});
    {
        TIDE_SCOPE(pool);
        for (unsigned i = 0; i < 3; i++)
            take(pool, TIDE_U8, 10 * UNIT, i);
    }
    {
        TIDE_SCOPE(pool);
        take(pool, TIDE_BOOL, 25 * UNIT, 3);
    }
    CHECK_POOL(pool);
    tide_pool_statistics before = stats_of(pool);
    assert_int_equal(before.pressed, 2);
    {
        TIDE_SCOPE(pool);
        take(pool, TIDE_U8, 10 * UNIT, 4);
    }
    assert_int_equal(stats_of(pool).allocations, before.allocations);
    expect_ok(tide_pool_destroy(pool));
}

/* In whatever order the pool came to its types. */
static void of_equal_free_slots_the_last_of_the_lowest_type_goes(void **state)
{
    (void)state;
    enum { UNIT = 1024 };
    const tide_type orders[2][3] = {{TIDE_U8, TIDE_U8, TIDE_BOOL}, {TIDE_BOOL, TIDE_U8, TIDE_U8}};
    for (int order = 0; order < 2; order++) {
        tide_pool *pool = tide_pool_create(&(tide_pool_options){.limit_bytes = 40 * UNIT});
        {
            TIDE_SCOPE(pool);
            for (unsigned i = 0; i < 3; i++)
                take(pool, orders[order][i], 10 * UNIT, i);
        }
        {
            TIDE_SCOPE(pool);
            take(pool, TIDE_I8, 15 * UNIT, 3);
        }
        tide_pool_statistics before = stats_of(pool);
        assert_int_equal(before.pressed, 1);
        {
            TIDE_SCOPE(pool);
            take(pool, TIDE_U8, 10 * UNIT, 4);
            take(pool, TIDE_BOOL, 10 * UNIT, 5);
        }
        assert_int_equal(stats_of(pool).allocations, before.allocations);
        expect_ok(tide_pool_destroy(pool));
    }
}

/* It has 10 units, and beside them 14 are missing: of the others that of 20 is enough alone. */
static void the_bytes_of_the_slot_that_is_replaced_count_once(void **state)
{
    (void)state;
    enum { UNIT = MIB / 16 };
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.limit_bytes = 60 * UNIT});
    {
        TIDE_SCOPE(pool);
        take(pool, TIDE_U8, 10 * UNIT, 1);
        take(pool, TIDE_BOOL, 20 * UNIT, 2);
        take(pool, TIDE_I16, 4 * UNIT, 3);
    }
    {
        TIDE_SCOPE(pool);
        take(pool, TIDE_U8, 46 * UNIT, 4);
    }
    CHECK_POOL(pool);
    assert_int_equal(stats_of(pool).pressed, 2);
    assert_int_equal(stats_of(pool).bytes_held, 54 * UNIT);
    expect_ok(tide_pool_destroy(pool));
}

/* Its bytes are live, so they make no room when it grows: 5 units are missing, which one free slot has. */
static void the_bytes_of_a_live_slot_that_grows_do_not_count(void **state)
{
    (void)state;
    enum { UNIT = MIB / 16 };
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.limit_bytes = 40 * UNIT});
    uint8_t *live = take(pool, TIDE_U8, 10 * UNIT, 1);
    {
        TIDE_SCOPE(pool);
        take(pool, TIDE_BOOL, 10 * UNIT, 2);
        take(pool, TIDE_I8, 10 * UNIT, 3);
    }
    live = tide_grow(pool, uint8_t, live, 25 * UNIT);
    expect_bytes(live, 10 * UNIT, 1);
    CHECK_POOL(pool);
    assert_int_equal(stats_of(pool).pressed, 1);
    assert_int_equal(stats_of(pool).bytes_held, 35 * UNIT);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

static void what_is_live_stays_and_the_refusal_says_how_much_it_is(void **state)
{
    (void)state;
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.limit_bytes = 4 * MIB});
    use_and_free(pool, MIB / 2);
    uint8_t *live = take(pool, TIDE_U8, 3 * MIB, 7);
    assert_null(tide_acquire(pool, double, MIB));
    expect_error(TIDE_ERROR_LIMIT, "7340032 are missing; 3145728 are live");
    expect_bytes(live, 3 * MIB, 7);
    assert_null(tide_grow(pool, uint8_t, live, 5 * MIB));
    expect_bytes(live, 3 * MIB, 7);
    assert_int_equal(stats_of(pool).pressed, 0);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

static void given_memory_is_used_whole(void **state)
{
    (void)state;
    static uint8_t memory[4 * MIB];
    tide_pool *pool =
        tide_pool_create(&(tide_pool_options){.memory = memory, .memory_bytes = sizeof memory});
    use_and_free(pool, 2 * MIB);
    use_and_free(pool, 3 * MIB); /* not beside the first */
    {
        TIDE_SCOPE(pool);
        assert_non_null(tide_acquire(pool, double, MIB / 4));
    }
    expect_ok(tide_pool_destroy(pool));
}

/* ---- the limit of the process -------------------------------------------------------------- */

static void other_pools_of_the_thread_give_back(void **state)
{
    (void)state;
    tide_pool *idle = tide_pool_create(NULL), *pool = tide_pool_create(NULL);
    leave_room(8 * MIB);
    use_and_free(idle, 6 * MIB);
    uint64_t pressed = limit_stats().pressed;
    use_and_free(pool, 7 * MIB);
    assert_int_equal(stats_of(idle).bytes_held, 0);
    assert_int_equal(limit_stats().pressed, pressed + 1);
    use_and_free(idle, 6 * MIB); /* it is as good as before */
    CHECK_POOL(idle);
    leave_room(0);
    expect_ok(tide_pool_destroy(idle));
    expect_ok(tide_pool_destroy(pool));
}

static void pools_give_back_to_buffers_and_buffers_to_pools(void **state)
{
    (void)state;
    tide_pool *pool = tide_pool_create(NULL);
    tide_buffers *buffers = tide_buffers_create(NULL, NULL);
    leave_room(9 * MIB);
    use_and_free(pool, 6 * MIB);
    tide_buffer buffer = tide_buffer_acquire(buffers, 8 * MIB);
    assert_true(buffer.generation != 0);
    assert_int_equal(stats_of(pool).bytes_held, 0);
    expect_ok(tide_buffer_release(buffers, buffer)); /* cached */
    use_and_free(pool, 6 * MIB);
    leave_room(0);
    expect_ok(tide_buffers_destroy(buffers));
    expect_ok(tide_pool_destroy(pool));
}

/* What the pool gives up goes into the cache first, and is held there until the cache gives it up. */
static void of_slots_that_are_buffers_only_those_go_that_are_missing(void **state)
{
    (void)state;
    enum { SLOTS = 80, SLOT = 64 << 10 };
    tide_buffers *buffers = tide_buffers_create(NULL, NULL);
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.buffers = buffers});
    {
        TIDE_SCOPE(pool);
        for (unsigned i = 0; i < SLOTS; i++)
            take(pool, TIDE_U8, SLOT, (unsigned char)i);
    }
    leave_room(8 * SLOT - SLOT / 2);
    {
        TIDE_SCOPE(pool);
        take(pool, TIDE_U8, 8 * SLOT, 1);
    }
    leave_room(0);
    tide_buffers_statistics now;
    expect_ok(tide_buffers_stats(buffers, &now, NULL, 0));
    assert_int_equal(now.failed, 0);
    assert_int_equal(stats_of(pool).pressed, 1);
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_buffers_destroy(buffers));
}

static void who_is_refused_is_told_who_holds_how_much(void **state)
{
    (void)state;
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.name = "holder"});
    assert_non_null(tide_acquire(pool, char, 3 * MIB));
    leave_room(MIB);
    assert_null(tide_acquire(pool, double, MIB));
    expect_error(TIDE_ERROR_LIMIT, "'holder' most: 3145728; buffers hold ");
    leave_room(0);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

/* ---- idle threads -------------------------------------------------------------------------- */

enum { WORKERS = 20, WORK = 16 * MIB };

static sem_t go[WORKERS], done;
static tide_pool *pools[WORKERS];
static bool had[WORKERS]; /* what it asked for, the last time */
static bool over;

static void *work(void *number)
{
    unsigned i = (unsigned)(uintptr_t)number;
    for (pools[i] = tide_pool_local();;) {
        sem_wait(&go[i]);
        if (__atomic_load_n(&over, __ATOMIC_RELAXED))
            return NULL;
        {
            TIDE_FRAME(pools[i], (char, text, WORK));
            had[i] = text != NULL;
            if (had[i])
                memset(text, (int)i, WORK);
        }
        if (tide_pool_check(pools[i]) != TIDE_OK)
            abort();
        sem_post(&done);
    }
}

static pthread_t threads[WORKERS];

static void begin_work(void)
{
    sem_init(&done, 0, 0);
    __atomic_store_n(&over, false, __ATOMIC_RELAXED);
    for (uintptr_t i = 0; i < WORKERS; i++) {
        sem_init(&go[i], 0, 0);
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
    }
}

static void one_after_the_other(void)
{
    for (unsigned i = 0; i < WORKERS; i++) {
        do {
            sem_post(&go[i]);
            sem_wait(&done);
        } while (!had[i]);
    }
}

static void end_work(void)
{
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < WORKERS; i++) {
        sem_post(&go[i]);
        pthread_join(threads[i], NULL);
    }
}

/* A worker that has posted may be awake for a moment still: then it is not idle, and who cannot have
 * what it holds tries again. */
static void what_idle_threads_hold_is_given_back_at_the_limit(void **state)
{
    (void)state;
    if (under_valgrind()) /* no thread is taken for idle there */
        skip();
    size_t before = limit_stats().bytes_held;
    begin_work();
    leave_room(3 * WORK);
    for (int round = 0; round < 3; round++)
        one_after_the_other();
    assert_true(limit_stats().pressed > 0);
    assert_true(limit_stats().bytes_held - before <= 3 * WORK);
    leave_room(0);
    end_work();
}

/* Passes that find nobody who would serve them. */
static void what_idle_threads_hold_goes_by_age(void **state)
{
    (void)state;
    if (under_valgrind()) /* no thread is taken for idle there */
        skip();
    size_t before = limit_stats().bytes_held;
    begin_work();
    expect_ok(tide_tune_set("auto_trim", 1));
    for (int round = 0; round < 3; round++) {
        one_after_the_other();
        while (limit_stats().bytes_held - before > 2 * WORK)
            tide_step(); /* the last one may be awake for a moment still */
    }
    expect_ok(tide_tune_set("auto_trim", 0));
    end_work();
}

static void *take_and_hold(void *user)
{
    tide_pool *pool = tide_pool_local();
    use_and_free(pool, 8 * MIB);
    TIDE_SCOPE(pool);
    char *live = tide_acquire(pool, char, 4 * MIB);
    fill_bytes(live, 4 * MIB, 5);
    sem_post(&done);
    sem_wait(user);
    expect_bytes(live, 4 * MIB, 5);
    return NULL;
}

static void a_thread_that_sleeps_in_a_scope_keeps_its_arrays(void **state)
{
    (void)state;
    pthread_t thread;
    sem_t go_on;
    sem_init(&done, 0, 0);
    sem_init(&go_on, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, take_and_hold, &go_on), 0);
    sem_wait(&done);
    tide_pool *pool = tide_pool_create(NULL);
    leave_room(MIB);
    assert_null(tide_acquire(pool, char, 2 * MIB));
    leave_room(0);
    sem_post(&go_on);
    pthread_join(thread, NULL);
    expect_ok(tide_pool_destroy(pool));
}

/* Owners that wake and sleep as they like, while the main thread wants what they have. */
static void *nap_and_work(void *user)
{
    const bool *stop = user;
    tide_pool *pool = tide_pool_local();
    for (unsigned i = 0; !__atomic_load_n(stop, __ATOMIC_RELAXED); i++) {
        if (i % 4 == 0)
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
        TIDE_FRAME(pool, (int, numbers, 40000), (char, text, 100000));
        if (numbers == NULL || text == NULL)
            continue; /* it is short just now */
        for (unsigned k = 0; k < 40000; k += 512)
            numbers[k] = (int)(k + i);
        memset(text, (int)i, 1000);
        if (i % 4 == 2) /* in the scope, too */
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
        for (unsigned k = 0; k < 40000; k += 512)
            if (numbers[k] != (int)(k + i))
                abort();
    }
    return NULL;
}

static void owners_may_wake_at_any_time(void **state)
{
    (void)state;
    if (under_valgrind()) /* no thread is taken for idle there */
        skip();
    enum { NAPPERS = 4 };
    pthread_t nappers[NAPPERS];
    bool stop = false;
    uint64_t pressed = limit_stats().pressed;
    tide_pool *pool = tide_pool_create(NULL);
    leave_room(1200000);
    for (int i = 0; i < NAPPERS; i++)
        assert_int_equal(pthread_create(&nappers[i], NULL, nap_and_work, &stop), 0);
    for (size_t i = 0; i < scaled(20000, 2000); i++) {
        (void)tide_acquire(pool, char, 1000000);
        expect_ok(tide_pool_empty(pool));
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < NAPPERS; i++)
        pthread_join(nappers[i], NULL);
    assert_true(limit_stats().pressed > pressed);
    leave_room(0);
    expect_ok(tide_pool_destroy(pool));
}

/* Its owner steps, but opens no scope at the root: nobody else is to be asked. */
static void what_the_stepping_thread_does_not_use_goes_by_age(void **state)
{
    (void)state;
    tide_pool *pool = tide_pool_create(NULL);
    use_and_free(pool, 4 * MIB);
    expect_ok(tide_tune_set("auto_trim", 1));
    {
        TIDE_SCOPE(pool); /* which it may do inside of one that stays open */
        for (int i = 0; i < 40; i++)
            expect_ok(tide_step());
        assert_true(stats_of(pool).bytes_held >= 4 * MIB);
    }
    for (int i = 0; i < 40; i++)
        expect_ok(tide_step());
    expect_ok(tide_tune_set("auto_trim", 0));
    assert_int_equal(stats_of(pool).bytes_held, 0);
    expect_ok(tide_pool_destroy(pool));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_the_stepping_thread_does_not_use_goes_by_age),
    cmocka_unit_test(free_slots_make_room_below_the_limit),
    cmocka_unit_test(the_smallest_free_slot_that_is_enough_goes_alone),
    cmocka_unit_test(of_equal_free_slots_only_those_go_that_are_needed),
    cmocka_unit_test(of_equal_free_slots_the_last_of_the_lowest_type_goes),
    cmocka_unit_test(the_bytes_of_the_slot_that_is_replaced_count_once),
    cmocka_unit_test(the_bytes_of_a_live_slot_that_grows_do_not_count),
    cmocka_unit_test(what_is_live_stays_and_the_refusal_says_how_much_it_is),
    cmocka_unit_test(given_memory_is_used_whole),
    cmocka_unit_test(other_pools_of_the_thread_give_back),
    cmocka_unit_test(pools_give_back_to_buffers_and_buffers_to_pools),
    cmocka_unit_test(of_slots_that_are_buffers_only_those_go_that_are_missing),
    cmocka_unit_test(who_is_refused_is_told_who_holds_how_much),
    cmocka_unit_test(what_idle_threads_hold_is_given_back_at_the_limit),
    cmocka_unit_test(what_idle_threads_hold_goes_by_age),
    cmocka_unit_test(a_thread_that_sleeps_in_a_scope_keeps_its_arrays),
    cmocka_unit_test(owners_may_wake_at_any_time),
};

int main(void)
{
    return cmocka_run_group_tests_name("pressure", tests, NULL, NULL);
}

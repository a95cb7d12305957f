/* SPDX-License-Identifier: MIT */
/* A shortage, of any kind of memory, takes what was put off and what is cached, before the program
 * is asked; what another thread is just letting go is waited for. */
#define _GNU_SOURCE
#include "later.h"

#include <unistd.h>

#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/device_memory.h>
#include <tidepool/upkeep.h>

enum { CACHED = 4 << 20 };

static unsigned asked;

static bool is_full(tide_device *device, size_t wanted, unsigned times, void *user)
{
    (void)device, (void)wanted, (void)user;
    assert_int_equal(times, asked++);
    return false;
}

/* It is had before the program is asked, and before the request fails. */
static void a_shortage_takes_what_was_put_off(void **unused)
{
    (void)unused;
    for (int way = 0; way < 8; way++) {
        bool drawing = (way & 1) != 0, drawn = (way & 2) != 0, by_limit = (way & 4) != 0;
        scene s = put_off(drawn);
        tide_device_memory held;
        expect_ok(tide_device_memory_stats(s.b.device, &held));
        assert_true(held.bytes_held >= BYTES);
        asked = 0;
        expect_ok(tide_device_memory_set(
            s.b.device, &(tide_device_memory_options){.limit_bytes = by_limit ? 2 * BYTES - 1 : 0,
                                                      .full = is_full}));
        if (!by_limit)
            fake_limit(2 * BYTES - 1);
        tide_buffers *buffers =
            tide_buffers_create(s.b.device, &(tide_buffers_options){.stream = s.b.stream});
        tide_pool *pool = tide_pool_create(&(tide_pool_options){
            .device = s.b.device, .stream = s.b.stream, .buffers = drawing ? buffers : NULL});
        if (drawn && !drawing) /* then it is in the cache of its instance */
            expect_ok(tide_buffers_destroy(s.buffers));
        {
            TIDE_SCOPE(pool);
            uint8_t *x = tide_acquire(pool, uint8_t, BYTES);
            if (x == NULL)
                fail_msg("way %d: %s", way, tide_error_message());
            put(s.b.stream, x, BYTES, 1);
            assert_int_equal(asked, 0);
            assert_null(tide_acquire(pool, double, BYTES));
            assert_int_equal(asked, 1);
        }
        assert_int_equal(fake_calls("cuCtxSynchronize"), 1);
        expect_ok(tide_pool_destroy(pool));
        expect_ok(tide_buffers_destroy(buffers));
        if (!drawn || drawing)
            expect_ok(tide_buffers_destroy(s.buffers));
        bench_end(&s.b);
    }
}

/* ---- what others have in hand --------------------------------------------------------------- */

static void ask_when_full(tide_device *device)
{
    asked = 0;
    expect_ok(tide_device_memory_set(device, &(tide_device_memory_options){.full = is_full}));
}

/* Another thread has what was put off in hand, and is held up at an entry of the driver until
 * `letting` lets it go on: the shortage is over with that. */
static void expect_a_shortage_to_wait(const char *entry, void *(*letting)(void *))
{
    scene s = put_off(false);
    ask_when_full(s.b.device);
    fake_limit(2 * BYTES - 1);
    pthread_t other = trim_held_up(&s, entry), go_on;
    assert_int_equal(pthread_create(&go_on, NULL, letting, NULL), 0);
    {
        TIDE_SCOPE(s.b.pool);
        uint8_t *x = tide_acquire(s.b.pool, uint8_t, BYTES);
        pthread_join(go_on, NULL);
        pthread_join(other, NULL);
        if (x == NULL)
            fail_msg("%s", tide_error_message());
        put(s.b.stream, x, BYTES, 1);
    }
    assert_int_equal(asked, 0);
    bench_end(&s.b);
}

/* When both wait for the device, or have had time for it. */
static void *let_both_go_on(void *unused)
{
    for (int i = 0; i < 200 && fake_held_up() < 2; i++)
        usleep(1000);
    fake_hold_up(NULL);
    return unused;
}

static void a_shortage_waits_for_what_others_let_go(void **unused)
{
    (void)unused;
    expect_a_shortage_to_wait("cuCtxSynchronize", let_both_go_on);
}

static void *let_go_on_after_a_while(void *unused)
{
    usleep(100000);
    fake_hold_up(NULL);
    return unused;
}

/* The wait is over, and the other lets it go just then: however slowly it comes to that. */
static void a_shortage_waits_for_a_thread_that_is_slow(void **unused)
{
    (void)unused;
    expect_a_shortage_to_wait("cuMemFreeAsync", let_go_on_after_a_while);
}

/* ---- other kinds of memory ------------------------------------------------------------------ */

/* Pinned and managed memory: as for the device's own. */
static void a_shortage_of_other_memory_takes_what_was_put_off(void **unused)
{
    (void)unused;
    for (int managed = 0; managed < 2; managed++) {
        scene s = put_off(false);
        const uint32_t kind = managed ? TIDE_BUFFER_MANAGED : TIDE_BUFFER_PINNED;
        const size_t staged = fake_pinned_bytes();
        assert_true(staged >= BYTES);
        ask_when_full(s.b.device);
        if (managed)
            fake_limit(2 * BYTES - 1);
        else
            fake_limit_pinned(staged);
        tide_buffers *buffers =
            tide_buffers_create(s.b.device, &(tide_buffers_options){.stream = s.b.stream});
        tide_buffer one = tide_buffer_acquire_on(buffers, BYTES, kind, s.b.stream);
        if (one.generation == 0)
            fail_msg("%d: %s", managed, tide_error_message());
        assert_int_equal(asked, 0);
        assert_int_equal(fake_calls("cuCtxSynchronize"), 1);
        tide_buffer more =
            tide_buffer_acquire_on(buffers, managed ? BYTES : staged, kind, s.b.stream);
        assert_int_equal(more.generation, 0);
        assert_int_equal(tide_error_status(), TIDE_ERROR_MEMORY);
        assert_int_equal(asked, 1);
        expect_ok(tide_buffer_release_on(buffers, one, s.b.stream));
        expect_ok(tide_buffers_destroy(buffers));
        bench_end(&s.b);
    }
}

static tide_status upload(tide_pool *pool)
{
    const char here[BYTES] = {1};
    TIDE_SCOPE(pool);
    uint8_t *there = tide_acquire(pool, uint8_t, BYTES);
    assert_non_null(there);
    return tide_upload(pool, there, here, BYTES);
}

/* The pool that the copy is for is shut while the program is asked. */
static bool is_full_and_shut(tide_device *device, size_t wanted, unsigned times, void *user)
{
    expect_status(tide_pool_empty(user), TIDE_ERROR_STATE);
    return is_full(device, wanted, times, NULL);
}

static void a_copy_that_cannot_be_staged_takes_what_was_put_off(void **unused)
{
    (void)unused;
    scene s = put_off(false);
    ask_when_full(s.b.device);
    fake_limit_pinned(fake_pinned_bytes());
    if (upload(s.b.pool) != TIDE_OK)
        fail_msg("%s", tide_error_message());
    assert_int_equal(asked, 0);
    assert_int_equal(fake_calls("cuCtxSynchronize"), 1);
    tide_pool *pool =
        tide_pool_create(&(tide_pool_options){.device = s.b.device, .stream = s.b.stream});
    expect_ok(tide_device_memory_set(
        s.b.device, &(tide_device_memory_options){.full = is_full_and_shut, .user = pool}));
    expect_status(upload(pool), TIDE_ERROR_MEMORY);
    expect_said("of pinned memory for copies");
    assert_int_equal(asked, 1);
    expect_ok(tide_pool_destroy(pool));
    bench_end(&s.b);
}

static void a_copy_that_cannot_be_staged_takes_what_is_cached(void **unused)
{
    (void)unused;
    bench b = bench_start(44);
    tide_buffers *buffers =
        tide_buffers_create(b.device, &(tide_buffers_options){.stream = b.stream});
    tide_buffer one = tide_buffer_acquire_on(buffers, CACHED, TIDE_BUFFER_PINNED, b.stream);
    assert_true(one.generation != 0);
    expect_ok(tide_buffer_release_on(buffers, one, b.stream));
    fake_limit_pinned(fake_pinned_bytes());
    assert_int_equal(fake_calls("cuMemFreeHost"), 0);
    if (upload(b.pool) != TIDE_OK)
        fail_msg("%s", tide_error_message());
    assert_int_equal(fake_calls("cuMemFreeHost"), 1);
    expect_ok(tide_buffers_destroy(buffers));
    bench_end(&b);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shortage_takes_what_was_put_off),
        cmocka_unit_test(a_shortage_waits_for_what_others_let_go),
        cmocka_unit_test(a_shortage_waits_for_a_thread_that_is_slow),
        cmocka_unit_test(a_shortage_of_other_memory_takes_what_was_put_off),
        cmocka_unit_test(a_copy_that_cannot_be_staged_takes_what_was_put_off),
        cmocka_unit_test(a_copy_that_cannot_be_staged_takes_what_is_cached),
    };
    return cmocka_run_group_tests_name("shortage", tests, NULL, NULL);
}

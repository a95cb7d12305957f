/* SPDX-License-Identifier: MIT */
/* What goes back before a request for a device's memory is refused, in which order, and what the refusal
 * says; where the driver has no memory, with its pool alone and by the page. */
#include "support.h"

#include <pthread.h>
#include <semaphore.h>

#include <tidepool/buffers.h>
#include <tidepool/device_bump.h>
#include <tidepool/device_memory.h>
#include <tidepool/tune.h>

/* Of 80 a program has had 60, and wants 70. */
enum { UNIT = 1 << 18, ALL = 80 * UNIT, WANTED = 70 * UNIT, PARTS = 6, PART = 10 * UNIT };

static unsigned asked;

static bool count_asked(tide_device *device, size_t wanted, unsigned times, void *user)
{
    (void)device, (void)wanted, (void)times, (void)user;
    asked++;
    return false;
}

/* `paged`: with memory by the page. The program is asked where nothing else is left. */
static bench start(uint32_t seed, bool paged)
{
    expect_ok(tide_tune_set("cuda_memory", paged));
    bench b = bench_start(seed);
    expect_ok(tide_tune_set("cuda_memory", 0));
    assert_int_equal(fake_calls("cuMemAddressReserve"), paged);
    expect_ok(tide_device_memory_set(b.device, &(tide_device_memory_options){.full = count_asked}));
    fake_limit(ALL);
    asked = 0;
    return b;
}

static tide_pool *another_pool(const bench *b, const char *name)
{
    tide_pool *pool = tide_pool_create(
        &(tide_pool_options){.device = b->device, .stream = b->stream, .name = name});
    assert_non_null(pool);
    return pool;
}

static tide_pool_statistics stats_of(const tide_pool *pool)
{
    tide_pool_statistics stats;
    expect_ok(tide_pool_stats(pool, &stats));
    return stats;
}

/* Work on it is in flight, and what is behind it is free. */
static void use_and_free(tide_pool *pool, void *stream)
{
    TIDE_SCOPE(pool);
    for (uint8_t i = 0; i < PARTS; i++) {
        uint8_t *x = tide_acquire(pool, uint8_t, PART);
        assert_non_null(x);
        put(stream, x, PART, i);
    }
}

static void expect_there(const bench *b, uint8_t *x)
{
    if (x == NULL)
        fail_msg("%s", tide_error_message());
    put(b->stream, x, WANTED, 7);
    expect(b->stream, x, WANTED, 7);
}

static void expect_wanted_of(const bench *b, tide_pool *pool)
{
    TIDE_SCOPE(pool);
    expect_there(b, (uint8_t *)tide_acquire(pool, float, WANTED / sizeof(float)));
}

static void expect_refused(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    assert_null(tide_acquire(pool, float, WANTED / sizeof(float)));
    assert_int_equal(tide_error_status(), TIDE_ERROR_MEMORY);
}

/* ---- what goes ---------------------------------------------------------------------------------- */

static void what_the_pool_has_free_goes_though_it_is_not_enough_alone(void **unused)
{
    (void)unused;
    for (uint32_t seed = 1; seed <= 6; seed++) {
        bench b = start(seed, seed % 2 == 0);
        use_and_free(b.pool, b.stream);
        expect_wanted_of(&b, b.pool);
        assert_int_equal(asked, 0);
        assert_int_equal(stats_of(b.pool).pressed, PARTS);
        bench_end(&b);
    }
}

/* More of them than a request is tried again for. */
static void many_small_ones_go_at_once(void **unused)
{
    (void)unused;
    enum { SMALL = UNIT / 4, MANY = 240 };
    for (int paged = 0; paged < 2; paged++) {
        bench b = start(1, paged != 0);
        {
            TIDE_SCOPE(b.pool);
            assert_non_null(tide_acquire(b.pool, uint8_t, SMALL));
            for (int i = 1; i < MANY; i++)
                assert_non_null(tide_acquire(b.pool, uint8_t, SMALL));
        }
        expect_wanted_of(&b, b.pool);
        bench_end(&b);
    }
}

static void another_pool_of_the_thread_gives_back(void **unused)
{
    (void)unused;
    for (uint32_t seed = 1; seed <= 6; seed++) {
        bench b = start(seed, seed % 2 == 0);
        tide_pool *others[2] = {another_pool(&b, "one"), another_pool(&b, "two")};
        use_and_free(others[seed / 2 % 2], b.stream);
        expect_wanted_of(&b, b.pool);
        assert_int_equal(asked, 0);
        assert_int_equal(stats_of(others[seed / 2 % 2]).pressed, PARTS);
        for (int i = 0; i < 2; i++)
            expect_ok(tide_pool_destroy(others[i]));
        bench_end(&b);
    }
}

static void idle_pools_of_the_thread_give_back_to_buffers(void **unused)
{
    (void)unused;
    for (uint32_t seed = 1; seed <= 6; seed++) {
        bench b = start(seed, seed % 2 == 0);
        use_and_free(b.pool, b.stream);
        tide_buffers *buffers = bench_buffers(&b, TIDE_BUFFER_DEVICE);
        tide_buffer buffer = tide_buffer_acquire(buffers, WANTED);
        expect_there(&b, tide_buffer_pointer(buffers, buffer));
        assert_int_equal(asked, 0);
        expect_ok(tide_buffer_release(buffers, buffer));
        expect_ok(tide_buffers_destroy(buffers));
        bench_end(&b);
    }
}

static void slots_that_are_buffers_go_too(void **unused)
{
    (void)unused;
    for (uint32_t seed = 1; seed <= 6; seed++) {
        bench b = start(seed, seed % 2 == 0);
        tide_buffers *buffers = bench_buffers(&b, TIDE_BUFFER_DEVICE);
        tide_pool *pool = tide_pool_create(
            &(tide_pool_options){.device = b.device, .stream = b.stream, .buffers = buffers});
        use_and_free(pool, b.stream);
        expect_wanted_of(&b, pool);
        assert_int_equal(stats_of(pool).pressed, PARTS);
        expect_ok(tide_pool_destroy(pool));
        expect_ok(tide_buffers_destroy(buffers));
        bench_end(&b);
    }
}

/* Nothing of that ends the capture. */
static void a_captured_pool_gets_what_others_have_free(void **unused)
{
    (void)unused;
    for (int paged = 0; paged < 2; paged++) {
        bench b = start(1, paged != 0);
        void *stream = fake_stream_create(0);
        tide_pool *other = tide_pool_create(
            &(tide_pool_options){.device = b.device, .stream = stream, .name = "other"});
        use_and_free(other, stream);
        expect_ok(tide_capture_begin(b.pool));
        fake_capture_begin(b.stream);
        {
            TIDE_SCOPE(b.pool);
            uint8_t *x = tide_acquire(b.pool, uint8_t, WANTED);
            if (x == NULL)
                fail_msg("%s", tide_error_message());
            put(b.stream, x, WANTED, 7);
        }
        assert_int_equal(asked, 0);
        expect_capture_whole(b.stream);
        tide_capture_drop(tide_capture_end(b.pool), b.stream);
        expect_ok(tide_pool_destroy(other));
        fake_stream_destroy(stream);
        bench_end(&b);
    }
}

/* By a limit it is known how much is missing: no more goes. */
static void by_a_limit_no_more_goes_than_is_missing(void **unused)
{
    (void)unused;
    bench b = start(1, false);
    tide_pool *other = another_pool(&b, "other");
    expect_ok(tide_device_memory_set(b.device, &(tide_device_memory_options){.limit_bytes = ALL}));
    use_and_free(other, b.stream);
    {
        TIDE_SCOPE(b.pool);
        assert_non_null(tide_acquire(b.pool, uint8_t, 40 * UNIT));
    }
    assert_int_equal(stats_of(other).pressed, 2);
    expect_ok(tide_pool_destroy(other));
    bench_end(&b);
}

/* Headers of views lie on the host: where the device is short of less than one has, they make no room. */
static void headers_of_views_stay(void **unused)
{
    (void)unused;
    bench b = start(1, false);
    tide_pool *other = another_pool(&b, "other");
    {
        TIDE_SCOPE(other);
        tide_array *whole = tide_array_acquire(other, TIDE_U8, 1, (const int64_t[]){PART});
        assert_non_null(tide_array_reshape(other, whole, 2, (const int64_t[]){2, PART / 2}));
    }
    tide_pool_statistics before = stats_of(other);
    expect_ok(tide_device_memory_set(b.device, &(tide_device_memory_options){.limit_bytes = ALL}));
    {
        TIDE_SCOPE(b.pool);
        assert_non_null(tide_acquire(b.pool, uint8_t, ALL - PART + 1));
    }
    assert_int_equal(stats_of(other).pressed, 1);
    assert_int_equal(stats_of(other).bytes_held, before.bytes_held - PART);
    expect_ok(tide_pool_destroy(other));
    bench_end(&b);
}

/* ---- what does not ------------------------------------------------------------------------------ */

static void what_a_capture_may_use_stays(void **unused)
{
    (void)unused;
    for (int paged = 0; paged < 2; paged++) {
        bench b = start(1, paged != 0);
        tide_pool *other = another_pool(&b, "captured");
        use_and_free(other, b.stream);
        expect_ok(tide_pool_wait(other));
        expect_ok(tide_capture_begin(other));
        expect_refused(b.pool);
        assert_int_equal(asked, 1);
        assert_int_equal(stats_of(other).bytes_held, PARTS * PART);
        tide_capture_drop(tide_capture_end(other), b.stream);
        expect_wanted_of(&b, b.pool);
        expect_ok(tide_pool_destroy(other));
        bench_end(&b);
    }
}

typedef struct sleeper {
    const bench *b;
    sem_t has, may_go;
    size_t held;
} sleeper;

static void *have_and_sleep(void *user)
{
    sleeper *s = user;
    void *stream = fake_stream_create(0);
    tide_pool *pool = tide_pool_create(
        &(tide_pool_options){.device = s->b->device, .stream = stream, .name = "asleep"});
    use_and_free(pool, stream);
    (void)tide_pool_wait(pool);
    sem_post(&s->has);
    while (sem_wait(&s->may_go) != 0) {
    }
    s->held = stats_of(pool).bytes_held;
    (void)tide_pool_destroy(pool);
    fake_stream_destroy(stream);
    return NULL;
}

static void other_threads_pools_are_left_alone_and_named(void **unused)
{
    (void)unused;
    for (int paged = 0; paged < 2; paged++) {
        bench b = start(1, paged != 0);
        sleeper s = {.b = &b};
        pthread_t thread;
        sem_init(&s.has, 0, 0);
        sem_init(&s.may_go, 0, 0);
        assert_int_equal(pthread_create(&thread, NULL, have_and_sleep, &s), 0);
        while (sem_wait(&s.has) != 0) {
        }
        expect_refused(b.pool);
        expect_said("device cuda:0 has no 18350080 bytes for f32 in pool 'bench'; pools hold "
                    "15728640 bytes, 'asleep' most: 15728640; buffers hold 0 bytes");
        sem_post(&s.may_go);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(s.held, PARTS * PART);
        sem_destroy(&s.has);
        sem_destroy(&s.may_go);
        bench_end(&b);
    }
}

/* ---- what a refusal says -------------------------------------------------------------------------- */

static void a_buffer_that_is_refused_names_the_holders(void **unused)
{
    (void)unused;
    bench b = start(1, false);
    tide_buffers *buffers = bench_buffers(&b, TIDE_BUFFER_DEVICE);
    tide_buffer live = tide_buffer_acquire(buffers, UNIT);
    {
        TIDE_SCOPE(b.pool);
        assert_non_null(tide_acquire(b.pool, uint8_t, PARTS * PART));
        assert_int_equal(tide_buffer_acquire(buffers, WANTED).generation, 0);
        expect_said("pools hold 15728640 bytes, 'bench' most: 15728640; buffers hold 262144 bytes");
    }
    expect_ok(tide_buffer_release(buffers, live));
    expect_ok(tide_buffers_destroy(buffers));
    bench_end(&b);
}

static void long_names_leave_room_for_the_holders(void **unused)
{
    (void)unused;
    char name[400];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    tide_type type = tide_type_register(name, UNIT, 1);
    bench b = start(1, false);
    tide_pool *other = another_pool(&b, name);
    {
        TIDE_SCOPE(other);
        assert_non_null(tide_acquire(other, uint8_t, PARTS * PART));
        TIDE_SCOPE(b.pool);
        assert_null(tide_acquire_type(b.pool, type, WANTED / UNIT));
        expect_said("pools hold 15728640 bytes, 'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn' most: 15728640; "
                    "buffers hold 0 bytes");
    }
    expect_ok(tide_pool_destroy(other));
    bench_end(&b);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_pool_has_free_goes_though_it_is_not_enough_alone),
        cmocka_unit_test(many_small_ones_go_at_once),
        cmocka_unit_test(another_pool_of_the_thread_gives_back),
        cmocka_unit_test(idle_pools_of_the_thread_give_back_to_buffers),
        cmocka_unit_test(slots_that_are_buffers_go_too),
        cmocka_unit_test(a_captured_pool_gets_what_others_have_free),
        cmocka_unit_test(by_a_limit_no_more_goes_than_is_missing),
        cmocka_unit_test(headers_of_views_stay),
        cmocka_unit_test(what_a_capture_may_use_stays),
        cmocka_unit_test(other_threads_pools_are_left_alone_and_named),
        cmocka_unit_test(a_buffer_that_is_refused_names_the_holders),
        cmocka_unit_test(long_names_leave_room_for_the_holders),
    };
    return cmocka_run_group_tests_name("shortage", tests, NULL, NULL);
}

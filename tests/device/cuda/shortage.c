/* SPDX-License-Identifier: MIT */
/* What goes back before a request for a device's memory is refused, in which order, and what the refusal
 * says; where the driver has no memory, with its pool alone and by the page. */
#define _GNU_SOURCE

#include "support.h"

#include <pthread.h>
#include <unistd.h>

#include <tidepool/buffers.h>
#include <tidepool/device_bump.h>
#include <tidepool/device_memory.h>
#include <tidepool/tune.h>

#define PER_THREAD ((void *)2) /* CUDA's stream of that handle */

/* Of 80 a program has had 60, and wants 70. */
enum { UNIT = 1 << 18, ALL = 80 * UNIT, WANTED = 70 * UNIT, PARTS = 6, PART = 10 * UNIT };

static unsigned asked;
static bool try_again;

static bool count_asked(tide_device *device, size_t wanted, unsigned times, void *user)
{
    (void)device, (void)wanted, (void)times, (void)user;
    asked++;
    return try_again;
}

/* Each test begins with a bench, once with memory by the page. The program is asked where nothing else is
 * left. */
static bench b;
static uint32_t seed;

static int start(void **unused)
{
    (void)unused;
    const bool paged = seed % 2 == 0;
    expect_ok(tide_tune_set("cuda_memory", paged));
    b = bench_start(seed);
    expect_ok(tide_tune_set("cuda_memory", 0));
    assert_int_equal(fake_calls("cuMemAddressReserve"), paged);
    expect_ok(tide_device_memory_set(b.device, &(tide_device_memory_options){.full = count_asked}));
    fake_limit(ALL);
    asked = 0;
    try_again = false;
    return 0;
}

static int end(void **unused)
{
    (void)unused;
    bench_end(&b);
    return 0;
}

static tide_pool *another_pool(const char *name, void *stream)
{
    tide_pool *pool =
        tide_pool_create(&(tide_pool_options){.device = b.device, .stream = stream, .name = name});
    assert_non_null(pool);
    return pool;
}

static size_t pressed_of(const tide_pool *pool)
{
    return stats_of(pool).pressed;
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

/* The same, and the memory is on its way back. */
static void zero_and_give_back(tide_pool *pool, size_t bytes, int times)
{
    for (int i = 0; i < times; i++) {
        TIDE_SCOPE(pool);
        assert_non_null(tide_zeros(pool, uint8_t, bytes));
    }
    (void)tide_pool_trim(pool, TIDE_ALL_TYPES);
}

static void expect_there(uint8_t *x)
{
    if (x == NULL)
        fail_msg("%s", tide_error_message());
    put(b.stream, x, WANTED, 7);
    expect(b.stream, x, WANTED, 7);
}

static void expect_wanted_of(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    expect_there((uint8_t *)tide_acquire(pool, float, WANTED / sizeof(float)));
}

static void expect_refused(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    assert_null(tide_acquire(pool, float, WANTED / sizeof(float)));
    assert_int_equal(tide_error_status(), TIDE_ERROR_MEMORY);
}

/* ---- what goes ---------------------------------------------------------------------------------- */

TEST(what_the_pool_has_free_goes_though_it_is_not_enough_alone)
{
    use_and_free(b.pool, b.stream);
    expect_wanted_of(b.pool);
    assert_int_equal(asked, 0);
    assert_int_equal(pressed_of(b.pool), PARTS);
}

/* More of them than a request is tried again for. */
TEST(many_small_ones_go_at_once)
{
    enum { SMALL = UNIT / 4, MANY = 240 };
    {
        TIDE_SCOPE(b.pool);
        for (int i = 0; i < MANY; i++)
            assert_non_null(tide_acquire(b.pool, uint8_t, SMALL));
    }
    expect_wanted_of(b.pool);
}

TEST(another_pool_of_the_thread_gives_back)
{
    tide_pool *others[2] = {another_pool("one", b.stream), another_pool("two", b.stream)};
    use_and_free(others[seed / 2 % 2], b.stream);
    expect_wanted_of(b.pool);
    assert_int_equal(asked, 0);
    assert_int_equal(pressed_of(others[seed / 2 % 2]), PARTS);
    for (int i = 0; i < 2; i++)
        expect_ok(tide_pool_destroy(others[i]));
}

TEST(idle_pools_of_the_thread_give_back_to_buffers)
{
    use_and_free(b.pool, b.stream);
    tide_buffers *buffers = bench_buffers(&b, TIDE_BUFFER_DEVICE);
    tide_buffer buffer = tide_buffer_acquire(buffers, WANTED);
    expect_there(tide_buffer_pointer(buffers, buffer));
    assert_int_equal(asked, 0);
    expect_ok(tide_buffer_release(buffers, buffer));
    expect_ok(tide_buffers_destroy(buffers));
}

/* Before the program is asked, as often as for memory of another pool. */
TEST(slots_that_are_buffers_go_too)
{
    tide_buffers *buffers = bench_buffers(&b, TIDE_BUFFER_DEVICE);
    tide_pool *pool = bench_pool(&b, b.stream, buffers);
    use_and_free(pool, b.stream);
    assert_int_equal(cache_of(buffers).live, PARTS);
    expect_wanted_of(pool);
    assert_int_equal(asked, 0);
    assert_int_equal(pressed_of(pool), PARTS);
    {
        TIDE_SCOPE(pool);
        assert_non_null(tide_acquire(pool, float, WANTED / sizeof(float)));
        try_again = true;
        assert_null(tide_acquire(pool, uint8_t, WANTED));
        assert_int_equal(asked, 16);
    }
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_buffers_destroy(buffers));
}

/* The driver does not say how little is missing: as much goes as is wanted. */
TEST(of_slots_that_are_buffers_no_more_go_than_are_wanted)
{
    enum { SLOTS = 80, SLOT = UNIT / 8 };
    tide_buffers *buffers = bench_buffers(&b, TIDE_BUFFER_DEVICE);
    tide_pool *pool = bench_pool(&b, b.stream, buffers);
    {
        TIDE_SCOPE(pool);
        for (unsigned i = 0; i < SLOTS; i++)
            assert_non_null(tide_acquire(pool, uint8_t, SLOT));
    }
    assert_int_equal(cache_of(buffers).live, SLOTS);
    fake_limit(fake_live_bytes() + 8 * SLOT - SLOT / 2);
    {
        TIDE_SCOPE(pool);
        assert_non_null(tide_acquire(pool, uint8_t, 8 * SLOT));
    }
    assert_int_equal(pressed_of(pool), 8);
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_buffers_destroy(buffers));
}

/* By a limit, too. */
TEST(what_buffers_have_cached_goes)
{
    void *stream = fake_stream_create(0);
    tide_buffers *buffers =
        tide_buffers_create(b.device, &(tide_buffers_options){.stream = stream});
    if (seed > 2)
        expect_ok(
            tide_device_memory_set(b.device, &(tide_device_memory_options){.limit_bytes = ALL}));
    tide_buffer buffer = tide_buffer_acquire(buffers, PARTS * PART);
    for (uint8_t i = 0; i < 50; i++)
        put(stream, tide_buffer_pointer(buffers, buffer), PART, i);
    expect_ok(tide_buffer_release(buffers, buffer));
    expect_wanted_of(b.pool);
    assert_int_equal(asked, 0);
    expect_ok(tide_buffers_destroy(buffers));
    fake_stream_destroy(stream);
}

/* Nothing of that ends the capture. */
TEST(a_captured_pool_gets_what_others_have_free)
{
    void *stream = fake_stream_create(0);
    tide_pool *other = another_pool("other", stream);
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
}

/* By a limit it is known how much is missing: no more goes. */
TEST(by_a_limit_no_more_goes_than_is_missing)
{
    tide_pool *other = another_pool("other", b.stream);
    expect_ok(tide_device_memory_set(b.device, &(tide_device_memory_options){.limit_bytes = ALL}));
    use_and_free(other, b.stream);
    {
        TIDE_SCOPE(b.pool);
        assert_non_null(tide_acquire(b.pool, uint8_t, 40 * UNIT));
    }
    assert_int_equal(pressed_of(other), 2);
    expect_ok(tide_pool_destroy(other));
}

/* Headers of views lie on the host: where the device is short of less than one has, they make no room. */
TEST(headers_of_views_stay)
{
    tide_pool *other = another_pool("other", b.stream);
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
    assert_int_equal(pressed_of(other), 1);
    assert_int_equal(stats_of(other).bytes_held, before.bytes_held - PART);
    expect_ok(tide_pool_destroy(other));
}

/* ---- what does not ------------------------------------------------------------------------------ */

TEST(what_a_capture_may_use_stays)
{
    tide_pool *other = another_pool("captured", b.stream);
    use_and_free(other, b.stream);
    expect_ok(tide_pool_wait(other));
    expect_ok(tide_capture_begin(other));
    expect_refused(b.pool);
    assert_int_equal(asked, 1);
    assert_int_equal(stats_of(other).bytes_held, PARTS * PART);
    tide_capture_drop(tide_capture_end(other), b.stream);
    expect_wanted_of(b.pool);
    expect_ok(tide_pool_destroy(other));
}

TEST(for_more_than_the_device_has_nothing_goes)
{
    const size_t more = info_of(b.device).bytes + UNIT;
    tide_pool *other = another_pool("other", b.stream);
    tide_buffers *buffers = bench_buffers(&b, TIDE_BUFFER_DEVICE);
    use_and_free(other, b.stream);
    TIDE_SCOPE(b.pool);
    assert_null(tide_acquire(b.pool, uint8_t, more));
    assert_int_equal(tide_error_status(), TIDE_ERROR_MEMORY);
    assert_int_equal(tide_buffer_acquire(buffers, more).generation, 0);
    assert_int_equal(asked + pressed_of(other), 0);
    expect_ok(tide_buffers_destroy(buffers));
    expect_ok(tide_pool_destroy(other));
}

/* They have none. */
TEST(for_pinned_memory_pools_give_nothing_up)
{
    tide_pool *other = another_pool("other", b.stream);
    use_and_free(other, b.stream);
    TIDE_SCOPE(b.pool);
    uint8_t *x = tide_acquire(b.pool, uint8_t, 1);
    fake_fail("cuMemHostAlloc", 1, 2, true);
    expect_status(tide_upload(b.pool, x, &(uint8_t){1}, 1), TIDE_ERROR_MEMORY);
    assert_true(fake_failures() >= 1);
    assert_int_equal(asked, 1);
    assert_int_equal(pressed_of(other), 0);
    expect_ok(tide_pool_destroy(other));
}

typedef struct sleeper {
    void *stream; /* on which it has memory, or has given it back */
    pthread_barrier_t meets;
    pthread_t thread;
} sleeper;

static void *have_and_sleep(void *user)
{
    sleeper *s = user;
    tide_pool *pool = another_pool("asleep", s->stream);
    if (s->stream == PER_THREAD) {
        zero_and_give_back(pool, PARTS * PART, 50);
    } else {
        use_and_free(pool, s->stream);
        (void)tide_pool_wait(pool);
    }
    pthread_barrier_wait(&s->meets);
    pthread_barrier_wait(&s->meets);
    (void)tide_pool_destroy(pool);
    return NULL;
}

static void begin(sleeper *s)
{
    assert_int_equal(pthread_barrier_init(&s->meets, NULL, 2), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, have_and_sleep, s), 0);
    pthread_barrier_wait(&s->meets);
}

static void finish(sleeper *s)
{
    pthread_barrier_wait(&s->meets);
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    pthread_barrier_destroy(&s->meets);
}

TEST(other_threads_pools_are_left_alone_and_named)
{
    sleeper s = {.stream = fake_stream_create(0)};
    begin(&s);
    expect_refused(b.pool);
    expect_said("device cuda:0 has no 18350080 bytes for f32 in pool 'bench'; pools hold "
                "15728640 bytes, 'asleep' most: 15728640; buffers hold 0 bytes");
    finish(&s);
    fake_stream_destroy(s.stream);
}

/* The driver refuses, and has it a moment later. One handle is a stream in each thread: what this one
 * gives back does not hide what that one did. */
TEST(what_another_stream_gives_back_is_waited_for)
{
    sleeper s = {.stream = PER_THREAD};
    begin(&s);
    tide_pool *pool = another_pool("other", PER_THREAD);
    zero_and_give_back(pool, UNIT, 1);
    zero_and_give_back(pool, WANTED, 1);
    assert_int_equal(asked, 0);
    finish(&s);
    expect_ok(tide_pool_destroy(pool));
}

static void alternate(tide_pool *pool, int from, int rounds)
{
    for (int round = from; round < from + rounds; round++) {
        TIDE_SCOPE(pool);
        if (round > 0)
            assert_non_null(tide_acquire(pool, uint8_t, UNIT));
        assert_non_null(tide_acquire(pool, uint8_t, 8 * UNIT));
    }
}

/* Of a larger slot, that is: what it has will do. */
TEST(for_a_smaller_slot_nobody_gives_any_up)
{
    tide_pool *other = another_pool("other", b.stream);
    tide_buffers *cache = bench_buffers(&b, TIDE_BUFFER_DEVICE),
                 *mine = bench_buffers(&b, TIDE_BUFFER_DEVICE);
    tide_pool *drawing = bench_pool(&b, b.stream, mine);
    tide_pool *pool = seed > 2 ? drawing : b.pool;
    expect_ok(tide_buffer_release(cache, tide_buffer_acquire(cache, UNIT)));
    {
        TIDE_SCOPE(other);
        assert_non_null(tide_acquire(other, uint8_t, UNIT));
    }
    alternate(pool, 0, 2);
    fake_limit(fake_live_bytes());
    alternate(pool, 2, 20);
    assert_int_equal(asked + pressed_of(other), 0);
    assert_int_equal(cache_of(cache).bytes_cached, UNIT);
    assert_int_equal(stats_of(pool).bytes_held, 16 * UNIT);
    assert_int_equal(cache_of(mine).live != 0, seed > 2);
    expect_ok(tide_pool_destroy(drawing));
    expect_ok(tide_buffers_destroy(mine));
    expect_ok(tide_buffers_destroy(cache));
    expect_ok(tide_pool_destroy(other));
}

/* What is to be had for that is not there before the capture is over. */
TEST(pools_of_a_captured_stream_keep_theirs)
{
    tide_pool *other = another_pool("other", b.stream);
    use_and_free(other, b.stream);
    expect_ok(tide_capture_begin(b.pool));
    fake_capture_begin(b.stream);
    expect_refused(b.pool);
    assert_int_equal(pressed_of(other), 0);
    expect_capture_whole(b.stream);
    tide_capture_drop(tide_capture_end(b.pool), b.stream);
    expect_wanted_of(b.pool);
    expect_ok(tide_pool_destroy(other));
}

/* What it wants beyond its need is nobody's to give up. */
TEST(a_slot_that_is_a_buffer_grows_at_no_cost_for_others)
{
    tide_buffers *cache = bench_buffers(&b, TIDE_BUFFER_DEVICE),
                 *mine = bench_buffers(&b, TIDE_BUFFER_DEVICE);
    tide_pool *pool = bench_pool(&b, b.stream, mine);
    expect_ok(tide_buffer_release(cache, tide_buffer_acquire(cache, UNIT)));
    {
        TIDE_SCOPE(pool);
        assert_non_null(tide_acquire(pool, uint8_t, 20 * UNIT));
    }
    assert_int_equal(cache_of(mine).live, 1);
    const size_t least = tide_buffers_round_up(mine, 20 * UNIT + 1);
    expect_ok(tide_device_memory_set(
        b.device,
        &(tide_device_memory_options){.limit_bytes = memory_of(b.device).bytes_held + least}));
    {
        TIDE_SCOPE(pool);
        assert_non_null(tide_acquire(pool, uint8_t, 20 * UNIT + 1));
    }
    assert_true(cache_of(cache).bytes_cached >= UNIT);
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_buffers_destroy(mine));
    expect_ok(tide_buffers_destroy(cache));
}

/* ---- handed over while it gives back ---------------------------------------------------------- */

static tide_pool *given;
static bool adopted; /* atomic */

static void wait_for_the_press(void)
{
    while (fake_held_up() == 0)
        usleep(1000);
}

static void *adopt(void *unused)
{
    wait_for_the_press();
    __atomic_store_n(&adopted, tide_pool_adopt(given) == TIDE_OK, __ATOMIC_RELAXED);
    (void)tide_pool_destroy(given);
    return unused;
}

static void *end_the_press_late(void *early)
{
    wait_for_the_press();
    usleep(20000);
    *(bool *)early = __atomic_load_n(&adopted, __ATOMIC_RELAXED);
    fake_hold_up(NULL);
    return NULL;
}

TEST(a_pool_that_gives_back_is_adopted_afterwards)
{
    pthread_t threads[2];
    bool early = false;
    if (seed % 2 == 0)
        return; /* pages go back without a call */
    given = another_pool("given", b.stream);
    adopted = false;
    use_and_free(given, b.stream);
    fake_hold_up("cuMemFreeAsync");
    assert_int_equal(pthread_create(&threads[0], NULL, adopt, NULL), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, end_the_press_late, &early), 0);
    expect_wanted_of(b.pool);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(adopted);
    assert_false(early);
}

/* ---- what a refusal says -------------------------------------------------------------------------- */

/* Long names leave room for them. */
TEST(the_holders_are_named)
{
    char name[400] = {0};
    memset(name, 'n', sizeof name - 1);
    tide_type type = tide_type_register(name, UNIT, 1);
    tide_pool *other = another_pool(name, b.stream);
    tide_buffers *buffers = bench_buffers(&b, TIDE_BUFFER_DEVICE);
    tide_buffer live = tide_buffer_acquire(buffers, UNIT);
    {
        TIDE_SCOPE(other);
        assert_non_null(tide_acquire(other, uint8_t, PARTS * PART));
        TIDE_SCOPE(b.pool);
        assert_null(tide_acquire_type(b.pool, type, WANTED / UNIT));
        expect_said("pools hold 15728640 bytes, 'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn' most: 15728640; "
                    "buffers hold 262144 bytes");
        assert_int_equal(tide_buffer_acquire(buffers, WANTED).generation, 0);
        expect_said("' most: 15728640; buffers hold 262144 bytes");
    }
    expect_ok(tide_buffer_release(buffers, live));
    expect_ok(tide_buffers_destroy(buffers));
    expect_ok(tide_pool_destroy(other));
}

int main(void)
{
    int failed = 0;
    for (size_t i = 0; i < listed_tests.count; i++) {
        listed_tests.all[i].setup_func = start;
        listed_tests.all[i].teardown_func = end;
    }
    for (seed = 1; seed <= 6; seed++)
        failed += RUN_TESTS("shortage");
    return failed;
}

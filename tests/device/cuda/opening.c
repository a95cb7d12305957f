/* SPDX-License-Identifier: MIT */
/* Devices that are opened: by several threads, without a driver. Threads that release one buffer. (Their
 * pools: storm.c.) */
#define _GNU_SOURCE
#include <pthread.h>

#include "support.h"

#include <tidepool/buffers.h>
#include <tidepool/device.h>

#include "runtime/device/cuda/cuda.h"

enum { THREADS = 4, ROUNDS = 60 };

/* ---- devices -------------------------------------------------------------------------------- */

/* The same name gives the same device; who is last closes it. */
static void *open_and_close(void *user)
{
    bool *right = user;
    *right = true;
    for (int i = 0; i < ROUNDS; i++) {
        tide_device *device = tide_device_open("cuda:1");
        *right = *right && device != NULL && tide_device_close(device) == TIDE_OK;
    }
    return NULL;
}

static void devices_are_opened_and_closed_by_many(void **state)
{
    (void)state;
    bench b = bench_start(9);
    pthread_t threads[THREADS];
    bool right[THREADS] = {false};
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, &right[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(right[i]);
    }
    bench_end(&b);
}

/* ---- one handle, many releases -------------------------------------------------------------- */

typedef struct race {
    pthread_barrier_t barrier;
    void *stream; /* of the instance */
    tide_buffers *buffers;
    tide_buffer handle;
    unsigned won, stale; /* atomic */
} race;

static void acquire_for_race(race *r, int round)
{
    static const uint32_t kinds[] = {TIDE_BUFFER_DEVICE, TIDE_BUFFER_PINNED};
    r->handle = tide_buffer_acquire_on(r->buffers, 5000, kinds[round % 2], r->stream);
}

/* On a stream of its own, so each has left a mark there before it wins or loses. */
static void *release_in_a_race(void *user)
{
    race *r = user;
    void *stream = fake_stream_create(0);
    for (int i = 0; i < ROUNDS; i++) {
        if (pthread_barrier_wait(&r->barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
            acquire_for_race(r, i);
        pthread_barrier_wait(&r->barrier);
        fake_order(r->stream, stream);
        tide_status status = tide_buffer_release_on(r->buffers, r->handle, stream);
        __atomic_fetch_add(&r->won, status == TIDE_OK, __ATOMIC_RELAXED);
        __atomic_fetch_add(&r->stale, status == TIDE_ERROR_STALE, __ATOMIC_RELAXED);
    }
    pthread_barrier_wait(&r->barrier);
    return NULL; /* the stream stays as long as the buffers that it may have released */
}

static void of_many_releases_on_streams_one_wins(void **state)
{
    (void)state;
    bench b = bench_start(10);
    race r = {.stream = b.stream,
              .buffers =
                  tide_buffers_create(b.device, &(tide_buffers_options){.stream = b.stream})};
    pthread_t threads[THREADS];
    assert_non_null(r.buffers);
    pthread_barrier_init(&r.barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, release_in_a_race, &r), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(r.won, ROUNDS);
    assert_int_equal(r.stale, (THREADS - 1) * ROUNDS);
    tide_buffers_statistics now;
    expect_ok(tide_buffers_stats(r.buffers, &now, NULL, 0));
    assert_int_equal(now.releases, ROUNDS);
    assert_int_equal(now.refused, (THREADS - 1) * ROUNDS);
    assert_int_equal(now.live, 0);
    pthread_barrier_destroy(&r.barrier);
    expect_ok(tide_buffers_destroy(r.buffers));
    unsigned marks = fake_calls("cuEventCreate");
    bench_end(&b);
    assert_true(marks > 0);
    assert_int_equal(fake_calls("cuEventDestroy"), marks); /* those of the losers, too */
}

/* ---- no driver, or one that cannot do: a clear message, and everything else works --------------- */

static void refused(const char *driver, const char *words)
{
    tide_cuda_driver_set(driver);
    assert_null(tide_device_open("cuda:0"));
    expect_status(tide_error_status(), TIDE_ERROR_DEVICE);
    expect_said("tide_device_open");
    if (strstr(tide_error_message(), words) == NULL)
        fail_msg("'%s' is not in '%s'", words, tide_error_message());
}

static void no_driver_is_said_and_the_host_works(void **state)
{
    (void)state;
    refused("libcuda-that-is-not-there.so.1", "no CUDA driver: libcuda-that-is-not-there.so.1");
    refused("libm.so.6", "libm.so.6 is older than CUDA 12.0");
    tide_device *host = tide_device_open("host");
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.device = host});
    assert_non_null(pool);
    int *x = tide_zeros(pool, int, 10);
    assert_int_equal(x[9], 0);
    expect_ok(tide_pool_reset(pool));
    {
        TIDE_SCOPE(pool);
        expect_ok(tide_pool_use_on(pool, NULL));
        expect_status(tide_pool_use_on(pool, pool), TIDE_ERROR_ARGUMENT);
    }
    expect_ok(tide_pool_wait(pool));
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_device_close(host));
    expect_ok(tide_device_close(NULL));
}

static void a_driver_that_does_not_start_is_said(void **state)
{
    (void)state;
    fake_reset(1, 1);
    fake_fail("cuInit", 1, 100, false);
    refused(FAKE_CUDA, "fails with 100: a failure that a test asked for");
    fake_reset(0, 1);
    refused(FAKE_CUDA, "no device cuda:0: the driver knows 0");
    fake_reset(1, 1);
    tide_device *device = tide_device_open("cuda:0");
    assert_non_null(device);
    expect_ok(tide_device_close(device));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_driver_is_said_and_the_host_works), /* before one is there */
        cmocka_unit_test(a_driver_that_does_not_start_is_said),
        cmocka_unit_test(devices_are_opened_and_closed_by_many),
        cmocka_unit_test(of_many_releases_on_streams_one_wins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Devices that are opened: by several threads, without a driver; and a thread's own pools of one. */
#define _GNU_SOURCE
#include <pthread.h>

#include "support.h"

#include <tidepool/device.h>

#include "runtime/device/cuda/cuda.h"

enum { THREADS = 4, ROUNDS = 60, BYTES = 4096 };

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

/* First: before one is there. */
TEST(no_driver_is_said_and_the_host_works)
{
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

TEST(a_driver_that_does_not_start_is_said)
{
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

TEST(devices_are_opened_and_closed_by_many)
{
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

/* ---- a thread's own pools ------------------------------------------------------------------- */

static tide_pool *seen[2];

static void *use_own(void *device)
{
    void *stream = fake_stream_create(0);
    seen[0] = tide_pool_local_on(device, stream);
    assert_non_null(seen[0]);
    assert_ptr_equal(tide_pool_local_on(device, stream), seen[0]);
    {
        TIDE_SCOPE(seen[0]);
        uint8_t *x = tide_acquire(seen[0], uint8_t, BYTES);
        put(stream, x, BYTES, 1);
        expect_status(tide_pool_local_end(device), TIDE_ERROR_STATE);
    }
    expect_ok(tide_pool_wait(seen[0]));
    return stream;
}

TEST(a_thread_has_a_pool_of_each_stream_until_it_ends)
{
    bench b = bench_start(3);
    void *other = fake_stream_create(0);
    tide_pool *mine = tide_pool_local_on(b.device, b.stream);
    assert_non_null(mine);
    assert_ptr_equal(tide_pool_local_on(b.device, b.stream), mine);
    tide_pool *second = tide_pool_local_on(b.device, other);
    assert_true(second != NULL && second != mine);
    expect_status(tide_pool_destroy(mine), TIDE_ERROR_STATE);
    assert_ptr_equal(tide_pool_local_on(tide_device_open("host"), NULL), tide_pool_local());
    void *its = on_thread(use_own, b.device);
    fake_synchronise_all();
    assert_int_equal(fake_live_bytes(), 0); /* the thread's pool has ended with it */
    assert_null(tide_pool_local_on(NULL, NULL));
    expect_status(tide_pool_local_end(NULL), TIDE_ERROR_ARGUMENT);
    expect_ok(tide_pool_local_end(b.device));
    fake_stream_destroy(its);
    fake_stream_destroy(other);
    bench_end(&b); /* nothing holds the device any more */
}

int main(void)
{
    return RUN_TESTS("opening");
}

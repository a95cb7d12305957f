/* SPDX-License-Identifier: MIT */
/* Devices that are opened: by several threads, without a driver. */
#define _GNU_SOURCE
#include <pthread.h>

#include "support.h"

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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

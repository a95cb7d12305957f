/* SPDX-License-Identifier: MIT */
/* The fake driver enforces what a driver does: for each rule a caller that breaks it, and what it
 * gets. The calls are made as the library makes them, by its table of entry points. */
#include <tidepool/device.h>

#include "support.h"

#include "runtime/device/cuda/cuda.h"

static tide_device *device;

/* The driver's table is filled in by whoever opens a device first. */
static int start(void **state)
{
    (void)state;
    bench b = bench_start(1);
    device = b.device;
    expect_ok(tide_pool_destroy(b.pool));
    fake_stream_destroy(b.stream);
    fake_use_device(0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    fake_synchronise_all();
    expect_ok(tide_device_close(device));
    fake_use_device(-1);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

static tide_cu_pool pool;

static tide_cu_result make_pool(void)
{
    const tide_cu_pool_properties properties = {.allocation = 1, .location = {.type = 1}};
    return tide_cu.cuMemPoolCreate(&pool, &properties);
}

/* ---- the default streams -------------------------------------------------------------------- */

static bool legacy_orders(void *stream)
{
    tide_cu_address memory = 0;
    void *legacy = fake_stream_create(0);
    fake_stream_destroy(legacy);
    assert_int_equal(make_pool(), 0);
    assert_int_equal(tide_cu.cuMemAllocFromPoolAsync(&memory, 512, pool, NULL), 0);
    assert_int_equal(tide_cu.cuMemsetD8Async(memory, 1, 512, stream), 0);
    return fake_hazard() == NULL;
}

static void only_blocking_streams_are_ordered_with_the_legacy_stream(void **state)
{
    (void)state;
    void *blocking = fake_stream_create_blocking(0), *other = fake_stream_create(0);
    assert_true(legacy_orders(blocking));
    assert_false(legacy_orders(other));
    fake_stream_destroy(blocking);
    fake_stream_destroy(other);
}

/* ---- memory --------------------------------------------------------------------------------- */

/* What one stream gave back is another's when it is over there. */
static void freed_memory_is_not_free_for_another_stream_at_once(void **state)
{
    (void)state;
    void *one = fake_stream_create(0), *other = fake_stream_create(0);
    tide_cu_address memory = 0, more = 0;
    fake_limit(4096);
    assert_int_equal(make_pool(), 0);
    expect_ok(tide_cu.cuMemAllocFromPoolAsync(&memory, 4096, pool, one));
    for (int i = 0; i < 200; i++)
        expect_ok(tide_cu.cuMemsetD8Async(memory, 1, 4096, one));
    expect_ok(tide_cu.cuMemFreeAsync(memory, one));
    assert_int_equal(tide_cu.cuMemAllocFromPoolAsync(&more, 4096, pool, other),
                     TIDE_CU_OUT_OF_MEMORY);
    expect_ok(tide_cu.cuMemAllocFromPoolAsync(&more, 4096, pool, one)); /* its own: at once */
    expect_ok(tide_cu.cuMemFreeAsync(more, one));
    expect_ok(tide_cu.cuStreamSynchronize(one));
    expect_ok(tide_cu.cuMemAllocFromPoolAsync(&more, 4096, pool, other));
    fake_stream_destroy(one);
    fake_stream_destroy(other);
}

/* Memory that is freed at once must not be in use, and the host must have seen that. */
static void plain_memory_is_free_at_once(void **state)
{
    (void)state;
    void *stream = fake_stream_create(0);
    tide_cu_address memory = 0, other = 0;
    expect_ok(tide_cu.cuMemAlloc(&memory, 4096));
    expect_ok(tide_cu.cuMemAlloc(&other, 4096));
    expect_ok(tide_cu.cuMemsetD8Async(memory, 1, 4096, stream));
    expect_ok(tide_cu.cuStreamSynchronize(stream));
    expect_ok(tide_cu.cuMemFree(memory));
    assert_null(fake_hazard());
    expect_ok(tide_cu.cuMemsetD8Async(other, 1, 4096, stream));
    expect_ok(tide_cu.cuMemFree(other));
    assert_non_null(fake_hazard());
    fake_stream_destroy(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_blocking_streams_are_ordered_with_the_legacy_stream),
        TEST(freed_memory_is_not_free_for_another_stream_at_once),
        TEST(plain_memory_is_free_at_once),
    };
    return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}

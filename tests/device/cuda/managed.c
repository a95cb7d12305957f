/* SPDX-License-Identifier: MIT */
/* Managed memory as a kind of buffers: one memory for host and device, in the order of its
 * streams; pools of it, devices without it. */
#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/device_memory.h>

#include "runtime/device/cuda/cuda.h"
#include "support.h"

enum { BYTES = 10000 };

TEST(zeros_are_written_on_the_stream)
{
    bench b = bench_start_without(5, FAKE_CONCURRENT);
    assert_true(info_of(b.device).managed && !info_of(b.device).concurrent);
    tide_buffers *buffers = bench_buffers(&b, TIDE_BUFFER_MANAGED);
    fake_count_anew();
    tide_buffer buffer = tide_buffer_acquire_zeroed(buffers, BYTES);
    uint8_t *x = tide_buffer_pointer(buffers, buffer);
    assert_int_equal(fake_calls("cuMemsetD32Async") + fake_calls("cuMemsetD8Async"), 1);
    expect(b.stream, x, BYTES, 0);
    fake_synchronise_all();
    assert_int_equal(x[BYTES - 1], 0);
    expect_ok(tide_buffer_release(buffers, buffer));
    fake_synchronise_all();
    buffer = tide_buffer_acquire(buffers, BYTES); /* its work is over (else: ../hazards) */
    assert_int_equal(cache_of(buffers).hits, 1);
    expect_ok(tide_buffer_release(buffers, buffer));
    expect_ok(tide_buffers_destroy(buffers));
    bench_end(&b);
}

/* ---- pools, shared buffers ------------------------------------------------------------------ */

TEST(a_pool_of_managed_buffers_has_managed_slots)
{
    bench b = bench_start(5);
    assert_true(info_of(b.device).managed && info_of(b.device).concurrent);
    tide_buffers *buffers = bench_buffers(&b, TIDE_BUFFER_MANAGED);
    tide_pool *pool = bench_pool(&b, b.stream, buffers);
    for (uint8_t i = 0; i < 10; i++) {
        TIDE_SCOPE(pool);
        uint8_t *x = tide_zeros(pool, uint8_t, BYTES);
        assert_non_null(x);
        put(b.stream, x, BYTES, i);
        expect_ok(tide_pool_wait(pool));
        assert_int_equal(x[BYTES - 1], i);
        memset(x, 7, BYTES);
        expect(b.stream, x, BYTES, 7);
    }
    assert_int_equal(fake_calls("cuMemcpyAsync"), 0);
    assert_int_equal(memory_of(b.device).bytes_held, 0);
    assert_int_equal(fake_calls("cuMemAllocManaged"), 1);
    assert_int_equal(fake_calls("cuMemAllocFromPoolAsync"), 0);
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_buffers_destroy(buffers));
    bench_end(&b);
}

/* Where the host may not use it beside kernels the driver does not move it out: then pools of the device
 * give up theirs for it, and more than the device has is never to be had. */
TEST(it_is_the_devices_own_where_it_is_not_moved)
{
    for (unsigned moved = 0; moved < 2; moved++) {
        bench b = bench_start_without(6, moved != 0 ? 0 : FAKE_CONCURRENT);
        tide_buffers *buffers = bench_buffers(&b, TIDE_BUFFER_MANAGED);
        tide_pool *pool = bench_pool(&b, b.stream, buffers);
        {
            TIDE_SCOPE(b.pool);
            TIDE_SCOPE(pool);
            assert_non_null(tide_acquire(b.pool, uint8_t, 8 * BYTES));
            assert_non_null(tide_acquire(pool, uint8_t, BYTES));
        }
        fake_limit(fake_live_bytes());
        {
            TIDE_SCOPE(pool);
            assert_null(tide_acquire(pool, uint8_t, info_of(b.device).bytes + 1));
            assert_int_equal(stats_of(pool).pressed, moved);
            assert_int_equal(tide_acquire(pool, uint8_t, 4 * BYTES) == NULL, moved);
            assert_int_equal(stats_of(b.pool).pressed, 1 - moved);
        }
        expect_ok(tide_pool_destroy(pool));
        expect_ok(tide_buffers_destroy(buffers));
        bench_end(&b);
    }
}

/* ---- where there is none -------------------------------------------------------------------- */

TEST(a_device_without_it_says_so)
{
    bench b = bench_start_without(5, FAKE_MANAGED);
    assert_false(info_of(b.device).managed || info_of(b.device).concurrent);
    assert_null(tide_buffers_shared(b.device, TIDE_BUFFER_MANAGED));
    assert_int_equal(tide_error_status(), TIDE_ERROR_DEVICE);
    expect_said("no managed memory");
    tide_buffers *plain = tide_buffers_create(b.device, NULL);
    assert_int_equal(tide_buffer_acquire_on(plain, BYTES, TIDE_BUFFER_MANAGED, b.stream).generation,
                     0);
    assert_int_equal(tide_error_status(), TIDE_ERROR_DEVICE);
    assert_int_equal(fake_calls("cuMemAllocManaged"), 0);
    expect_ok(tide_buffers_destroy(plain));
    tide_buffers *host = tide_buffers_create(
        NULL, &(tide_buffers_options){.flags = TIDE_BUFFER_MANAGED}); /* is all the host's */
    tide_buffer buffer = tide_buffer_acquire(host, BYTES);
    memset(tide_buffer_pointer(host, buffer), 1, BYTES);
    expect_ok(tide_buffer_release(host, buffer));
    expect_ok(tide_buffers_destroy(host));
    bench_end(&b);
}

int main(void)
{
    return RUN_TESTS("managed");
}

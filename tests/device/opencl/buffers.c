/* SPDX-License-Identifier: MIT */
/* Buffers on a real OpenCL device: released with kernels in flight, used next on another queue. */
#include "bed.h"

#include <tidepool/buffers.h>
#include <tidepool/device.h>

enum { N = 4096, BYTES = 4 * N };

static size_t rounds(void)
{
    return scaled(60, 10);
}

static tide_buffers *made(void)
{
    tide_buffers *buffers = tide_buffers_create(gpu, NULL);
    if (buffers == NULL)
        fail_msg("%s", tide_error_message());
    return buffers;
}

static tide_buffer taken(tide_buffers *buffers, uint32_t flags, void *queue, void **data)
{
    tide_buffer b = tide_buffer_acquire_on(buffers, BYTES, flags, queue);
    if (b.generation == 0)
        fail_msg("%s", tide_error_message());
    *data = tide_buffer_pointer(buffers, b);
    return b;
}

static tide_buffers_statistics counted(tide_buffers *buffers)
{
    tide_buffers_statistics stats;
    expect_ok(tide_buffers_stats(buffers, &stats, NULL, 0));
    return stats;
}

static void fill_words(void *queue, void *data, uint32_t value)
{
    expect_ok(gpu->methods->fill(gpu, queue, data, &value, 4, N));
}

/* A slow kernel of one queue reads the buffer that the other queue overwrites next. */
static void a_kernel_in_flight_keeps_what_it_reads(void **unused)
{
    (void)unused;
    tide_buffers *buffers = made();
    tide_pool *pool = bed_pool(NULL);
    uint32_t *results = tide_acquire(pool, uint32_t, N), *got = malloc(BYTES);
    void *queues[2] = {bed_queue(), bed_queue()}, *data;
    assert_non_null(got);
    for (uint32_t round = 0; round < rounds(); round++) {
        void *here = queues[round % 2], *there = queues[(round + 1) % 2];
        tide_buffer b = taken(buffers, 0, here, &data);
        fill_words(here, data, round);
        launch_add(here, results, data, N, 1, LONG);
        expect_ok(tide_buffer_release_on(buffers, b, here));
        b = taken(buffers, 0, there, &data);
        fill_words(there, data, 0xABCD0000u + round);
        expect_ok(tide_buffer_release_on(buffers, b, there));
        expect_ok(gpu->methods->order(gpu, here, NULL));
        expect_ok(tide_download(pool, got, results, BYTES));
        assert_int_equal(got[0], round + 1);
        assert_int_equal(got[N - 1], round + 1);
    }
    assert_int_equal(counted(buffers).misses, 1);
    free(got);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_buffers_destroy(buffers));
    bed_queue_end(queues[0]);
    bed_queue_end(queues[1]);
}

static void pinned_memory_waits_until_its_copy_is_over(void **unused)
{
    (void)unused;
    tide_buffers *buffers = made();
    void *device, *pinned;
    tide_buffer d = taken(buffers, 0, NULL, &device);
    uint32_t *got = malloc(BYTES);
    tide_pool *pool = bed_pool(NULL);
    assert_non_null(got);
    for (uint32_t round = 0; round < rounds(); round++) {
        tide_buffer p = taken(buffers, TIDE_BUFFER_PINNED, NULL, &pinned);
        for (size_t i = 0; i < N; i++)
            ((uint32_t *)pinned)[i] = round;
        launch_add(NULL, device, device, N, 1, LONG); /* the copy comes after it */
        expect_ok(gpu->methods->copy(gpu, NULL, device, pinned, BYTES));
        expect_ok(tide_buffer_release(buffers, p));
        tide_buffer q = taken(buffers, TIDE_BUFFER_PINNED, NULL, &pinned);
        memset(pinned, 0xEE, BYTES);
        expect_ok(tide_buffer_release(buffers, q));
        expect_ok(tide_download(pool, got, device, BYTES));
        assert_int_equal(got[0], round);
        assert_int_equal(got[N - 1], round);
    }
    free(got);
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_buffer_release(buffers, d));
    expect_ok(tide_buffers_destroy(buffers));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_in_flight_keeps_what_it_reads),
        cmocka_unit_test(pinned_memory_waits_until_its_copy_is_over),
    };
    return BED_MAIN("opencl buffers", tests);
}

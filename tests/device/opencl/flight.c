/* SPDX-License-Identifier: MIT */
/* Rewind and release while kernels are in flight: real kernels, one queue and two, and the data must be
 * right. Queues and arrays of others, and more memory than there is. */
#include "bed.h"

#include <unistd.h>

#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/upkeep.h>

enum { N = 4096 };

static size_t rounds(void)
{
    return scaled(100, 10);
}

/* ---- kernels in flight ---------------------------------------------------------------------- */

/* A slow kernel, on the pool's queue or a declared one, reads `from`; it is rewound at once, handed out again
 * and overwritten on the pool's. */
static void read_and_rewind(tide_pool *pool, void *queue, uint32_t *results, uint32_t round)
{
    TIDE_SCOPE(pool);
    uint32_t *from = tide_acquire(pool, uint32_t, N);
    fill_by_upload(pool, from, N, round);
    expect_ok(tide_pool_use_on(pool, queue));
    launch_add(queue, results, from, N, 1, LONG);
}

static void overwrite(tide_pool *pool, uint32_t round)
{
    TIDE_SCOPE_TYPES(pool, uint32_t);
    assert_non_null(tide_fill(pool, uint32_t, N, round ^ 0xABCDu));
}

TEST(a_kernel_in_flight_keeps_what_it_reads)
{
    void *own = bed_queue(), *other = bed_queue();
    tide_pool *pool = bed_pool(own);
    tide_mark mark = tide_checkpoint(pool);
    uint32_t *results = tide_acquire(pool, uint32_t, N);
    for (uint32_t round = 0; round < 2 * rounds(); round++) {
        read_and_rewind(pool, round % 2 == 0 ? own : other, results, round);
        overwrite(pool, round);
        expect_words(pool, results, N, round + 1);
    }
    expect_ok(tide_rewind(pool, mark));
    expect_ok(tide_pool_destroy(pool));
    bed_queue_end(other);
    bed_queue_end(own);
}

/* What is queued from now on does not begin before it is let go. */
static tide_cl_event hold_up(void)
{
    int32_t error = -1;
    tide_cl_event held = bed_cl.clCreateUserEvent(tide_opencl_of(gpu)->context, &error);
    assert_int_equal(error, 0);
    assert_int_equal(
        tide_opencl.clEnqueueBarrierWithWaitList(tide_opencl_of(gpu)->queue, 1, &held, NULL), 0);
    return held;
}

static void let_go(tide_cl_event held)
{
    assert_int_equal(bed_cl.clSetUserEventStatus(held, 0), 0);
    assert_int_equal(tide_opencl.clReleaseEvent(held), 0);
}

static uint64_t driver_calls(const tide_device_information *info)
{
    return info->allocations + info->releases + info->copies + info->fills + info->events +
           info->waits + info->launches;
}

/* The rewind and the next acquire return while the kernels are in flight, and call nothing. One
 * that waits does so until the alarm. */
TEST(a_rewind_neither_waits_nor_calls_the_driver)
{
    tide_pool *pool = bed_pool(NULL);
    uint32_t *results = tide_acquire(pool, uint32_t, N);
    tide_mark mark = tide_checkpoint(pool);
    uint32_t *from = tide_acquire(pool, uint32_t, N);
    fill_by_upload(pool, from, N, 3);
    tide_cl_event held = hold_up();
    for (int i = 0; i < 20; i++)
        launch_add(NULL, results, from, N, 1, LONG);
    void *after = gpu->methods->mark(gpu, NULL);
    assert_non_null(after);
    tide_device_information before = bed_info();
    alarm(120);
    expect_ok(tide_rewind(pool, mark));
    assert_ptr_equal(tide_acquire(pool, uint32_t, N), from);
    tide_device_information then = bed_info();
    assert_int_equal(driver_calls(&then), driver_calls(&before));
    assert_false(gpu->methods->mark_done(gpu, after)); /* still at it */
    alarm(0);
    let_go(held);
    expect_ok(gpu->methods->mark_wait(gpu, after));
    assert_true(gpu->methods->mark_done(gpu, after));
    gpu->methods->mark_drop(gpu, after);
    expect_words(pool, results, N, 4);
    bed_pool_end(pool);
}

/* ---- memory given back in flight --------------------------------------------------------------
 */

/* Released while a slow kernel reads it, then wanted by a pool of another queue at once. */
TEST(memory_is_not_handed_to_another_queue_too_soon)
{
    void *queues[2] = {bed_queue(), bed_queue()};
    tide_pool *pools[2] = {bed_pool(queues[0]), bed_pool(queues[1])};
    void *results = tide_acquire(pools[0], uint64_t, N);
    for (uint32_t round = 0; round < rounds(); round++) {
        tide_mark mark = tide_checkpoint(pools[0]);
        uint32_t *from = tide_acquire(pools[0], uint32_t, N);
        fill_by_upload(pools[0], from, N, round);
        launch_add(queues[0], results, from, N, 1, LONG);
        expect_ok(tide_rewind(pools[0], mark));
        tide_pool_trim(pools[0], TIDE_U32);
        assert_non_null(tide_fill(pools[1], uint32_t, N, 0xFFFFu));
        expect_ok(tide_pool_empty(pools[1]));
        expect_words(pools[0], results, N, round + 1);
    }
    expect_ok(tide_pool_reset(pools[0]));
    for (int i = 0; i < 2; i++) {
        expect_ok(tide_pool_destroy(pools[i]));
        bed_queue_end(queues[i]);
    }
}

/* ---- buffers ---------------------------------------------------------------------------------- */

static tide_buffer taken(tide_buffers *buffers, uint32_t flags, void *queue, void **data)
{
    tide_buffer b = tide_buffer_acquire_on(buffers, 4 * N, flags, queue);
    if (b.generation == 0)
        fail_msg("%s", tide_error_message());
    *data = tide_buffer_pointer(buffers, b);
    return b;
}

static void fill_words(void *queue, void *data, uint32_t value)
{
    expect_ok(gpu->methods->fill(gpu, queue, data, &value, 4, N));
}

/* A slow kernel of one queue reads the buffer that the other queue overwrites next. */
TEST(a_kernel_keeps_the_buffer_that_it_reads)
{
    tide_buffers *buffers = tide_buffers_create(gpu, NULL);
    tide_pool *pool = bed_pool(NULL);
    uint32_t *results = tide_acquire(pool, uint32_t, N), *got = malloc(4 * N);
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
        expect_ok(tide_download(pool, got, results, 4 * N));
        assert_int_equal(got[0], round + 1);
        assert_int_equal(got[N - 1], round + 1);
    }
    tide_buffers_statistics stats;
    expect_ok(tide_buffers_stats(buffers, &stats, NULL, 0));
    assert_int_equal(stats.misses, 1);
    free(got);
    bed_pool_end(pool);
    expect_ok(tide_buffers_destroy(buffers));
    bed_queue_end(queues[0]);
    bed_queue_end(queues[1]);
}

/* ---- more than there is ---------------------------------------------------------------------- */

/* The driver has 2 GiB (POCL_MEMORY_LIMIT): what is larger is refused in words, the rest goes on.
 */
TEST(what_is_larger_than_the_device_is_refused)
{
    const size_t limit = (size_t)2 << 30;
    if (bed_info().bytes == 0 || bed_info().bytes > limit)
        skip();
    tide_pool *pool = bed_pool(NULL);
    tide_mark mark = tide_checkpoint(pool);
    uint32_t *array = tide_acquire(pool, uint32_t, 100);
    for (size_t bytes = limit + 1; bytes != 0 && bytes <= (size_t)1 << 40; bytes *= 8) {
        assert_null(tide_acquire(pool, uint8_t, bytes));
        assert_int_equal(tide_error_status(), TIDE_ERROR_MEMORY);
        assert_non_null(strstr(tide_error_message(), "opencl:0"));
        assert_null(tide_zeros(pool, uint8_t, bytes));
        assert_int_equal(tide_error_status(), TIDE_ERROR_MEMORY);
    }
    tide_buffers *buffers = tide_buffers_create(gpu, NULL);
    assert_int_equal(tide_buffer_acquire(buffers, limit + 1).generation, 0);
    assert_int_equal(tide_error_status(), TIDE_ERROR_MEMORY);
    expect_ok(tide_buffers_destroy(buffers));
    fill_by_upload(pool, array, 100, 4);
    expect_words(pool, array, 100, 4);
    expect_ok(tide_rewind(pool, mark));
    expect_ok(tide_pool_destroy(pool));
}

/* An array of another device is an address here that nobody may follow: a checked pool says so. */
TEST(an_array_of_another_device_is_refused)
{
    tide_device *second = tide_device_open("opencl:1");
    if (second == NULL || bed_memory() != TIDE_OPENCL_BUFFERS)
        skip();
    tide_pool *pool =
        tide_pool_create(&(tide_pool_options){.device = gpu, .check = TIDE_CHECK_POISON});
    tide_pool *theirs = tide_pool_create(&(tide_pool_options){.device = second});
    assert_true(pool != NULL && theirs != NULL);
    uint32_t *here = tide_acquire(pool, uint32_t, N), *there = tide_acquire(theirs, uint32_t, N);
    expect_status(tide_copy(pool, here, there, N * sizeof *here), TIDE_ERROR_ARGUMENT);
    expect_status(tide_copy(pool, there, here, N * sizeof *here), TIDE_ERROR_ARGUMENT);
    assert_non_null(strstr(tide_error_message(), "is no memory of the device"));
    fill_by_upload(pool, here, N, 3);
    expect_words(pool, here, N, 3);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_reset(theirs));
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_pool_destroy(theirs));
    expect_ok(tide_device_close(second));
}

int main(int argc, char **argv)
{
    return BED_MAIN("opencl flight");
}

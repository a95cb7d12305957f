/* SPDX-License-Identifier: MIT */
/* Programs that mix two devices, or contexts, or want more memory than there is. */
#include "bed.h"

#include <tidepool/buffers.h>
#include <tidepool/device.h>

/* An array of another device is an address here that nobody may follow. */
static void an_array_of_another_device_is_refused(void **unused)
{
    (void)unused;
    enum { N = 1000 };
    tide_device *second = tide_device_open("opencl:1");
    if (second == NULL || bed_memory() != TIDE_OPENCL_BUFFERS)
        skip();
    tide_pool *pool = bed_pool(NULL);
    tide_pool *theirs = tide_pool_create(&(tide_pool_options){.device = second});
    assert_non_null(theirs);
    uint32_t *here = tide_acquire(pool, uint32_t, N), *there = tide_acquire(theirs, uint32_t, N);
    expect_status(tide_copy(pool, here, there, N * sizeof *here), TIDE_ERROR_ARGUMENT);
    expect_status(tide_copy(pool, there, here, N * sizeof *here), TIDE_ERROR_ARGUMENT);
    assert_non_null(strstr(tide_error_message(), "no memory of device"));
    fill_by_upload(pool, here, N, 3);
    expect_words(pool, here, N, 3);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_reset(theirs));
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_pool_destroy(theirs));
    expect_ok(tide_device_close(second));
}

/* ---- a queue of another context -------------------------------------------------------------- */

/* Of a context of its own for the same device, as a second library in the process would have. */
static void *foreign_queue(void)
{
    void *(*create)(const intptr_t *, uint32_t, void *const *, void *, void *, int32_t *);
    int32_t (*release)(void *);
    int32_t error = 0;
    void *const device = tide_opencl_of(gpu)->device;
    *(void **)(void *)&create = bed_function("clCreateContext");
    *(void **)(void *)&release = bed_function("clReleaseContext");
    void *context = create(NULL, 1, &device, NULL, NULL, &error);
    assert_int_equal(error, 0);
    void *queue = tide_opencl.clCreateCommandQueueWithProperties(context, device, NULL, &error);
    assert_int_equal(error, 0);
    assert_int_equal(release(context), 0); /* the queue has it */
    return queue;
}

static void expect_refused(bool refused, const char *words)
{
    assert_true(refused);
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    if (strstr(tide_error_message(), words) == NULL)
        fail_msg("%s", tide_error_message());
}

static void a_queue_of_another_context_is_refused_by_name(void **unused)
{
    (void)unused;
    void *foreign = foreign_queue();
    tide_pool *pool = bed_pool(NULL);
    expect_refused(tide_pool_create(&(tide_pool_options){.device = gpu, .stream = foreign}) == NULL,
                   "opencl:0");
    tide_mark mark = tide_checkpoint(pool);
    uint32_t *array = tide_acquire(pool, uint32_t, 100);
    expect_refused(tide_pool_use_on(pool, foreign) == TIDE_ERROR_ARGUMENT, "opencl:0");
    tide_buffers *buffers = tide_buffers_create(gpu, NULL);
    assert_non_null(buffers);
    expect_refused(tide_buffer_acquire_on(buffers, 1000, 0, foreign).generation == 0, "opencl:0");
    tide_buffer one = tide_buffer_acquire(buffers, 1000);
    assert_true(one.generation != 0);
    expect_refused(tide_buffer_release_on(buffers, one, foreign) == TIDE_ERROR_ARGUMENT,
                   "opencl:0");
    expect_ok(tide_buffer_release(buffers, one));
    expect_ok(tide_buffers_destroy(buffers));
    fill_by_upload(pool, array, 100, 4); /* nothing has suffered */
    expect_words(pool, array, 100, 4);
    expect_ok(tide_rewind(pool, mark));
    expect_ok(tide_pool_destroy(pool));
    bed_queue_end(foreign);
}

/* ---- more than there is ---------------------------------------------------------------------- */

/* The driver has 2 GiB (POCL_MEMORY_LIMIT): what is larger is refused in words, the rest goes on.
 */
static void what_is_larger_than_the_device_is_refused(void **unused)
{
    (void)unused;
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_of_another_device_is_refused),
        cmocka_unit_test(a_queue_of_another_context_is_refused_by_name),
        cmocka_unit_test(what_is_larger_than_the_device_is_refused),
    };
    return BED_MAIN("hostile", tests);
}

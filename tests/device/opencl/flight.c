/* SPDX-License-Identifier: MIT */
/* Rewind while kernels are in flight: real kernels, one queue and two, and the data must be right.
 */
#include "bed.h"

#include <dlfcn.h>
#include <unistd.h>

#include <tidepool/device.h>
#include <tidepool/upkeep.h>

enum { N = 4096 };

static size_t rounds(void)
{
    return scaled(100, 10);
}

/* ---- one queue ----------------------------------------------------------------------------- */

/* A slow kernel reads `from`; it is rewound at once, handed out again and overwritten. */
static void read_and_rewind(tide_pool *pool, uint32_t *results, uint32_t round)
{
    TIDE_SCOPE_TYPES(pool, uint32_t);
    uint32_t *from = tide_acquire(pool, uint32_t, N);
    fill_by_upload(pool, from, N, round);
    launch_add(NULL, results, from, N, 1, LONG);
}

static void overwrite(tide_pool *pool, uint32_t round)
{
    TIDE_SCOPE_TYPES(pool, uint32_t);
    assert_non_null(tide_fill(pool, uint32_t, N, round ^ 0xABCDu));
}

static void a_kernel_in_flight_keeps_what_it_reads(void **unused)
{
    (void)unused;
    tide_pool *pool = bed_pool(NULL);
    tide_mark mark = tide_checkpoint(pool);
    uint32_t *results = tide_acquire(pool, uint32_t, N);
    for (uint32_t round = 0; round < rounds(); round++) {
        read_and_rewind(pool, results, round);
        overwrite(pool, round);
        expect_words(pool, results, N, round + 1);
    }
    expect_ok(tide_rewind(pool, mark));
    expect_ok(tide_pool_destroy(pool));
}

/* What is queued there from now on does not begin before it is let go. */
static tide_cl_event hold_up_on(tide_cl_queue queue)
{
    tide_cl_event (*create)(tide_cl_context, int32_t *);
    int32_t error = -1;
    void *library = dlopen(tide_opencl_library, RTLD_NOW);
    assert_non_null(library);
    *(void **)&create = dlsym(library, "clCreateUserEvent");
    assert_true(create != NULL);
    tide_cl_event held = create(tide_opencl_of(gpu)->context, &error);
    assert_int_equal(error, 0);
    assert_int_equal(tide_opencl.clEnqueueBarrierWithWaitList(queue, 1, &held, NULL), 0);
    dlclose(library);
    return held;
}

static tide_cl_event hold_up(void)
{
    return hold_up_on(tide_opencl_of(gpu)->queue);
}

static void let_go(tide_cl_event held)
{
    int32_t (*set)(tide_cl_event, int32_t);
    void *library = dlopen(tide_opencl_library, RTLD_NOW);
    assert_non_null(library);
    *(void **)&set = dlsym(library, "clSetUserEventStatus");
    assert_true(set != NULL);
    assert_int_equal(set(held, 0), 0);
    assert_int_equal(tide_opencl.clReleaseEvent(held), 0);
    dlclose(library);
}

static uint64_t driver_calls(const tide_device_information *info)
{
    return info->allocations + info->releases + info->copies + info->fills + info->events +
           info->waits + info->launches;
}

/* The rewind and the next acquire return while the kernels are in flight, and call nothing. One
 * that waits does so until the alarm. */
static void a_rewind_neither_waits_nor_calls_the_driver(void **unused)
{
    (void)unused;
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
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

/* ---- two queues ----------------------------------------------------------------------------- */

/* As above, but the slow kernel is on the other queue, and what overwrites on the pool's. */
static void other_queue_reads(tide_pool *pool, void *other, uint32_t *results, uint32_t round)
{
    TIDE_SCOPE(pool);
    uint32_t *from = tide_acquire(pool, uint32_t, N);
    fill_by_upload(pool, from, N, round);
    expect_ok(tide_pool_use_on(pool, other));
    launch_add(other, results, from, N, 1, LONG);
}

static void a_declared_queue_keeps_what_it_reads(void **unused)
{
    (void)unused;
    void *other = bed_queue(), *own = bed_queue();
    tide_pool *pool = bed_pool(own);
    tide_mark mark = tide_checkpoint(pool);
    uint32_t *results = tide_acquire(pool, uint32_t, N);
    for (uint32_t round = 0; round < rounds(); round++) {
        other_queue_reads(pool, other, results, round);
        overwrite(pool, round);
        expect_words(pool, results, N, round + 1);
    }
    expect_ok(tide_rewind(pool, mark));
    expect_ok(tide_pool_destroy(pool));
    bed_queue_end(other);
    bed_queue_end(own);
}

/* ---- which queue is which -------------------------------------------------------------------- */

static void queues_that_order_nothing_are_refused(void **unused)
{
    (void)unused;
    tide_opencl_device *device = tide_opencl_of(gpu);
    const uint64_t properties[] = {TIDE_CL_QUEUE_PROPERTIES, TIDE_CL_QUEUE_OUT_OF_ORDER, 0};
    int32_t error = 0;
    tide_cl_queue queue = tide_opencl.clCreateCommandQueueWithProperties(
        device->context, device->device, properties, &error);
    assert_int_equal(error, 0);
    assert_null(tide_pool_create(&(tide_pool_options){.device = gpu, .stream = queue}));
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    bed_queue_end(queue);
    tide_cl_context context =
        tide_opencl.clCreateContext(NULL, 1, &device->device, NULL, NULL, &error);
    queue = tide_opencl.clCreateCommandQueueWithProperties(context, device->device, NULL, &error);
    assert_null(tide_pool_create(&(tide_pool_options){.device = gpu, .stream = queue}));
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    bed_queue_end(queue);
    assert_int_equal(tide_opencl.clReleaseContext(context), 0);
}

static int32_t have_no_memory(tide_cl_queue queue, uint32_t what, size_t bytes, void *out,
                              size_t *size)
{
    (void)queue, (void)what, (void)bytes, (void)out, (void)size;
    return TIDE_CL_OUT_OF_HOST_MEMORY;
}

/* As the driver's error says, which is nothing about the queue. */
static void a_queue_of_which_the_driver_does_not_tell_is_no_argument(void **unused)
{
    (void)unused;
    void *queue = bed_queue();
    tide_opencl_calls calls = tide_opencl;
    tide_opencl.clGetCommandQueueInfo = have_no_memory;
    assert_null(tide_pool_create(&(tide_pool_options){.device = gpu, .stream = queue}));
    tide_opencl = calls;
    assert_int_equal(tide_error_status(), TIDE_ERROR_MEMORY);
    tide_pool *pool = bed_pool(queue);
    expect_ok(tide_pool_destroy(pool));
    bed_queue_end(queue);
}

/* ---- memory given back in flight --------------------------------------------------------------
 */

/* Released while a slow kernel reads it, then wanted by a pool of another queue at once. */
static void memory_is_not_handed_to_another_queue_too_soon(void **unused)
{
    (void)unused;
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

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_in_flight_keeps_what_it_reads),
        cmocka_unit_test(a_rewind_neither_waits_nor_calls_the_driver),
        cmocka_unit_test(a_declared_queue_keeps_what_it_reads),
        cmocka_unit_test(queues_that_order_nothing_are_refused),
        cmocka_unit_test(a_queue_of_which_the_driver_does_not_tell_is_no_argument),
        cmocka_unit_test(memory_is_not_handed_to_another_queue_too_soon),
    };
    return BED_MAIN("opencl flight", tests);
}

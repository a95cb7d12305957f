/* SPDX-License-Identifier: MIT */
/* Threads that are cancelled while the library is in an OpenCL driver. Calls of drivers may be
 * points of cancellation (where PoCL waits, it is in pthread_cond_wait); here those that every
 * operation comes by are. The operations of the library are none: what they have half done would
 * stay so. */
#define _GNU_SOURCE
#include "bed.h"

#include <pthread.h>

#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/device_bump.h>

#include "runtime/device/device.h"
#include "tests/cancelled.h"

enum { N = 1000 };

/* ---- the driver ----------------------------------------------------------------------------- */

static tide_opencl_calls real;
static unsigned calls; /* atomic */

static int32_t called(int32_t result)
{
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    pthread_testcancel();
    return result;
}

static int32_t finish(tide_cl_queue queue)
{
    return called(real.clFinish(queue));
}

static int32_t flush(tide_cl_queue queue)
{
    return called(real.clFlush(queue));
}

static int32_t mark(tide_cl_queue queue, uint32_t count, const tide_cl_event *after,
                    tide_cl_event *event)
{
    return called(real.clEnqueueMarkerWithWaitList(queue, count, after, event));
}

static int32_t bar(tide_cl_queue queue, uint32_t count, const tide_cl_event *after,
                   tide_cl_event *event)
{
    return called(real.clEnqueueBarrierWithWaitList(queue, count, after, event));
}

static int32_t wait_for(uint32_t count, const tide_cl_event *events)
{
    return called(real.clWaitForEvents(count, events));
}

static int32_t ask(tide_cl_event event, uint32_t what, size_t bytes, void *out, size_t *size)
{
    return called(real.clGetEventInfo(event, what, bytes, out, size));
}

static int32_t release_event(tide_cl_event event)
{
    return called(real.clReleaseEvent(event));
}

static int32_t release_memory(tide_cl_mem memory)
{
    return called(real.clReleaseMemObject(memory));
}

static int32_t release_program(tide_cl_program program)
{
    return called(real.clReleaseProgram(program));
}

static void be_points_of_cancellation(void)
{
    real = tide_opencl;
    tide_opencl.clFinish = finish;
    tide_opencl.clFlush = flush;
    tide_opencl.clEnqueueMarkerWithWaitList = mark;
    tide_opencl.clEnqueueBarrierWithWaitList = bar;
    tide_opencl.clWaitForEvents = wait_for;
    tide_opencl.clGetEventInfo = ask;
    tide_opencl.clReleaseEvent = release_event;
    tide_opencl.clReleaseMemObject = release_memory;
    tide_opencl.clReleaseProgram = release_program;
}

/* ---- operations ----------------------------------------------------------------------------- */

static void do_scope(void)
{
    tide_pool *pool = bed_pool(NULL);
    {
        TIDE_SCOPE(pool);
        uint32_t *x = tide_acquire(pool, uint32_t, N), *y = tide_fill(pool, uint32_t, N, 7);
        fill_by_upload(pool, x, N, 3);
        expect_ok(tide_copy(pool, y, x, N * sizeof *x));
        expect_words(pool, y, N, 3);
    }
    expect_ok(tide_pool_wait(pool));
    (void)tide_pool_trim(pool, TIDE_ALL_TYPES);
    expect_ok(tide_pool_destroy(pool));
}

static void do_other_queue(void)
{
    tide_pool *pool = bed_pool(NULL);
    void *queue = bed_queue();
    {
        TIDE_SCOPE(pool);
        (void)tide_acquire(pool, uint32_t, N);
        expect_ok(tide_pool_use_on(pool, queue));
    }
    expect_ok(tide_pool_destroy(pool));
    bed_queue_end(queue);
}

static void do_buffers(void)
{
    static const uint32_t kinds[] = {TIDE_BUFFER_DEVICE, TIDE_BUFFER_PINNED};
    tide_buffers *buffers = tide_buffers_create(gpu, NULL);
    void *queue = bed_queue();
    for (unsigned i = 0; i < 4; i++) {
        tide_buffer one = tide_buffer_acquire_on(buffers, N, kinds[i % 2], i < 2 ? queue : NULL);
        assert_int_not_equal(one.generation, 0);
        expect_ok(tide_buffer_release_on(buffers, one, queue));
    }
    expect_ok(tide_buffers_destroy(buffers));
    bed_queue_end(queue);
}

static void do_bump(void)
{
    tide_bump_scope scope;
    tide_pool *pool = bed_pool(NULL);
    expect_ok(tide_bump_enter(pool, N, &scope));
    expect_ok(tide_bump_leave(&scope));
    assert_int_equal(scope.asked, 0);
    expect_ok(tide_pool_destroy(pool));
}

static void do_wait_for_all(void)
{
    expect_ok(gpu->methods->wait_all(gpu));
}

static void do_build(void)
{
    static const char text[] = "__kernel void nothing(void) {}";
    void *module = gpu->methods->load(gpu, text, sizeof text - 1, "");
    assert_non_null(module);
    assert_non_null(gpu->methods->kernel(gpu, module, "nothing"));
    gpu->methods->unload(gpu, module);
}

static const cancelled_operation operations[] = {
    {"a scope with copies", do_scope},
    {"use on another queue", do_other_queue},
    {"buffers", do_buffers},
    {"a wait for all queues", do_wait_for_all},
    {"allocations of kernels", do_bump},
    {"a build", do_build},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static void no_operation_on_a_device_is_a_point_of_cancellation(void **unused)
{
    (void)unused;
    be_points_of_cancellation();
    for (unsigned i = 0; i < OPERATIONS; i++) {
        operations[i].function(); /* what fails here has nothing to do with it */
        unsigned before = calls;
        expect_not_cancelled_in(&operations[i], NULL, NULL);
        assert_true(calls > before);
        operations[i].function(); /* nothing is locked, or half done */
    }
    tide_opencl = real;
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_operation_on_a_device_is_a_point_of_cancellation),
    };
    return BED_MAIN("opencl: cancel", tests);
}

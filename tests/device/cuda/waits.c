/* SPDX-License-Identifier: MIT */
/* Waits by whoever gives something up that work in flight uses: one that fails once is not one that
 * has succeeded. And marks that a capture meets. */
#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/dlpack.h>

#include "later.h"

#include "runtime/base/test_hooks.h"
#include "runtime/device/cuda/cuda.h"
#include "runtime/device/device.h"

/* Work on the stream is in flight. */
static void work_beside(void *stream, void *data)
{
    for (uint8_t i = 0; i < WORK; i++)
        put(stream, data, BYTES, i);
    assert_true(fake_pending() > 0);
}

static tide_buffers *taken_on(const bench *b, uint32_t kind, tide_buffer *out)
{
    tide_buffers *buffers = tide_buffers_create(b->device, NULL);
    *out = tide_buffer_acquire_on(buffers, BYTES, kind, b->stream);
    work_beside(b->stream, tide_buffer_pointer(buffers, *out));
    return buffers;
}

/* ---- marks and captures --------------------------------------------------------------------- */

static void *overtaken;

static void begin_capture(void)
{
    fake_capture_begin(overtaken);
}

/* Another thread begins it when the stream has been asked, and the event is not recorded yet. */
static void a_mark_that_a_capture_overtakes_is_none(void **unused)
{
    (void)unused;
    for (uint32_t kind = TIDE_BUFFER_PINNED; kind <= TIDE_BUFFER_IPC; kind++) {
        if (kind == TIDE_BUFFER_HOST)
            continue;
        bench b = bench_start(68);
        tide_buffer one;
        void *graph = NULL;
        tide_buffers *buffers = taken_on(&b, kind, &one);
        overtaken = b.stream;
        fake_call_back("cuEventRecord", begin_capture);
        expect_status(tide_buffer_release_on(buffers, one, b.stream), TIDE_ERROR_STATE);
        expect_said("captured");
        assert_int_equal(fake_capture_end(b.stream, &graph), 0);
        fake_graph_destroy(graph);
        expect_ok(tide_buffer_release_on(buffers, one, b.stream));
        expect_ok(tide_buffers_destroy(buffers));
        bench_end(&b);
    }
}

enum { GLOBAL = 0 }; /* the mode in which a thread begins */

static int mode_of_thread(void)
{
    int mode = GLOBAL;
    assert_int_equal(tide_cu.cuThreadExchangeStreamCaptureMode(&mode), TIDE_CU_SUCCESS);
    return mode;
}

/* Its thread cannot leave the mode in which somebody else's capture is, so the driver refuses one
 * call, whichever, and that capture is lost. The work that uses the memory is over all the same,
 * and the thread is in its mode again. */
static void a_mark_is_waited_for_beside_a_capture(void **unused)
{
    (void)unused;
    for (unsigned nth = 1; nth <= 8; nth++) {
        bench b = bench_start(67);
        void *graph = NULL, *apart = fake_stream_create(0);
        tide_buffer one;
        tide_buffers *buffers = taken_on(&b, TIDE_BUFFER_IPC, &one);
        expect_ok(tide_buffer_release_on(buffers, one, b.stream));
        fake_capture_begin(apart);
        fake_fail("cuThreadExchangeStreamCaptureMode", nth, TRANSIENT, false);
        expect_ok(tide_buffers_destroy(buffers));
        fake_fail("cuThreadExchangeStreamCaptureMode", 0, 0, false);
        assert_null(fake_hazard());
        assert_int_equal(mode_of_thread(), GLOBAL);
        if (fake_capture_end(apart, &graph) == 0)
            fake_graph_destroy(graph);
        fake_synchronise_all();
        expect_ok(tide_pool_destroy(b.pool));
        expect_ok(tide_device_close(b.device));
    }
}

/* ---- a wait that fails ---------------------------------------------------------------------- */

static void fail_mark_wait(void)
{
    fake_fail("cuEventSynchronize", 1, TRANSIENT, false);
}

static void fail_stream_wait(void)
{
    fake_fail("cuStreamSynchronize", 1, TRANSIENT, false);
}

/* The memory is the host's, or the driver frees it at once: no stream can wait for the mark. */
static void a_buffer_outlasts_a_wait_that_fails(void **unused)
{
    (void)unused;
    for (int marked = 0; marked < 2; marked++)
        for (uint32_t kind = TIDE_BUFFER_PINNED; kind <= TIDE_BUFFER_IPC; kind++) {
            if (kind == TIDE_BUFFER_HOST)
                continue;
            bench b = bench_start(72);
            tide_buffer one;
            tide_buffers *buffers = taken_on(&b, kind, &one);
            if (marked) {
                expect_ok(tide_buffer_release_on(buffers, one, b.stream));
                fail_mark_wait();
            } else {
                fake_fail("cuEventRecord", 1, TRANSIENT, false);
                fake_call_back("cuStreamSynchronize", fail_stream_wait);
                expect_ok(tide_buffer_release_on(buffers, one, b.stream));
            }
            expect_ok(tide_buffers_destroy(buffers));
            assert_int_equal(fake_failures(), 1);
            expect_order();
            bench_end(&b);
        }
}

/* The copy is still under way when the call fails, but for one more wait. */
static void a_direct_copy_that_fails_is_over(void **unused)
{
    (void)unused;
    for (int marked = 0; marked < 2; marked++) {
        bench b = bench_start(75);
        tide_buffers *buffers = tide_buffers_create(b.device, NULL);
        tide_buffer pinned = tide_buffer_acquire_on(buffers, BYTES, TIDE_BUFFER_PINNED, b.stream);
        uint8_t *x = tide_acquire(b.pool, uint8_t, BYTES);
        work_beside(b.stream, x);
        if (marked) {
            fail_mark_wait();
        } else {
            fake_fail("cuEventRecord", 1, TRANSIENT, false);
            fake_call_back("cuStreamSynchronize", fail_stream_wait);
        }
        void *host = tide_buffer_pointer(buffers, pinned);
        expect_status(tide_download(b.pool, host, x, BYTES), TIDE_ERROR_DEVICE);
        expect_said(marked ? "cuEventSynchronize" : "cuStreamSynchronize");
        assert_int_equal(fake_failures(), 1);
        fake_host_uses(host, BYTES, true);
        expect_order();
        expect_ok(tide_buffer_release_on(buffers, pinned, b.stream));
        expect_ok(tide_buffers_destroy(buffers));
        bench_end(&b);
    }
}

/* ---- imports -------------------------------------------------------------------------------- */

static void fail_wait(void)
{
    fake_fail("cuCtxSynchronize", 1, TRANSIENT, false);
}

static unsigned deleted;

static void use_deleted(void *data, void *context)
{
    (void)context;
    fake_host_uses(data, BYTES, true);
    deleted++;
}

/* No event tells when it is over, and the first wait fails. */
static void an_import_without_a_mark_outlasts_a_wait_that_fails(void **unused)
{
    (void)unused;
    bench b = bench_start(76);
    tide_buffers *buffers = tide_buffers_create(b.device, NULL);
    tide_buffer pinned = tide_buffer_acquire_on(buffers, BYTES, TIDE_BUFFER_PINNED, b.stream);
    void *data = tide_buffer_pointer(buffers, pinned);
    deleted = 0;
    {
        TIDE_SCOPE(b.pool);
        assert_non_null(
            tide_array_wrap(b.pool, &(tide_array_source){.data = data,
                                                         .type = TIDE_U8,
                                                         .ndim = 1,
                                                         .shape = (const int64_t[]){BYTES},
                                                         .deleter = use_deleted}));
        work_beside(b.stream, data);
        fake_fail("cuEventRecord", 1, TRANSIENT, true);
    }
    fake_call_back("cuCtxSynchronize", fail_wait);
    expect_ok(tide_pool_destroy(b.pool));
    assert_int_equal(fake_failures(), 1); /* of the wait */
    assert_int_equal(deleted, 1);
    expect_order();
    expect_ok(tide_buffer_release_on(buffers, pinned, b.stream));
    expect_ok(tide_buffers_destroy(buffers));
    b.pool = tide_pool_create(&(tide_pool_options){.device = b.device, .stream = b.stream});
    bench_end(&b);
}

/* No event tells when the pool's last use of it is over. */
static void an_export_without_a_mark_outlasts_a_wait_that_fails(void **unused)
{
    (void)unused;
    bench b = bench_start(73);
    tide_array *array = tide_array_acquire(b.pool, TIDE_U8, 1, (const int64_t[]){BYTES});
    tide_dl_managed *exported = tide_array_export(b.pool, array);
    assert_non_null(exported);
    work_beside(b.stream, array->tensor.data);
    fake_fail("cuEventRecord", 1, TRANSIENT, false);
    fake_call_back("cuStreamSynchronize", fail_stream_wait);
    expect_ok(tide_pool_destroy(b.pool));
    assert_int_equal(fake_failures(), 1);
    exported->deleter(exported);
    expect_order();
    b.pool = tide_pool_create(&(tide_pool_options){.device = b.device, .stream = b.stream});
    bench_end(&b);
}

/* No stream can wait for its mark, and the host cannot the first time. */
static void an_export_outlasts_a_wait_that_fails(void **unused)
{
    (void)unused;
    bench b = bench_start(69);
    tide_array *array = tide_array_acquire(b.pool, TIDE_U8, 1, (const int64_t[]){BYTES});
    tide_dl_managed *exported = tide_array_export(b.pool, array);
    assert_non_null(exported);
    work_beside(b.stream, array->tensor.data);
    expect_ok(tide_pool_destroy(b.pool));
    fake_fail("cuStreamWaitEvent", 1, TRANSIENT, false);
    fake_call_back("cuEventSynchronize", fail_mark_wait);
    exported->deleter(exported);
    assert_int_equal(fake_failures(), 1); /* of the wait */
    expect_order();
    b.pool = tide_pool_create(&(tide_pool_options){.device = b.device, .stream = b.stream});
    bench_end(&b);
}

static void a_graphs_arrays_outlast_a_wait_that_fails(void **unused)
{
    (void)unused;
    bench b = bench_start(70);
    void *graph = NULL, *other = fake_stream_create(0);
    expect_ok(tide_capture_begin(b.pool));
    uint8_t *data = tide_acquire(b.pool, uint8_t, BYTES);
    fake_capture_begin(b.stream);
    put(b.stream, data, BYTES, 1);
    assert_int_equal(fake_capture_end(b.stream, &graph), 0);
    tide_capture *capture = tide_capture_end(b.pool);
    assert_non_null(capture);
    expect_ok(tide_pool_destroy(b.pool));
    fake_order(b.stream, other);
    for (unsigned i = 0; i < WORK; i++)
        fake_graph_launch(graph, other);
    assert_true(fake_pending() > 0);
    fake_fail("cuStreamWaitEvent", 1, TRANSIENT, false);
    fake_call_back("cuStreamSynchronize", fail_stream_wait);
    expect_ok(tide_capture_drop(capture, other));
    assert_int_equal(fake_failures(), 1); /* of the wait */
    expect_order();
    fake_graph_destroy(graph);
    b.pool = tide_pool_create(&(tide_pool_options){.device = b.device, .stream = b.stream});
    fake_stream_destroy(other);
    bench_end(&b);
}

static _Thread_local unsigned events_left;

static bool no_more_events(size_t bytes)
{
    (void)bytes;
    return events_left == 0 || events_left-- == 0;
}

/* When it has failed, no copy is under way: the source may be given up. */
static void a_copy_between_devices_that_fails_is_over(void **unused)
{
    (void)unused;
    bench b = bench_start(71);
    tide_device *second = tide_device_open("cuda:1");
    void *stream = fake_stream_create(1);
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.device = second, .stream = stream});
    assert_non_null(pool);
    uint8_t *from = tide_acquire(pool, uint8_t, BYTES), *to = tide_acquire(b.pool, uint8_t, BYTES);
    work_beside(stream, from);
    work_beside(b.stream, to);
    events_left = 1;
    tide_os_fault = no_more_events;
    fail_stream_wait();
    expect_status(tide_copy_from(b.pool, to, pool, from, BYTES), TIDE_ERROR_MEMORY);
    tide_os_fault = NULL;
    assert_int_equal(fake_failures(), 1);
    put(stream, from, BYTES, 9);
    expect_order();
    expect_ok(tide_pool_destroy(pool));
    fake_synchronise_all();
    expect_ok(tide_device_close(second));
    fake_stream_destroy(stream);
    bench_end(&b);
}

static unsigned order_fails_in;

static void fail_order(void)
{
    if (--order_fails_in == 0)
        fake_call_back("cuStreamSynchronize", fail_stream_wait);
    else
        fake_call_back("cuStreamWaitEvent", fail_order);
}

/* The same on one device, where the copy is queued and its end cannot be. */
static void a_copy_between_pools_that_fails_is_over(void **unused)
{
    (void)unused;
    bench b = bench_start(74);
    void *stream = fake_stream_create(0);
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.device = b.device, .stream = stream});
    assert_non_null(pool);
    uint8_t *from = tide_acquire(pool, uint8_t, BYTES), *to = tide_acquire(b.pool, uint8_t, BYTES);
    work_beside(stream, from);
    work_beside(b.stream, to);
    fake_fail("cuStreamWaitEvent", 2, TRANSIENT, false);
    order_fails_in = 2;
    fake_call_back("cuStreamWaitEvent", fail_order);
    expect_status(tide_copy_from(b.pool, to, pool, from, BYTES), TIDE_ERROR_DEVICE);
    assert_int_equal(fake_failures(), 1);
    put(stream, from, BYTES, 9);
    expect_order();
    expect_ok(tide_pool_destroy(pool));
    fake_synchronise_all();
    fake_stream_destroy(stream);
    bench_end(&b);
}

/* ---- a device that is closed ---------------------------------------------------------------- */

/* What was given back in a capture waits for nothing but the device. */
static void close_with_deferred_memory(void)
{
    bench b = bench_start(63);
    void *graph = NULL, *data = NULL;
    const tide_device_methods *methods = b.device->methods;
    expect_ok(methods->allocate(b.device, b.stream, TIDE_MEMORY_DEVICE, BYTES, 64, &data));
    fake_capture_begin(b.stream);
    methods->release(b.device, b.stream, TIDE_MEMORY_DEVICE, data, BYTES);
    assert_int_equal(fake_capture_end(b.stream, &graph), 0);
    fake_graph_destroy(graph);
    expect_ok(tide_pool_destroy(b.pool));
    fake_fail("cuCtxSynchronize", 1, TRANSIENT, false);
    expect_ok(tide_device_close(b.device));
}

/* Without memory pools it waits for its stream's mark. */
static void close_with_leaving_memory(void)
{
    fake_reset(1, 64);
    fake_no_pools();
    tide_cuda_driver_set(FAKE_CUDA);
    void *stream = fake_stream_create(0), *data = NULL;
    tide_device *device = tide_device_open("cuda:0");
    assert_non_null(device);
    const tide_device_methods *methods = device->methods;
    expect_ok(methods->allocate(device, stream, TIDE_MEMORY_DEVICE, BYTES, 64, &data));
    work_beside(stream, data);
    methods->release(device, stream, TIDE_MEMORY_DEVICE, data, BYTES);
    fail_mark_wait();
    expect_ok(tide_device_close(device));
}

static void a_device_loses_no_memory_by_a_wait_that_fails(void **unused)
{
    (void)unused;
    for (int leaving = 0; leaving < 2; leaving++) {
        if (leaving)
            close_with_leaving_memory();
        else
            close_with_deferred_memory();
        assert_int_equal(fake_failures(), 1);
        expect_order();
        assert_int_equal(fake_live_bytes(), 0);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mark_that_a_capture_overtakes_is_none),
        cmocka_unit_test(a_mark_is_waited_for_beside_a_capture),
        cmocka_unit_test(a_buffer_outlasts_a_wait_that_fails),
        cmocka_unit_test(a_direct_copy_that_fails_is_over),
        cmocka_unit_test(an_import_without_a_mark_outlasts_a_wait_that_fails),
        cmocka_unit_test(an_export_without_a_mark_outlasts_a_wait_that_fails),
        cmocka_unit_test(an_export_outlasts_a_wait_that_fails),
        cmocka_unit_test(a_graphs_arrays_outlast_a_wait_that_fails),
        cmocka_unit_test(a_copy_between_devices_that_fails_is_over),
        cmocka_unit_test(a_copy_between_pools_that_fails_is_over),
        cmocka_unit_test(a_device_loses_no_memory_by_a_wait_that_fails),
    };
    return cmocka_run_group_tests_name("waits", tests, NULL, NULL);
}

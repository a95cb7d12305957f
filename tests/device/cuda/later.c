/* SPDX-License-Identifier: MIT */
/* A pool's stream is gone while a graph is captured: nothing orders what its work uses, and the
 * host may not wait. All that the pool gives up goes when the capture is over, and not before. The
 * same holds for buffers whose memory no stream gives back. */
#define _GNU_SOURCE
#include "later.h"

#include <unistd.h>

#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/device_memory.h>
#include <tidepool/dlpack.h>

#include "runtime/base/test_hooks.h"
#include "runtime/device/cuda/api.h"
#include "runtime/device/device.h"

static void end(scene *s)
{
    expect_ok(tide_pool_destroy(s->pool));
    expect_order();
    assert_true(fake_pending() > 0); /* nobody has waited */
    assert_int_equal(fake_calls("cuCtxSynchronize"), 0);
    expect_status(tide_device_close(s->b.device), TIDE_ERROR_STATE);
    assert_int_equal(fake_capture_end(s->b.stream, &s->graph), 0);
    tide_capture *capture = tide_capture_end(s->b.pool);
    assert_non_null(capture);
    assert_int_equal(fake_calls("cuCtxSynchronize"), 1);
    expect_ok(tide_capture_drop(capture, s->b.stream));
    fake_graph_destroy(s->graph);
    expect_ok(tide_buffers_destroy(s->buffers));
    fake_stream_destroy(s->stream);
    bench_end(&s->b); /* all memory is there again */
}

/* ---- kinds ---------------------------------------------------------------------------------- */

static void slots_are_put_off(void **unused)
{
    (void)unused;
    for (int drawing = 0; drawing < 2; drawing++) {
        scene s = begin(drawing != 0);
        {
            TIDE_SCOPE(s.pool);
            work_on(&s, tide_acquire(s.pool, uint8_t, BYTES));
        }
        stream_goes(&s);
        size_t before = fake_live_bytes();
        (void)tide_pool_trim(s.pool, TIDE_ALL_TYPES);
        assert_int_equal(fake_live_bytes(), before);
        end(&s);
    }
}

static void exports_are_put_off(void **unused)
{
    (void)unused;
    for (int late = 0; late < 2; late++) {
        scene s = begin(false);
        tide_dl_managed *managed;
        {
            TIDE_SCOPE(s.pool);
            tide_array *array = tide_array_acquire(s.pool, TIDE_U8, 1, (const int64_t[]){BYTES});
            managed = tide_array_export(s.pool, array);
            assert_non_null(managed);
            work_on(&s, array->tensor.data);
        }
        stream_goes(&s);
        if (late == 0) {
            expect_ok(tide_pool_destroy(s.pool));
            managed->deleter(managed); /* the last holder is not the pool */
            expect_order();
            s.pool = NULL;
        } else {
            managed->deleter(managed);
        }
        end(&s);
    }
}

static void staged_copies_are_put_off(void **unused)
{
    (void)unused;
    scene s = begin(false);
    char bytes[BYTES] = {1};
    {
        TIDE_SCOPE(s.pool);
        uint8_t *x = tide_acquire(s.pool, uint8_t, BYTES);
        work_on(&s, x);
        expect_ok(tide_upload(s.pool, x, bytes, BYTES));
    }
    stream_goes(&s);
    unsigned before = fake_calls("cuMemFreeHost");
    expect_ok(tide_pool_destroy(s.pool));
    assert_int_equal(fake_calls("cuMemFreeHost"), before);
    s.pool = NULL;
    end(&s);
}

static unsigned deleted;

static void delete (tide_dl_managed *managed)
{
    tide_device *device = managed->manager_ctx;
    fake_host_uses(managed->tensor.data, BYTES, true); /* what used it must be over */
    device->methods->release(device, device->service, TIDE_MEMORY_DEVICE, managed->tensor.data,
                             BYTES);
    deleted++;
}

/* Somebody else's memory on the device, for as long as the pool's open level lasts. */
static void *import_array(scene *s, void (*deleter)(tide_dl_managed *))
{
    static tide_dl_managed managed;
    static int64_t length = BYTES;
    void *data = NULL;
    expect_ok(s->b.device->methods->allocate(s->b.device, s->b.stream, TIDE_MEMORY_DEVICE, BYTES,
                                             64, &data));
    fake_synchronise_all();
    managed = (tide_dl_managed){.manager_ctx = s->b.device, .deleter = deleter};
    managed.version.major = TIDE_DL_MAJOR;
    managed.tensor = (tide_dl_tensor){.data = data,
                                      .device = s->b.device->dl,
                                      .ndim = 1,
                                      .dtype = {TIDE_DL_UINT, 8, 1},
                                      .shape = &length};
    deleted = 0;
    if (tide_array_import(s->pool, &managed) == NULL)
        fail_msg("%s", tide_error_message());
    return data;
}

static void imports_are_put_off(void **unused)
{
    (void)unused;
    scene s = begin(false);
    {
        TIDE_SCOPE(s.pool);
        work_on(&s, import_array(&s, delete));
        stream_goes(&s);
    }
    expect_ok(tide_pool_destroy(s.pool));
    assert_int_equal(deleted, 0);
    s.pool = NULL;
    end(&s);
    assert_int_equal(deleted, 1);
}

/* An error may pass: what could not be waited for is waited for once more. Not in another way:
 * somebody else's capture, of which nobody told, would end. */
static void an_import_outlasts_a_wait_that_fails(void **unused)
{
    (void)unused;
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        scene s = begin(false);
        {
            TIDE_SCOPE(s.pool);
            work_on(&s, import_array(&s, delete));
        }
        if (for_ever != 0)
            fake_synchronise_all(); /* the mark has been passed: no second wait */
        void *apart = fake_stream_create(0);
        fake_capture_begin(apart);
        fake_fail("cuEventSynchronize", 1, TRANSIENT, for_ever != 0);
        expect_ok(tide_pool_destroy(s.pool));
        assert_int_equal(fake_failures(), 1);
        assert_int_equal(deleted, 1); /* which looked whether it was over */
        fake_fail("cuEventSynchronize", 0, 0, false);
        assert_int_equal(fake_capture_end(apart, &s.graph), 0);
        fake_graph_destroy(s.graph);
        fake_stream_destroy(apart);
        fake_stream_destroy(s.stream);
        bench_end(&s.b);
    }
}

static void count_deleted(tide_dl_managed *managed)
{
    (void)managed;
    deleted++;
}

/* Not for ever: everything can be given up. */
static void an_import_goes_after_two_waits_that_fail(void **unused)
{
    (void)unused;
    scene s = begin(false);
    tide_device *device = s.b.device;
    void *data = import_array(&s, count_deleted);
    work_on(&s, data);
    fake_fail("cuEventSynchronize", 1, TRANSIENT, true);
    expect_ok(tide_pool_destroy(s.pool));
    assert_true(fake_pending() > 0);
    assert_int_equal(fake_failures(), 2);
    assert_int_equal(deleted, 1);
    fake_fail("cuEventSynchronize", 0, 0, false);
    fake_synchronise_all();
    device->methods->release(device, device->service, TIDE_MEMORY_DEVICE, data, BYTES);
    fake_stream_destroy(s.stream);
    bench_end(&s.b);
}

/* The stream is gone, so the host waits for the whole device before the service stream takes its
 * place. */
static void a_stream_that_is_gone_outlasts_a_wait_that_fails(void **unused)
{
    (void)unused;
    for (int drawing = 0; drawing < 2; drawing++) {
        scene s = begin(drawing != 0);
        {
            TIDE_SCOPE(s.pool);
            work_on(&s, tide_acquire(s.pool, uint8_t, BYTES));
            work_on(&s, import_array(&s, delete));
            fake_stream_destroy(s.stream);
            assert_ptr_equal(fake_stream_create(0), s.stream); /* another one */
            fake_fail("cuCtxSynchronize", 1, TRANSIENT, false);
        }
        assert_int_equal(fake_failures(), 1);
        expect_ok(tide_pool_destroy(s.pool));
        assert_int_equal(deleted, 1);
        expect_order();
        if (s.buffers != NULL)
            expect_ok(tide_buffers_destroy(s.buffers));
        fake_stream_destroy(s.stream);
        bench_end(&s.b);
    }
}

/* So is what was put off; but not for ever, for everything can be given up. */
static void what_is_put_off_outlasts_a_wait_that_fails(void **unused)
{
    (void)unused;
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        scene s = begin(false);
        {
            TIDE_SCOPE(s.pool);
            work_on(&s, import_array(&s, delete));
            stream_goes(&s);
        }
        expect_ok(tide_pool_destroy(s.pool));
        assert_int_equal(fake_capture_end(s.b.stream, &s.graph), 0);
        if (for_ever != 0)
            fake_synchronise_all(); /* else it would be in use */
        fake_fail("cuCtxSynchronize", 1, TRANSIENT, for_ever != 0);
        tide_capture *capture = tide_capture_end(s.b.pool);
        assert_int_equal(fake_calls("cuCtxSynchronize"), 2);
        assert_int_equal(fake_failures(), 1 + for_ever);
        assert_int_equal(deleted, 1);
        fake_fail("cuCtxSynchronize", 0, 0, false);
        expect_ok(tide_capture_drop(capture, s.b.stream));
        fake_graph_destroy(s.graph);
        fake_stream_destroy(s.stream);
        bench_end(&s.b);
    }
}

static _Thread_local size_t allocations_left = SIZE_MAX;

static bool fail_after(size_t bytes)
{
    (void)bytes;
    return allocations_left == 0 || allocations_left-- == 0;
}

/* A capture that had taken some of its memory ends with its pool. */
static void captures_are_put_off(void **unused)
{
    (void)unused;
    scene s = begin(false);
    expect_ok(tide_capture_begin(s.pool));
    void *taken = NULL;
    {
        TIDE_SCOPE(s.pool);
        taken = tide_acquire(s.pool, uint8_t, BYTES);
        assert_non_null(tide_acquire(s.pool, uint8_t, BYTES));
    }
    allocations_left = 2; /* what is captured, and the first array */
    tide_os_fault = fail_after;
    tide_capture *capture = tide_capture_end(s.pool);
    tide_os_fault = NULL;
    assert_null(capture);
    work_on(&s, taken);
    stream_goes(&s);
    end(&s);
}

typedef struct listener {
    tide_pool *pool; /* NULL: nobody listens */
    unsigned told, let_in;
} listener;

static void try_pool(const tide_buffer_event *event, void *user)
{
    listener *l = user;
    (void)event;
    if (l->pool == NULL)
        return;
    l->told++;
    l->let_in += tide_pool_wait(l->pool) != TIDE_ERROR_STATE;
}

/* The hook of the buffers finds the pool, which is half-way, shut. */
static void a_pool_that_ends_in_a_capture_is_shut(void **unused)
{
    (void)unused;
    bench b = bench_start(43);
    listener l = {.pool = NULL};
    tide_buffers *buffers = tide_buffers_create(
        b.device, &(tide_buffers_options){.stream = b.stream, .hook = try_pool, .user = &l});
    tide_pool *pool = tide_pool_create(
        &(tide_pool_options){.device = b.device, .stream = b.stream, .buffers = buffers});
    expect_ok(tide_capture_begin(pool));
    {
        TIDE_SCOPE(pool);
        assert_non_null(tide_acquire(pool, uint8_t, BYTES));
        assert_non_null(tide_acquire(pool, uint8_t, BYTES));
    }
    allocations_left = 2; /* what is captured, and the first array */
    tide_os_fault = fail_after;
    assert_null(tide_capture_end(pool));
    tide_os_fault = NULL;
    l.pool = pool;
    expect_ok(tide_pool_destroy(pool));
    l.pool = NULL;
    assert_int_equal(l.told, 2); /* of the array that was captured, and the other */
    assert_int_equal(l.let_in, 0);
    expect_ok(tide_buffers_destroy(buffers));
    bench_end(&b);
}

/* ---- buffers -------------------------------------------------------------------------------- */

/* Memory for other processes goes at once, so what was done with it must be over. */
static void a_buffer_that_is_not_handed_out_is_put_off(void **unused)
{
    (void)unused;
    for (int captured = 0; captured < 2; captured++) {
        bench b = bench_start(42);
        void *beside = fake_stream_create_blocking(0), *graph = NULL;
        tide_buffers *buffers =
            tide_buffers_create(b.device, &(tide_buffers_options){.flags = TIDE_BUFFER_IPC});
        tide_buffer one = tide_buffer_acquire_on(buffers, BYTES, TIDE_BUFFER_IPC, b.stream);
        for (uint8_t i = 0; i < WORK; i++)
            put(b.stream, tide_buffer_pointer(buffers, one), BYTES, i);
        expect_ok(tide_buffer_release_on(buffers, one, b.stream));
        one = tide_buffer_acquire(buffers, BYTES); /* the legacy stream waits for that work */
        expect_ok(tide_buffer_release(buffers, one));
        if (captured != 0)
            fake_capture_begin(beside);
        else
            fake_fail("cuMemsetD8Async", 1, TIDE_CU_INVALID_VALUE, false);
        one = tide_buffer_acquire_zeroed(buffers, BYTES);
        assert_true(one.generation == 0);
        expect_status(tide_error_status(), captured != 0 ? TIDE_ERROR_STATE : TIDE_ERROR_DEVICE);
        expect_order();
        assert_int_equal(fake_calls("cuMemFree"), captured != 0 ? 0 : 1);
        if (captured != 0) {
            expect_status(tide_buffers_destroy(buffers), TIDE_ERROR_STATE);
            assert_true(fake_pending() > 0);
            assert_int_equal(fake_capture_end(beside, &graph), 0);
            fake_graph_destroy(graph);
        }
        expect_ok(tide_buffers_destroy(buffers));
        assert_int_equal(fake_calls("cuMemFree"), 1);
        fake_stream_destroy(beside);
        bench_end(&b);
    }
}

static tide_buffers *taken_on(const bench *b, uint32_t kind, tide_buffer *one)
{
    tide_buffers *buffers = tide_buffers_create(b->device, NULL);
    *one = tide_buffer_acquire_on(buffers, BYTES, kind, b->stream);
    assert_true(one->generation != 0);
    for (uint8_t i = 0; i < WORK; i++)
        put(b->stream, tide_buffer_pointer(buffers, *one), BYTES, i);
    return buffers;
}

/* The capture begins when the library has just asked whether there is one: neither a mark nor a
 * wait is had any more, and no memory may go. */
static void a_release_that_a_capture_overtakes_is_refused(void **unused)
{
    (void)unused;
    for (uint32_t kind = TIDE_BUFFER_PINNED; kind <= TIDE_BUFFER_IPC; kind++) {
        if (kind == TIDE_BUFFER_HOST)
            continue;
        bench b = bench_start(45);
        tide_buffer one;
        void *graph = NULL;
        tide_buffers *buffers = taken_on(&b, kind, &one);
        fake_capture_begin(b.stream);
        fake_fail("cuStreamIsCapturing", 1, TIDE_CU_INVALID_VALUE, false);
        expect_status(tide_buffer_release_on(buffers, one, b.stream), TIDE_ERROR_STATE);
        assert_int_equal(fake_failures(), 1);
        expect_order();
        assert_int_equal(fake_calls("cuMemFree") + fake_calls("cuMemFreeHost"), 0);
        assert_int_equal(fake_capture_end(b.stream, &graph), 0);
        fake_graph_destroy(graph);
        expect_ok(tide_buffer_release_on(buffers, one, b.stream));
        expect_ok(tide_buffers_destroy(buffers));
        bench_end(&b);
    }
}

static void what_pools_drew_goes_with_the_buffers(void **unused)
{
    (void)unused;
    scene s = begin(true);
    void *beside = end_beside_a_capture(&s);
    expect_status(tide_buffers_destroy(s.buffers), TIDE_ERROR_STATE);
    assert_true(fake_pending() > 0);
    assert_int_equal(fake_calls("cuCtxSynchronize"), 0);
    assert_int_equal(fake_capture_end(beside, &s.graph), 0);
    expect_ok(tide_buffers_destroy(s.buffers));
    assert_int_equal(fake_calls("cuCtxSynchronize"), 1);
    fake_graph_destroy(s.graph);
    fake_stream_destroy(beside);
    fake_stream_destroy(s.stream);
    bench_end(&s.b);
}

/* ---- when it goes --------------------------------------------------------------------------- */

/* ---- captures that begin meanwhile ----------------------------------------------------------- */

static bool captured; /* atomic */

/* When the capture has begun, or has had time for it. */
static void *let_captured_go_on(void *unused)
{
    for (int i = 0; i < 200 && !__atomic_load_n(&captured, __ATOMIC_SEQ_CST); i++)
        usleep(1000);
    fake_hold_up(NULL);
    return unused;
}

/* A wait for all streams that has not seen the capture is over before that begins. */
static void a_capture_that_is_noted_is_ended_by_no_wait(void **unused)
{
    (void)unused;
    scene s = put_off(false);
    captured = false;
    pthread_t waiting = trim_held_up(&s, "cuCtxSynchronize"), letting;
    assert_int_equal(pthread_create(&letting, NULL, let_captured_go_on, NULL), 0);
    expect_ok(tide_capture_begin(s.b.pool));
    fake_capture_begin(s.b.stream);
    __atomic_store_n(&captured, true, __ATOMIC_SEQ_CST);
    pthread_join(letting, NULL);
    pthread_join(waiting, NULL);
    expect_order();
    assert_int_equal(fake_capture_end(s.b.stream, &s.graph), 0);
    tide_capture *capture = tide_capture_end(s.b.pool);
    assert_non_null(capture);
    expect_ok(tide_capture_drop(capture, s.b.stream));
    fake_graph_destroy(s.graph);
    bench_end(&s.b);
}

/* Somebody may be capturing just then without having told. */
static void a_new_pool_waits_for_nothing(void **unused)
{
    (void)unused;
    scene s = put_off(false);
    void *beside = fake_stream_create(0);
    fake_capture_begin(beside);
    tide_pool *pool =
        tide_pool_create(&(tide_pool_options){.device = s.b.device, .stream = s.b.stream});
    assert_non_null(pool);
    assert_int_equal(fake_calls("cuCtxSynchronize"), 0);
    assert_int_equal(fake_capture_end(beside, &s.graph), 0);
    fake_graph_destroy(s.graph);
    fake_stream_destroy(beside);
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_device_memory_trim(s.b.device, 0));
    assert_int_equal(fake_calls("cuCtxSynchronize"), 1);
    bench_end(&s.b);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_put_off),
        cmocka_unit_test(exports_are_put_off),
        cmocka_unit_test(staged_copies_are_put_off),
        cmocka_unit_test(imports_are_put_off),
        cmocka_unit_test(an_import_outlasts_a_wait_that_fails),
        cmocka_unit_test(an_import_goes_after_two_waits_that_fail),
        cmocka_unit_test(a_stream_that_is_gone_outlasts_a_wait_that_fails),
        cmocka_unit_test(what_is_put_off_outlasts_a_wait_that_fails),
        cmocka_unit_test(captures_are_put_off),
        cmocka_unit_test(a_pool_that_ends_in_a_capture_is_shut),
        cmocka_unit_test(a_buffer_that_is_not_handed_out_is_put_off),
        cmocka_unit_test(a_release_that_a_capture_overtakes_is_refused),
        cmocka_unit_test(what_pools_drew_goes_with_the_buffers),
        cmocka_unit_test(a_capture_that_is_noted_is_ended_by_no_wait),
        cmocka_unit_test(a_new_pool_waits_for_nothing),
    };
    return cmocka_run_group_tests_name("later", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Memory for other processes. The other one is this very one: the fake driver takes a handle for a foreign
 * one once it is told so. */
#include <tidepool/array.h>
#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/device_ipc.h>
#include <tidepool/device_memory.h>
#include <tidepool/dlpack.h>

#include "runtime/device/cuda/cuda.h"
#include "support.h"

enum { BYTES = 10000, BEFORE = 3, AFTER = 4 };

/* As another process, whose device this is: finds BEFORE there, leaves AFTER. */
static void peer_uses(const bench *b, tide_ipc_memory memory)
{
    fake_ipc_foreign(memory.handle);
    uint8_t *x = tide_ipc_open(b->device, &memory);
    assert_non_null(x);
    assert_ptr_equal(tide_ipc_open(b->device, &memory), x);
    assert_int_equal(fake_opened(), 2);
    expect_ok(tide_ipc_close(b->device, &memory, x)); /* one of two */
    expect(b->stream, x, BYTES, BEFORE);
    put(b->stream, x, BYTES, AFTER);
    fake_synchronise(b->stream);
    expect_ok(tide_ipc_close(b->device, &memory, x));
    expect_status(tide_ipc_close(b->device, &memory, x), TIDE_ERROR_DEVICE);
    assert_int_equal(fake_opened(), 0);
}

/* What is open keeps the device, until it is closed: a lost one, too, where nothing can be ended. */
static void what_is_open_holds_the_device(void **unused)
{
    (void)unused;
    for (int lost = 0; lost < 2; lost++) {
        bench b = bench_start(10);
        tide_buffers *buffers = bench_buffers(&b, TIDE_BUFFER_IPC);
        tide_buffer buffer = tide_buffer_acquire(buffers, BYTES);
        tide_ipc_memory memory;
        expect_ok(tide_ipc_export_buffer(buffers, buffer, &memory));
        fake_ipc_foreign(memory.handle);
        void *x = tide_ipc_open(b.device, &memory);
        assert_non_null(x);
        expect_ok(tide_buffer_release(buffers, buffer));
        expect_ok(tide_buffers_destroy(buffers));
        if (lost != 0)
            fake_lose(0);
        assert_int_equal(tide_pool_wait(b.pool), lost != 0 ? TIDE_ERROR_DEVICE : TIDE_OK);
        expect_ok(tide_pool_destroy(b.pool));
        expect_status(tide_device_close(b.device), TIDE_ERROR_STATE);
        expect_ok(tide_ipc_close(b.device, &memory, x));
        expect_ok(tide_device_close(b.device));
        expect_status(tide_ipc_close(b.device, &memory, x), TIDE_ERROR_DEVICE);
        expect_said("closed");
        fake_stream_destroy(b.stream);
    }
}

/* ---- buffers and slots ----------------------------------------------------------------------- */

static void another_process_uses_a_buffer(void **unused)
{
    (void)unused;
    bench b = bench_start(1);
    assert_true(info_of(b.device).exports);
    tide_buffers *buffers = bench_buffers(&b, TIDE_BUFFER_IPC);
    for (int i = 0; i < 2; i++) { /* the second is cached memory */
        tide_buffer buffer = tide_buffer_acquire(buffers, BYTES);
        uint8_t *x = tide_buffer_pointer(buffers, buffer);
        tide_ipc_memory memory;
        put(b.stream, x, BYTES, BEFORE);
        expect_ok(tide_ipc_export_buffer(buffers, buffer, &memory));
        assert_int_equal(memory.offset, 0);
        assert_int_equal(memory.bytes, tide_buffer_bytes(buffers, buffer));
        fake_synchronise(b.stream);
        peer_uses(&b, memory);
        expect(b.stream, x, BYTES, AFTER);
        expect_ok(tide_buffer_release(buffers, buffer));
    }
    assert_true(memory_of(b.device).bytes_held >= BYTES);
    assert_int_equal(fake_calls("cuMemAlloc"), 1);
    assert_int_equal(fake_calls("cuMemAllocFromPoolAsync"), 0);
    fake_synchronise_all();
    expect_ok(tide_buffers_destroy(buffers));
    assert_int_equal(fake_calls("cuMemFree"), 1);
    bench_end(&b);
}

static void another_process_uses_a_part_of_an_array(void **unused)
{
    (void)unused;
    bench b = bench_start(2);
    tide_buffers *buffers = bench_buffers(&b, TIDE_BUFFER_IPC);
    tide_pool *pool = tide_pool_create(
        &(tide_pool_options){.device = b.device, .stream = b.stream, .buffers = buffers});
    tide_capture *capture;
    {
        TIDE_SCOPE(pool);
        tide_ipc_memory before, memory;
        tide_array *array = tide_array_acquire(pool, TIDE_U8, 1, (const int64_t[]){3 * BYTES});
        uint8_t *gone = NULL, *x = array->tensor.data;
        {
            TIDE_SCOPE(pool);
            gone = tide_acquire(pool, uint8_t, BYTES);
        }
        put(b.stream, x, 3 * BYTES, 1);
        put(b.stream, x + BYTES, BYTES, BEFORE);
        expect_ok(tide_ipc_export(pool, x + BYTES, &before));
        tide_dl_managed *managed = tide_array_export(pool, array);
        assert_non_null(managed);
        expect_ok(tide_capture_begin(pool));
        capture = tide_capture_end(pool); /* what a consumer holds, or a graph, is live as before */
        expect_ok(tide_ipc_export(pool, x + BYTES, &memory));
        assert_memory_equal(&memory, &before, sizeof memory);
        assert_int_equal(memory.offset, BYTES);
        assert_true(memory.bytes >= 2 * BYTES);
        expect_ok(tide_pool_wait(pool));
        peer_uses(&b, memory);
        expect(b.stream, x, BYTES, 1);
        expect(b.stream, x + BYTES, BYTES, AFTER);
        expect(b.stream, x + 2 * BYTES, BYTES, 1);
        expect_status(tide_ipc_export(pool, gone, &memory), TIDE_ERROR_ARGUMENT);
        expect_said("no live array");
        fake_synchronise(b.stream);
        managed->deleter(managed);
    }
    expect_ok(tide_capture_drop(capture, b.stream));
    expect_ok(tide_pool_destroy(pool));
    expect_ok(tide_buffers_destroy(buffers));
    bench_end(&b);
}

/* ---- what may not be ------------------------------------------------------------------------- */

static void what_cannot_be_exported_is_refused(void **unused)
{
    (void)unused;
    bench b = bench_start(6);
    tide_ipc_memory memory = {.offset = 77};
    tide_buffers *plain =
        tide_buffers_create(b.device, &(tide_buffers_options){.stream = b.stream});
    tide_buffer buffer = tide_buffer_acquire(plain, BYTES);
    expect_status(tide_ipc_export_buffer(plain, buffer, &memory), TIDE_ERROR_STATE);
    expect_said("TIDE_BUFFER_IPC");
    expect_ok(tide_buffer_release(plain, buffer));
    expect_status(tide_ipc_export_buffer(plain, buffer, &memory), TIDE_ERROR_STALE);
    expect_ok(tide_buffers_destroy(plain));
    {
        TIDE_SCOPE(b.pool);
        uint8_t *x = tide_acquire(b.pool, uint8_t, BYTES);
        expect_status(tide_ipc_export(b.pool, x, &memory), TIDE_ERROR_STATE);
        expect_said("TIDE_BUFFER_IPC");
        expect_ok(tide_capture_begin(b.pool));
        expect_status(tide_ipc_export(b.pool, x, &memory), TIDE_ERROR_STATE);
        expect_said("capture");
    }
    tide_capture *capture = tide_capture_end(b.pool);
    expect_ok(tide_capture_drop(capture, b.stream));
    expect_status(tide_ipc_export(NULL, &memory, &memory), TIDE_ERROR_ARGUMENT);
    expect_status(tide_ipc_export_buffer(NULL, buffer, &memory), TIDE_ERROR_ARGUMENT);
    assert_int_equal(memory.offset, 77); /* nothing was written */
    {
        TIDE_SCOPE(tide_pool_local());
        void *x = tide_acquire(tide_pool_local(), uint8_t, BYTES);
        expect_status(tide_ipc_export(tide_pool_local(), x, &memory), TIDE_ERROR_DEVICE);
    }
    assert_null(tide_buffers_create(NULL, &(tide_buffers_options){.flags = TIDE_BUFFER_IPC}));
    assert_int_equal(tide_error_status(), TIDE_ERROR_DEVICE);
    assert_null(tide_ipc_open(tide_device_open("host"), &memory));
    assert_int_equal(tide_error_status(), TIDE_ERROR_DEVICE);
    bench_end(&b);
}

static void what_cannot_be_opened_holds_nothing(void **unused)
{
    (void)unused;
    bench b = bench_start(7);
    tide_buffers *buffers = bench_buffers(&b, TIDE_BUFFER_IPC);
    tide_buffer buffer = tide_buffer_acquire(buffers, BYTES);
    tide_ipc_memory memory, later, nowhere = {.offset = 0};
    expect_ok(tide_ipc_export_buffer(buffers, buffer, &memory));
    assert_null(tide_ipc_open(b.device, &memory)); /* this very process */
    assert_int_equal(tide_error_status(), TIDE_ERROR_DEVICE);
    later = memory;
    later.growth_[0] = 1;
    assert_null(tide_ipc_open(b.device, &later));
    assert_int_equal(tide_error_status(), TIDE_ERROR_ARGUMENT);
    assert_null(tide_ipc_open(NULL, &memory));
    assert_null(tide_ipc_open(b.device, NULL));
    expect_status(tide_ipc_close(b.device, &memory, NULL), TIDE_ERROR_ARGUMENT);
    expect_status(tide_ipc_close(b.device, &nowhere, &later), TIDE_ERROR_DEVICE);
    fake_fail("cuIpcGetMemHandle", 1, TIDE_CU_INVALID_VALUE, false);
    expect_status(tide_ipc_export_buffer(buffers, buffer, &memory), TIDE_ERROR_DEVICE);
    expect_ok(tide_buffer_release(buffers, buffer));
    fake_fail("cuMemAlloc", 1, TIDE_CU_OUT_OF_MEMORY, true);
    assert_int_equal(tide_buffer_acquire(buffers, 100 * BYTES).generation, 0);
    assert_int_equal(tide_error_status(), TIDE_ERROR_MEMORY);
    expect_ok(tide_buffers_destroy(buffers));
    bench_end(&b); /* the device closes: nobody holds it */
}

static void a_device_without_it_says_so(void **unused)
{
    (void)unused;
    bench b = bench_start_without(8, FAKE_IPC);
    assert_false(info_of(b.device).exports);
    assert_null(tide_buffers_shared(b.device, TIDE_BUFFER_IPC));
    assert_int_equal(tide_error_status(), TIDE_ERROR_DEVICE);
    expect_said("no memory for other processes");
    bench_end(&b);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_process_uses_a_buffer),
        cmocka_unit_test(what_is_open_holds_the_device),
        cmocka_unit_test(another_process_uses_a_part_of_an_array),
        cmocka_unit_test(what_cannot_be_exported_is_refused),
        cmocka_unit_test(what_cannot_be_opened_holds_nothing),
        cmocka_unit_test(a_device_without_it_says_so),
    };
    return cmocka_run_group_tests_name("processes", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The scenarios that need no fake: on whatever driver there is, a real one with a GPU behind it or
 * the fake one (TIDEPOOL_CUDA_DRIVER). Work is the driver's fills and copies, large enough to be
 * in flight when the host goes on. Without a driver or a device the test is skipped, with status
 * 77. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/device_ipc.h>
#include <tidepool/dynamic.h>
#include <tidepool/upkeep.h>

#include "support.h"

#include "beside.h"
#include "runtime/device/cuda/cuda.h"

enum { LARGE = 1 << 22, SKIPPED = 77 };

static tide_device *device;
static beside_driver beside;
static tide_cu_stream own, other;

/* ---- the driver ----------------------------------------------------------------------------- */

static bool find(void)
{
    const char *path = getenv("TIDEPOOL_CUDA_DRIVER");
    void *library = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW);
    void *symbol = library != NULL ? dlsym(library, "cuGetProcAddress_v2") : NULL;
    if (symbol == NULL)
        return false;
    tide_cu_get_proc *get_proc = (tide_cu_get_proc *)symbol;
    int status, failed = 0;
#define X(name, version, arguments)                                                               \
    failed |= get_proc(#name, (void **)(void *)&beside.name, version, TIDE_CU_PROC_LEGACY_STREAM, \
                       &status);
    BESIDE_ENTRIES(X)
#undef X
    return failed == 0;
}

static tide_device_information facts(void)
{
    tide_device_information info;
    expect_ok(tide_device_info(device, &info));
    return info;
}

#define expect_cuda(call) assert_int_equal(call, TIDE_CU_SUCCESS)

static tide_pool *pool_on(tide_cu_stream stream)
{
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.device = device, .stream = stream});
    if (pool == NULL)
        fail_msg("%s", tide_error_message());
    return pool;
}

static void set(tide_cu_stream stream, void *data, uint8_t value, size_t bytes)
{
    expect_cuda(tide_cu.cuMemsetD8Async((tide_cu_address)(uintptr_t)data, value, bytes, stream));
}

static void move(tide_cu_stream stream, void *to, const void *from, size_t bytes)
{
    expect_cuda(tide_cu.cuMemcpyAsync((tide_cu_address)(uintptr_t)to,
                                      (tide_cu_address)(uintptr_t)from, bytes, stream));
}

/* All bytes of the result are this value. */
static void look(tide_pool *pool, const uint8_t *data, size_t bytes, uint8_t value)
{
    uint8_t *seen = malloc(bytes);
    assert_non_null(seen);
    expect_ok(tide_download(pool, seen, data, bytes));
    size_t wrong = 0;
    for (size_t i = 0; i < bytes; i++)
        wrong += seen[i] != value;
    free(seen);
    assert_int_equal(wrong, 0);
}

/* ---- scenarios ------------------------------------------------------------------------------ */

static void a_warm_pool_calls_no_driver(void **state)
{
    (void)state;
    tide_pool *pool = pool_on(own);
    void *first = NULL;
    for (int i = 0; i < 100; i++) {
        TIDE_SCOPE(pool);
        void *x = tide_acquire(pool, float, 1000 - (size_t)i * 10);
        first = first != NULL ? first : x;
        assert_ptr_equal(x, first);
    }
    assert_int_equal(facts().allocations, 1);
    assert_int_equal(facts().events, 0);
    expect_ok(tide_pool_destroy(pool));
}

static void re_use_on_the_pools_stream_is_in_order(void **state)
{
    (void)state;
    enum { ROUNDS = 64 };
    tide_pool *pool = pool_on(own);
    uint8_t *results = tide_acquire(pool, uint8_t, ROUNDS * 64);
    for (int i = 0; i < ROUNDS; i++) {
        TIDE_SCOPE(pool);
        uint8_t *x = tide_acquire(pool, uint8_t, LARGE);
        set(own, x, (uint8_t)i, LARGE);
        move(own, results + i * 64, x + LARGE - 64, 64);
    }
    for (int i = 0; i < ROUNDS; i++)
        look(pool, results + i * 64, 64, (uint8_t)i);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

static void re_use_on_declared_streams_is_in_order(void **state)
{
    (void)state;
    enum { ROUNDS = 64 };
    tide_pool *pool = pool_on(own);
    uint8_t *results = tide_acquire(pool, uint8_t, ROUNDS * 64);
    uint64_t events = facts().events;
    for (int i = 0; i < ROUNDS; i++) {
        TIDE_SCOPE(pool);
        uint8_t *x = tide_acquire(pool, uint8_t, LARGE);
        tide_cu_stream stream = i % 2 == 0 ? other : own;
        expect_ok(tide_pool_use_on(pool, other));
        set(stream, x, (uint8_t)i, LARGE);
        move(stream, results + i * 64, x + LARGE - 64, 64);
    }
    assert_in_range(facts().events - events, 0, 2 * ROUNDS); /* one each way at most */
    for (int i = 0; i < ROUNDS; i++)
        look(pool, results + i * 64, 64, (uint8_t)i);
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

static void work_to_capture(tide_pool *pool, uint8_t *result)
{
    for (int i = 0; i < 4; i++) {
        TIDE_SCOPE(pool);
        uint8_t *x = tide_acquire(pool, uint8_t, LARGE);
        if (i == 2)
            expect_ok(tide_pool_use_on(pool, other));
        set(i == 2 ? other : own, x, (uint8_t)(i + 1), LARGE);
        move(i == 2 ? other : own, result + i * 64, x + LARGE - 64, 64);
    }
}

static void captured_rewinds_replay(void **state)
{
    (void)state;
    tide_pool *pool = pool_on(own);
    uint8_t *result = tide_acquire(pool, uint8_t, 256);
    beside_graph graph;
    beside_exec exec;
    work_to_capture(pool, result); /* warm */
    expect_ok(tide_pool_wait(pool));
    expect_ok(tide_capture_begin(pool));
    expect_cuda(beside.cuStreamBeginCapture(own, BESIDE_CAPTURE_GLOBAL));
    work_to_capture(pool, result);
    assert_non_null(tide_acquire(pool, double, LARGE)); /* new memory */
    expect_cuda(beside.cuStreamEndCapture(own, &graph));
    tide_capture *capture = tide_capture_end(pool);
    assert_non_null(capture);
    expect_cuda(beside.cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int round = 0; round < 5; round++) {
        set(own, result, 0xEE, 256);
        expect_cuda(beside.cuGraphLaunch(exec, own));
        for (int i = 0; i < 4; i++)
            look(pool, result + i * 64, 64, (uint8_t)(i + 1));
    }
    expect_cuda(beside.cuGraphExecDestroy(exec));
    expect_cuda(beside.cuGraphDestroy(graph));
    expect_ok(tide_capture_drop(capture, own));
    expect_ok(tide_pool_reset(pool));
    expect_ok(tide_pool_destroy(pool));
}

/* A graph that sets an array of so many bytes and shows its last 64. */
static void capture_sized(tide_pool *pool, size_t bytes, uint8_t value, uint8_t *result,
                          beside_graph *graph, beside_exec *exec)
{
    expect_cuda(beside.cuStreamBeginCapture(own, BESIDE_CAPTURE_GLOBAL));
    {
        TIDE_SCOPE(pool);
        uint8_t *x = tide_acquire(pool, uint8_t, bytes);
        assert_non_null(x);
        set(own, x, value, bytes);
        move(own, result, x + bytes - 64, 64);
    }
    expect_cuda(beside.cuStreamEndCapture(own, graph));
    expect_cuda(beside.cuGraphInstantiateWithFlags(exec, *graph, 0));
}

static void graphs_of_one_capture_share_memory_on_two_streams(void **state)
{
    (void)state;
    enum { GRAPHS = 3 };
    beside_graph graphs[GRAPHS];
    beside_exec execs[GRAPHS];
    tide_pool *results = pool_on(own), *pool = pool_on(own);
    uint8_t *result = tide_acquire(results, uint8_t, 64 * GRAPHS);
    expect_ok(tide_capture_begin(pool));
    for (size_t i = 0; i < GRAPHS; i++)
        capture_sized(pool, (size_t)LARGE >> i, (uint8_t)(i + 1), result + 64 * i, &graphs[i],
                      &execs[i]);
    tide_pool_statistics now;
    expect_ok(tide_pool_stats(pool, &now));
    assert_in_range(now.bytes_held, LARGE, LARGE + LARGE / 4);
    tide_capture *capture = tide_capture_end(pool);
    for (size_t i = 0; i < 60; i++) {
        tide_cu_stream stream = i % 2 == 0 ? own : other;
        expect_ok(tide_capture_use_on(capture, stream));
        expect_cuda(beside.cuGraphLaunch(execs[i * 7 % GRAPHS], stream));
    }
    expect_ok(tide_capture_use_on(capture, own));
    for (size_t i = 0; i < GRAPHS; i++) {
        look(results, result + 64 * i, 64, (uint8_t)(i + 1));
        expect_cuda(beside.cuGraphExecDestroy(execs[i]));
        expect_cuda(beside.cuGraphDestroy(graphs[i]));
    }
    expect_ok(tide_capture_drop(capture, own));
    expect_status(tide_capture_use_on(capture, own), TIDE_ERROR_STALE);
    expect_ok(tide_pool_reset(results));
    expect_ok(tide_pool_destroy(results));
    expect_ok(tide_pool_destroy(pool));
}

static void fill_and_look(tide_pool *pool, tide_type type, const void *value, size_t n)
{
    uint8_t seen[12000];
    size_t size = tide_type_size(type);
    void *data = tide_fill_type(pool, type, n, value);
    assert_non_null(data);
    assert_true(n * size <= sizeof seen);
    expect_ok(tide_download(pool, seen, data, n * size));
    for (size_t i = 0; i < n; i++)
        assert_memory_equal(seen + i * size, value, size);
}

struct odd {
    uint8_t bytes[3];
};

struct large {
    uint32_t words[11];
};

static void values_of_all_types_are_filled(void **state)
{
    (void)state;
    const tide_f16 f16 = {0x3E01};
    const tide_bf16 bf16 = {0x4049};
    const double f64 = 1.25, c128[2] = {3, -4};
    const struct odd odd = {{1, 2, 3}};
    const struct large large = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}};
    tide_pool *pool = pool_on(own);
    for (size_t n = 1; n < 200; n += 66) {
        TIDE_SCOPE(pool);
        fill_and_look(pool, TIDE_F16, &f16, n);
        fill_and_look(pool, TIDE_BF16, &bf16, n);
        fill_and_look(pool, TIDE_F64, &f64, n);
        fill_and_look(pool, TIDE_C128, c128, n);
        fill_and_look(pool, tide_type_of(struct odd), &odd, n);
        fill_and_look(pool, tide_type_of(struct large), &large, n);
    }
    expect_ok(tide_pool_destroy(pool));
}

static void too_much_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    tide_pool *pool = pool_on(own);
    {
        TIDE_SCOPE(pool);
        uint8_t *x = tide_acquire(pool, uint8_t, 1000);
        set(own, x, 9, 1000);
        assert_null(tide_acquire(pool, uint8_t, (size_t)1 << 46));
        expect_status(tide_error_status(), TIDE_ERROR_MEMORY);
        look(pool, x, 1000, 9);
    }
    expect_ok(tide_pool_check(pool));
    expect_ok(tide_pool_destroy(pool));
}

static void the_default_stream_will_do(void **state)
{
    (void)state;
    tide_pool *pool = pool_on(NULL);
    for (int i = 0; i < 10; i++) {
        TIDE_SCOPE(pool);
        uint8_t *x = tide_zeros(pool, uint8_t, 5000);
        look(pool, x, 5000, 0);
    }
    expect_ok(tide_pool_destroy(pool));
}

static void streams_come_and_go(void **state)
{
    (void)state;
    tide_pool *pool = pool_on(own);
    for (int i = 0; i < 20; i++) {
        tide_cu_stream stream;
        expect_cuda(tide_cu.cuStreamCreate(&stream, BESIDE_NON_BLOCKING));
        {
            TIDE_SCOPE(pool);
            uint8_t *x = tide_acquire(pool, uint8_t, LARGE);
            expect_ok(tide_pool_use_on(pool, stream));
            set(stream, x, (uint8_t)i, LARGE);
        }
        expect_cuda(tide_cu.cuStreamDestroy(stream)); /* its work goes on */
    }
    {
        TIDE_FRAME(pool, (uint8_t, x, LARGE));
        set(own, x, 77, LARGE);
        look(pool, x, LARGE, 77);
    }
    expect_ok(tide_pool_destroy(pool));
}

/* Each test with the context of the device current, as a program would have it. */
static int enter(void **state)
{
    (void)state;
    device = tide_device_open("cuda:0");
    if (device == NULL || tide_cu.cuCtxPushCurrent(tide_device_context(device)) != TIDE_CU_SUCCESS)
        return -1;
    return tide_cu.cuStreamCreate(&own, BESIDE_NON_BLOCKING) != TIDE_CU_SUCCESS ||
           tide_cu.cuStreamCreate(&other, BESIDE_NON_BLOCKING) != TIDE_CU_SUCCESS;
}

static int leave(void **state)
{
    (void)state;
    tide_cu_context popped;
    tide_cu_result result = tide_cu.cuCtxSynchronize();
    result |= tide_cu.cuStreamDestroy(own) | tide_cu.cuStreamDestroy(other);
    result |= tide_cu.cuCtxPopCurrent(&popped);
    return result != TIDE_CU_SUCCESS || tide_device_close(device) != TIDE_OK;
}

/* ---- kinds of memory ------------------------------------------------------------------------ */

static tide_buffers *buffers_of(uint32_t kind)
{
    tide_buffers *made =
        tide_buffers_create(device, &(tide_buffers_options){.flags = kind, .stream = own});
    if (made == NULL)
        fail_msg("%s", tide_error_message());
    return made;
}

static void the_host_and_the_device_use_managed_memory(void **state)
{
    (void)state;
    if (!facts().managed)
        skip();
    tide_buffers *buffers = buffers_of(TIDE_BUFFER_MANAGED);
    for (uint8_t i = 1; i < 10; i++) {
        tide_buffer buffer = tide_buffer_acquire(buffers, LARGE);
        uint8_t *x = tide_buffer_pointer(buffers, buffer);
        assert_non_null(x);
        expect_cuda(tide_cu.cuStreamSynchronize(own)); /* the device may have it for itself */
        memset(x, i, LARGE);
        set(own, x + LARGE / 2, (uint8_t)(i + 100), LARGE / 2);
        expect_cuda(tide_cu.cuStreamSynchronize(own));
        assert_true(x[0] == i && x[LARGE / 2 - 1] == i);
        assert_true(x[LARGE / 2] == i + 100 && x[LARGE - 1] == i + 100);
        expect_ok(tide_buffer_release(buffers, buffer));
    }
    expect_ok(tide_buffers_destroy(buffers));
}

/* What the driver says of its rules: whole allocations, for other processes. */
static void memory_is_exported_but_not_to_its_own_process(void **state)
{
    (void)state;
    if (!facts().exports)
        skip();
    tide_buffers *buffers = buffers_of(TIDE_BUFFER_IPC), *plain = buffers_of(TIDE_BUFFER_DEVICE);
    tide_buffer one = tide_buffer_acquire(buffers, LARGE), none = tide_buffer_acquire(plain, LARGE);
    tide_ipc_memory memory;
    expect_ok(tide_ipc_export_buffer(buffers, one, &memory));
    assert_true(memory.offset == 0 && memory.bytes >= LARGE);
    assert_null(tide_ipc_open(device, &memory));
    assert_int_equal(tide_error_status(), TIDE_ERROR_DEVICE);
    assert_false(facts().lost);
    expect_status(tide_ipc_export_buffer(plain, none, &memory), TIDE_ERROR_STATE);
    expect_ok(tide_buffer_release(buffers, one));
    expect_ok(tide_buffer_release(plain, none));
    expect_ok(tide_buffers_destroy(buffers));
    expect_ok(tide_buffers_destroy(plain));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_warm_pool_calls_no_driver),
        TEST(re_use_on_the_pools_stream_is_in_order),
        TEST(re_use_on_declared_streams_is_in_order),
        TEST(captured_rewinds_replay),
        TEST(graphs_of_one_capture_share_memory_on_two_streams),
        TEST(values_of_all_types_are_filled),
        TEST(too_much_is_refused_and_changes_nothing),
        TEST(the_default_stream_will_do),
        TEST(streams_come_and_go),
        TEST(the_host_and_the_device_use_managed_memory),
        TEST(memory_is_exported_but_not_to_its_own_process),
    };
    device = tide_device_open("cuda:0");
    if (device == NULL || !find()) {
        printf("skipped: %s\n", tide_error_message());
        return SKIPPED;
    }
    printf("on %s\n", facts().description);
    if (tide_device_close(device) != TIDE_OK)
        return EXIT_FAILURE;
    return cmocka_run_group_tests_name("driver", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* What a real driver answers beside a capture, replayed against ours: each row of
 * ../facts/captures.tsv is a call and its stream, each of its columns a way to capture and to call.
 *
 * Columns, from the slowest to the fastest: the captured stream is non-blocking, or blocking; the
 * call comes from the thread that captures, or another; the thread's mode is as it was, or relaxed;
 * the capture's mode is global, the thread's, or relaxed. A number is the result; "!" says that the
 * capture was invalid afterwards. Rows with "*" are of calls that the library does not make. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>

#include "support.h"

#include "runtime/device/cuda/cuda.h"

enum { WAYS = 24, BYTES = 256 };

/* The driver as it is found by a call. */
typedef struct scene {
    tide_cu_context context;
    tide_cu_pool pool, spare;
    tide_cu_stream streams[128]; /* by letter: S captured, J joined, N and B others, L, P */
    tide_cu_stream another;
    tide_cu_event outside, captured, fresh, unused;
    tide_cu_address stream_memory, plain, managed;
    void *pinned;
    tide_cu_module module, loaded; /* loaded: by the call that is asked */
    tide_cu_function function;
} scene;

typedef int ask(scene *s, tide_cu_stream stream);

static const char image[] = "fake"; /* with one kernel, "bump" */

#define ASK(name, ...)                               \
    static int name(scene *s, tide_cu_stream stream) \
    {                                                \
        (void)s, (void)stream;                       \
        __VA_ARGS__                                  \
    }
ASK(primary_retain, tide_cu_context got; (void)tide_cu.cuDevicePrimaryCtxRetain(&got, 0);
    return tide_cu.cuDevicePrimaryCtxRelease(0);)
ASK(current, tide_cu_context got; return tide_cu.cuCtxGetCurrent(&got);)
ASK(push, tide_cu_context got; (void)tide_cu.cuCtxPushCurrent(s->context);
    return tide_cu.cuCtxPopCurrent(&got);)
ASK(attribute, int got;
    return tide_cu.cuDeviceGetAttribute(&got, TIDE_CU_DEVICE_POOLS_SUPPORTED, 0);)
ASK(name_of, char got[64]; return tide_cu.cuDeviceGetName(got, sizeof got, 0);)
ASK(total, size_t got; return tide_cu.cuDeviceTotalMem(&got, 0);)
ASK(error_words, const char *got; return tide_cu.cuGetErrorString(2, &got);)
ASK(context_wait, return tide_cu.cuCtxSynchronize();)
ASK(pool_create, tide_cu_pool got;
    const tide_cu_pool_properties wanted = {.allocation = TIDE_CU_ALLOCATION_PINNED,
                                            .location = {.type = TIDE_CU_LOCATION_DEVICE, .id = 0}};
    return tide_cu.cuMemPoolCreate(&got, &wanted);)
ASK(pool_destroy, return tide_cu.cuMemPoolDestroy(s->spare);)
ASK(pool_set, uint64_t all = UINT64_MAX;
    return tide_cu.cuMemPoolSetAttribute(s->pool, TIDE_CU_POOL_RELEASE_THRESHOLD, &all);)
ASK(pool_get, uint64_t got;
    return tide_cu.cuMemPoolGetAttribute(s->pool, TIDE_CU_POOL_RESERVED, &got);)
ASK(pool_trim, return tide_cu.cuMemPoolTrimTo(s->pool, 0);)
ASK(alloc, tide_cu_address got; return tide_cu.cuMemAlloc(&got, BYTES);)
ASK(free_plain, return tide_cu.cuMemFree(s->plain);)
ASK(alloc_managed, tide_cu_address got;
    return tide_cu.cuMemAllocManaged(&got, BYTES, TIDE_CU_ATTACH_GLOBAL);)
ASK(free_managed, return tide_cu.cuMemFree(s->managed);)
ASK(host_alloc, void *got; return tide_cu.cuMemHostAlloc(&got, BYTES, TIDE_CU_HOST_PORTABLE);)
ASK(host_free, return tide_cu.cuMemFreeHost(s->pinned);)
ASK(ipc, tide_cu_ipc_handle got; return tide_cu.cuIpcGetMemHandle(&got, s->plain);)
ASK(event_create, tide_cu_event got;
    return tide_cu.cuEventCreate(&got, TIDE_CU_EVENT_DISABLE_TIMING);)
ASK(event_destroy, return tide_cu.cuEventDestroy(s->unused);)
ASK(query_outside, return tide_cu.cuEventQuery(s->outside);)
ASK(query_captured, return tide_cu.cuEventQuery(s->captured);)
ASK(wait_outside, return tide_cu.cuEventSynchronize(s->outside);)
ASK(wait_captured, return tide_cu.cuEventSynchronize(s->captured);)
ASK(create_apart, tide_cu_stream got;
    return tide_cu.cuStreamCreate(&got, TIDE_CU_STREAM_NON_BLOCKING);)
ASK(create_blocking, tide_cu_stream got; return tide_cu.cuStreamCreate(&got, 0);)
ASK(destroy, return tide_cu.cuStreamDestroy(s->another);)
ASK(exchange, int mode = 0; (void)tide_cu.cuThreadExchangeStreamCaptureMode(&mode);
    return tide_cu.cuThreadExchangeStreamCaptureMode(&mode);)
ASK(load, return tide_cu.cuModuleLoadDataEx(&s->loaded, image, 0, NULL, NULL);)
ASK(unload, return tide_cu.cuModuleUnload(s->module);)
ASK(function, tide_cu_function got; return tide_cu.cuModuleGetFunction(&got, s->module, "bump");)
ASK(is_capturing, int got; return tide_cu.cuStreamIsCapturing(stream, &got);)
ASK(stream_id, unsigned long long got; return tide_cu.cuStreamGetId(stream, &got);)
ASK(stream_context, tide_cu_context got; return tide_cu.cuStreamGetCtx(stream, &got);)
ASK(stream_query, return tide_cu.cuStreamQuery(stream);)
ASK(stream_wait, return tide_cu.cuStreamSynchronize(stream);)
ASK(fill, return tide_cu.cuMemsetD8Async(s->stream_memory, 0, BYTES, stream);)
ASK(copy, return tide_cu.cuMemcpyAsync(s->stream_memory, s->plain, BYTES, stream);)
ASK(upload, return tide_cu.cuMemcpyAsync(s->stream_memory, (tide_cu_address)(uintptr_t)s->pinned,
                                         BYTES, stream);)
ASK(launch, unsigned by = 1; void *values[] = {&s->stream_memory, &by};
    return tide_cu.cuLaunchKernel(s->function, 1, 1, 1, 1, 1, 1, 0, stream, values, NULL);)
ASK(pool_alloc, tide_cu_address got;
    return tide_cu.cuMemAllocFromPoolAsync(&got, BYTES, s->pool, stream);)
ASK(pool_free, return tide_cu.cuMemFreeAsync(s->stream_memory, stream);)
ASK(record_new, return tide_cu.cuEventRecord(s->fresh, stream);)
ASK(record_again, return tide_cu.cuEventRecord(s->outside, stream);)
ASK(follow_outside, return tide_cu.cuStreamWaitEvent(stream, s->outside, 0);)
ASK(follow_captured, return tide_cu.cuStreamWaitEvent(stream, s->captured, 0);)

/* The driver is not asked the attribute that the library does not ask for any more. */
static const struct {
    const char *name;
    ask *ask;
} asks[] = {{"cuDevicePrimaryCtxRetain+Release", primary_retain},
            {"cuCtxGetCurrent", current},
            {"cuCtxPushCurrent+Pop", push},
            {"cuDeviceGetAttribute", attribute},
            {"cuDeviceGetName", name_of},
            {"cuDeviceTotalMem", total},
            {"cuGetErrorString", error_words},
            {"cuCtxSynchronize", context_wait},
            {"cuMemPoolCreate", pool_create},
            {"cuMemPoolDestroy", pool_destroy},
            {"cuMemPoolSetAttribute", pool_set},
            {"cuMemPoolGetAttribute", pool_get},
            {"cuMemPoolTrimTo", pool_trim},
            {"cuMemAlloc", alloc},
            {"cuMemFree", free_plain},
            {"cuMemAllocManaged", alloc_managed},
            {"cuMemFree(managed)", free_managed},
            {"cuMemHostAlloc", host_alloc},
            {"cuMemFreeHost", host_free},
            {"cuIpcGetMemHandle", ipc},
            {"cuEventCreate", event_create},
            {"cuEventDestroy", event_destroy},
            {"cuEventQuery(outside)", query_outside},
            {"cuEventQuery(captured)", query_captured},
            {"cuEventSynchronize(outside)", wait_outside},
            {"cuEventSynchronize(captured)", wait_captured},
            {"cuStreamCreate(non-blocking)", create_apart},
            {"cuStreamCreate(blocking)", create_blocking},
            {"cuStreamDestroy(another)", destroy},
            {"cuThreadExchangeStreamCaptureMode", exchange},
            {"cuModuleLoadDataEx", load},
            {"cuModuleUnload", unload},
            {"cuModuleGetFunction", function},
            {"cuStreamIsCapturing", is_capturing},
            {"cuStreamGetId", stream_id},
            {"cuStreamGetCtx", stream_context},
            {"cuStreamQuery*", stream_query},
            {"cuStreamSynchronize", stream_wait},
            {"cuMemsetD8Async", fill},
            {"cuMemcpyAsync(device)", copy},
            {"cuMemcpyAsync(pinned up)", upload},
            {"cuLaunchKernel", launch},
            {"cuLaunchKernel(first of its module)", launch},
            {"cuMemAllocFromPoolAsync", pool_alloc},
            {"cuMemFreeAsync", pool_free},
            {"cuEventRecord(new event)", record_new},
            {"cuEventRecord(used before)", record_again},
            {"cuStreamWaitEvent(outside)", follow_outside},
            {"cuStreamWaitEvent(captured)", follow_captured}};

/* Rows of calls that the library does not make. */
static const char *const unused[] = {
    "cuPointerGetAttribute(type)", "cuPointerGetAttribute(type of malloc)",
    "cuPointerGetAttribute(start)", "cuPointerGetAttribute(bytes)", "cuStreamGetCaptureInfo"};

/* ---- one cell ------------------------------------------------------------------------------- */

#define DO(call) assert_int_equal(tide_cu.call, 0)

static void set_memory(scene *s)
{
    const tide_cu_pool_properties wanted = {.allocation = TIDE_CU_ALLOCATION_PINNED,
                                            .location = {.type = TIDE_CU_LOCATION_DEVICE}};
    DO(cuMemPoolCreate(&s->pool, &wanted));
    DO(cuMemPoolCreate(&s->spare, &wanted));
    DO(cuMemAllocFromPoolAsync(&s->stream_memory, BYTES, s->pool, s->streams['N']));
    DO(cuStreamSynchronize(s->streams['N']));
    DO(cuMemAlloc(&s->plain, BYTES));
    DO(cuMemAllocManaged(&s->managed, BYTES, TIDE_CU_ATTACH_GLOBAL));
    DO(cuMemHostAlloc(&s->pinned, BYTES, TIDE_CU_HOST_PORTABLE));
}

static void set_events(scene *s)
{
    tide_cu_event *const all[] = {&s->outside, &s->captured, &s->fresh, &s->unused};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        DO(cuEventCreate(all[i], TIDE_CU_EVENT_DISABLE_TIMING));
    DO(cuEventRecord(s->outside, s->streams['N']));
    DO(cuEventSynchronize(s->outside));
}

static scene set_up(bool blocking, int mode)
{
    scene s = {0};
    fake_reset(1, 1);
    DO(cuDevicePrimaryCtxRetain(&s.context, 0));
    DO(cuCtxPushCurrent(s.context));
    DO(cuStreamCreate(&s.streams['S'], blocking ? 0 : TIDE_CU_STREAM_NON_BLOCKING));
    DO(cuStreamCreate(&s.streams['J'], TIDE_CU_STREAM_NON_BLOCKING));
    DO(cuStreamCreate(&s.streams['N'], TIDE_CU_STREAM_NON_BLOCKING));
    DO(cuStreamCreate(&s.streams['B'], 0));
    DO(cuStreamCreate(&s.another, TIDE_CU_STREAM_NON_BLOCKING));
    s.streams['L'] = (tide_cu_stream)(uintptr_t)TIDE_CU_STREAM_LEGACY;
    s.streams['P'] = (tide_cu_stream)(uintptr_t)TIDE_CU_STREAM_PER_THREAD;
    set_memory(&s);
    DO(cuModuleLoadDataEx(&s.module, image, 0, NULL, NULL));
    DO(cuModuleGetFunction(&s.function, s.module, "bump"));
    set_events(&s);
    fake_capture_begin_mode(s.streams['S'], mode);
    DO(cuEventRecord(s.captured, s.streams['S']));
    DO(cuStreamWaitEvent(s.streams['J'], s.captured, 0));
    return s;
}

typedef struct calling {
    scene *s;
    ask *ask;
    char letter;
    bool relaxed;
    int result;
} calling;

static void *call_it(void *user)
{
    calling *c = user;
    tide_cu_context popped;
    int mode = TIDE_CU_CAPTURE_RELAXED;
    DO(cuCtxPushCurrent(c->s->context));
    if (c->relaxed)
        DO(cuThreadExchangeStreamCaptureMode(&mode));
    c->result = c->ask(c->s, c->letter != '-' ? c->s->streams[(int)c->letter] : NULL);
    if (c->relaxed)
        DO(cuThreadExchangeStreamCaptureMode(&mode));
    DO(cuCtxPopCurrent(&popped));
    return NULL;
}

/* What there is in the column, as the table writes it. */
static void replay(ask *of, char letter, int way, char *got, size_t bytes)
{
    scene s = set_up(way / 12 != 0, way % 3);
    calling c = {.s = &s, .ask = of, .letter = letter, .relaxed = way / 3 % 2 != 0};
    pthread_t thread;
    tide_cu_context popped;
    int state = 0;
    if (way / 6 % 2 != 0) {
        assert_int_equal(pthread_create(&thread, NULL, call_it, &c), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    } else {
        (void)call_it(&c);
    }
    DO(cuStreamIsCapturing(s.streams['S'], &state));
    snprintf(got, bytes, "%d%s", c.result, state == 2 ? "!" : "");
    void *graph = NULL;
    if (fake_capture_end(s.streams['S'], &graph) == 0)
        fake_graph_destroy(graph);
    if (s.loaded != NULL)
        DO(cuModuleUnload(s.loaded));
    DO(cuCtxPopCurrent(&popped));
}

/* ---- the table ------------------------------------------------------------------------------ */

static ask *ask_of(const char *name)
{
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++)
        if (strcmp(asks[i].name, name) == 0)
            return asks[i].ask;
    return NULL;
}

static bool is_unused(const char *name)
{
    for (size_t i = 0; i < sizeof unused / sizeof *unused; i++)
        if (strcmp(unused[i], name) == 0)
            return true;
    return strchr(name, '*') != NULL;
}

/* How many cells differ. */
static unsigned replay_row(char *line)
{
    char *rest = NULL, *name = strtok_r(line, "\t", &rest), *letter = strtok_r(NULL, "\t", &rest);
    ask *of = ask_of(name);
    unsigned wrong = 0;
    if (of == NULL)
        assert_true(is_unused(name));
    for (int way = 0; of != NULL && way < WAYS; way++) {
        const char *wanted = strtok_r(NULL, " \n", &rest);
        char got[16];
        assert_non_null(wanted);
        replay(of, letter[0], way, got, sizeof got);
        if (strcmp(got, wanted) == 0)
            continue;
        fprintf(stderr, "%s %s, way %d: %s, and ours says %s\n", name, letter, way, wanted, got);
        wrong++;
    }
    return wrong;
}

static void test_driver_answers_as_a_real_one(void **state)
{
    (void)state;
    char line[512];
    unsigned rows = 0, wrong = 0;
    FILE *table = fopen(FACTS, "r");
    assert_non_null(table);
    for (; fgets(line, sizeof line, table) != NULL; rows++)
        wrong += replay_row(line);
    fclose(table);
    assert_int_equal(rows, 158);
    assert_int_equal(wrong, 0);
}

static int load_driver(void **state)
{
    (void)state;
    tide_cuda_driver_set(FAKE_CUDA);
    return tide_cuda_load() == TIDE_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_driver_answers_as_a_real_one)};
    return cmocka_run_group_tests(tests, load_driver, NULL);
}

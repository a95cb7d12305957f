/* SPDX-License-Identifier: MIT */
/* What a real driver answers beside a capture, replayed against ours: each row of
 * ../facts/captures.tsv is a call and its streams, each of its columns a way to capture and to call.
 *
 * Columns, from the slowest to the fastest: the captured stream is non-blocking, or blocking; the
 * call comes from the thread that captures, or another; the thread's mode is as it was, or relaxed;
 * the capture's mode is global, the thread's, or relaxed. A number is the result; "!" says that the
 * capture was invalid afterwards. */
#define _GNU_SOURCE
#include <stdio.h>

#include "support.h"

#include "runtime/device/cuda/cuda.h"

enum { WAYS = 24, BYTES = 256, UNKNOWN = -1, CALLS = 120 };

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

/* Where calls write what nobody reads. */
static union {
    tide_cu_context context;
    tide_cu_pool pool;
    tide_cu_address address;
    tide_cu_event event;
    tide_cu_stream stream;
    tide_cu_function function;
    void *pointer;
    const char *words;
    char text[64];
    size_t bytes;
    uint64_t value;
    unsigned long long number;
    int value32;
} out;

static const char image[] = "fake"; /* with one kernel, "bump" */
static const tide_cu_pool_properties pinned = {.allocation = TIDE_CU_ALLOCATION_PINNED,
                                               .location = {.type = TIDE_CU_LOCATION_DEVICE}};

/* The calls by their rows' names; UNKNOWN: no such row. Of a pair the first that fails is told. */
#define ROW(words, ...)          \
    if (strcmp(row, words) == 0) \
    return tide_cu.__VA_ARGS__

static int ask_device(const char *row, scene *s)
{
    int mode = 0;
    ROW("cuDevicePrimaryCtxRetain+Release",
        cuDevicePrimaryCtxRetain(&out.context, 0) || tide_cu.cuDevicePrimaryCtxRelease(0));
    ROW("cuCtxGetCurrent", cuCtxGetCurrent(&out.context));
    ROW("cuCtxPushCurrent+Pop",
        cuCtxPushCurrent(s->context) || tide_cu.cuCtxPopCurrent(&out.context));
    ROW("cuDeviceGetAttribute",
        cuDeviceGetAttribute(&out.value32, TIDE_CU_DEVICE_POOLS_SUPPORTED, 0));
    ROW("cuDeviceGetName", cuDeviceGetName(out.text, sizeof out.text, 0));
    ROW("cuDeviceTotalMem", cuDeviceTotalMem(&out.bytes, 0));
    ROW("cuGetErrorString", cuGetErrorString(2, &out.words));
    ROW("cuCtxSynchronize", cuCtxSynchronize());
    ROW("cuEventCreate", cuEventCreate(&out.event, TIDE_CU_EVENT_DISABLE_TIMING));
    ROW("cuEventDestroy", cuEventDestroy(s->unused));
    ROW("cuEventQuery(outside)", cuEventQuery(s->outside));
    ROW("cuEventQuery(captured)", cuEventQuery(s->captured));
    ROW("cuEventSynchronize(outside)", cuEventSynchronize(s->outside));
    ROW("cuEventSynchronize(captured)", cuEventSynchronize(s->captured));
    ROW("cuStreamCreate(non-blocking)", cuStreamCreate(&out.stream, TIDE_CU_STREAM_NON_BLOCKING));
    ROW("cuStreamCreate(blocking)", cuStreamCreate(&out.stream, 0));
    ROW("cuStreamDestroy(another)", cuStreamDestroy(s->another));
    ROW("cuThreadExchangeStreamCaptureMode", cuThreadExchangeStreamCaptureMode(&mode) ||
                                                 tide_cu.cuThreadExchangeStreamCaptureMode(&mode));
    ROW("cuModuleLoadDataEx", cuModuleLoadDataEx(&s->loaded, image, 0, NULL, NULL));
    ROW("cuModuleUnload", cuModuleUnload(s->module));
    ROW("cuModuleGetFunction", cuModuleGetFunction(&out.function, s->module, "bump"));
    return UNKNOWN;
}

static int ask_memory(const char *row, scene *s)
{
    uint64_t all = UINT64_MAX;
    ROW("cuMemPoolCreate", cuMemPoolCreate(&out.pool, &pinned));
    ROW("cuMemPoolDestroy", cuMemPoolDestroy(s->spare));
    ROW("cuMemPoolSetAttribute",
        cuMemPoolSetAttribute(s->pool, TIDE_CU_POOL_RELEASE_THRESHOLD, &all));
    ROW("cuMemPoolGetAttribute", cuMemPoolGetAttribute(s->pool, TIDE_CU_POOL_RESERVED, &out.value));
    ROW("cuMemPoolTrimTo", cuMemPoolTrimTo(s->pool, 0));
    ROW("cuMemAlloc", cuMemAlloc(&out.address, BYTES));
    ROW("cuMemFree", cuMemFree(s->plain));
    ROW("cuMemAllocManaged", cuMemAllocManaged(&out.address, BYTES, TIDE_CU_ATTACH_GLOBAL));
    ROW("cuMemFree(managed)", cuMemFree(s->managed));
    ROW("cuMemHostAlloc", cuMemHostAlloc(&out.pointer, BYTES, TIDE_CU_HOST_PORTABLE));
    ROW("cuMemFreeHost", cuMemFreeHost(s->pinned));
    return UNKNOWN;
}

static int ask_stream(const char *row, scene *s, tide_cu_stream stream)
{
    unsigned by = 1;
    void *values[] = {&s->stream_memory, &by};
    ROW("cuStreamIsCapturing", cuStreamIsCapturing(stream, &out.value32));
    ROW("cuStreamGetId", cuStreamGetId(stream, &out.number));
    ROW("cuStreamGetCtx", cuStreamGetCtx(stream, &out.context));
    ROW("cuStreamQuery", cuStreamQuery(stream));
    ROW("cuStreamSynchronize", cuStreamSynchronize(stream));
    ROW("cuMemsetD8Async", cuMemsetD8Async(s->stream_memory, 0, BYTES, stream));
    ROW("cuMemcpyAsync(device)", cuMemcpyAsync(s->stream_memory, s->plain, BYTES, stream));
    ROW("cuMemcpyAsync(pinned up)",
        cuMemcpyAsync(s->stream_memory, (uintptr_t)s->pinned, BYTES, stream));
    ROW("cuLaunchKernel", cuLaunchKernel(s->function, 1, 1, 1, 1, 1, 1, 0, stream, values, NULL));
    ROW("cuLaunchKernel(first of its module)",
        cuLaunchKernel(s->function, 1, 1, 1, 1, 1, 1, 0, stream, values, NULL));
    ROW("cuMemAllocFromPoolAsync", cuMemAllocFromPoolAsync(&out.address, BYTES, s->pool, stream));
    ROW("cuMemFreeAsync", cuMemFreeAsync(s->stream_memory, stream));
    ROW("cuEventRecord(new event)", cuEventRecord(s->fresh, stream));
    ROW("cuEventRecord(used before)", cuEventRecord(s->outside, stream));
    ROW("cuStreamWaitEvent(outside)", cuStreamWaitEvent(stream, s->outside, 0));
    ROW("cuStreamWaitEvent(captured)", cuStreamWaitEvent(stream, s->captured, 0));
    return UNKNOWN;
}

static int ask(const char *row, scene *s, tide_cu_stream stream)
{
    int result = ask_device(row, s);
    result = result == UNKNOWN ? ask_memory(row, s) : result;
    result = result == UNKNOWN ? ask_stream(row, s, stream) : result;
    assert_int_not_equal(result, UNKNOWN);
    return result;
}

/* ---- one cell ------------------------------------------------------------------------------- */

#define DO(call) assert_int_equal(tide_cu.call, 0)

static void set_memory(scene *s)
{
    DO(cuMemPoolCreate(&s->pool, &pinned));
    DO(cuMemPoolCreate(&s->spare, &pinned));
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
    const char *row;
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
    c->result = ask(c->row, c->s, c->letter != '-' ? c->s->streams[(int)c->letter] : NULL);
    if (c->relaxed)
        DO(cuThreadExchangeStreamCaptureMode(&mode));
    DO(cuCtxPopCurrent(&popped));
    return NULL;
}

/* What there is in the column, as the table writes it. */
static void replay(const char *row, char letter, int way, char *got, size_t bytes)
{
    scene s = set_up(way / 12 != 0, way % 3);
    calling c = {.s = &s, .row = row, .letter = letter, .relaxed = way / 3 % 2 != 0};
    tide_cu_context popped;
    int state = 0;
    (void)(way / 6 % 2 != 0 ? on_thread(call_it, &c) : call_it(&c));
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

static unsigned calls, wrong; /* of the table; cells that differ */

static void replay_row(char *line)
{
    char *rest = NULL, *name = strtok_r(line, "\t", &rest), *letters = strtok_r(NULL, "\t", &rest);
    calls += (unsigned)strlen(letters);
    for (int way = 0; way < WAYS; way++) {
        const char *wanted = strtok_r(NULL, " \n", &rest);
        char ours[16];
        assert_non_null(wanted);
        for (const char *letter = letters; *letter != '\0'; letter++) {
            replay(name, *letter, way, ours, sizeof ours);
            if (strcmp(ours, wanted) == 0)
                continue;
            fprintf(stderr, "%s %c, way %d: %s, ours %s\n", name, *letter, way, wanted, ours);
            wrong++;
        }
    }
}

static void test_driver_answers_as_a_real_one(void **state)
{
    (void)state;
    char line[512];
    FILE *table = fopen(FACTS, "r");
    assert_non_null(table);
    while (fgets(line, sizeof line, table) != NULL)
        replay_row(line);
    fclose(table);
    assert_int_equal(calls, CALLS);
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

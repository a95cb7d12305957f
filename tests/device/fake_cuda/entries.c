/* SPDX-License-Identifier: MIT */
/* The driver's entry points, with the parameters of runtime/cuda_api.h; the only exported one of the
 * driver's own names is cuGetProcAddress_v2. Each counts, may fail on demand, and knows contexts. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "model.h"
#include "runtime/cuda_api.h"

enum {
#define X(name, version, arguments) ENTRY_##name,
    TIDE_CU_ENTRIES(X)
#undef X
        ENTRIES
};

enum { /* results that only this file gives */
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
    CAPTURE_UNJOINED = 904,
    CAPTURE_ISOLATION = 905,
    CAPTURED_EVENT = 907
};

enum { CONTEXTS_DEEP = 16, MODE_GLOBAL = 0 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local struct {
    context *stack[CONTEXTS_DEEP];
    int depth;
    int mode;
} here;

static struct {
    unsigned calls[ENTRIES], all, failures;
    int failing; /* an entry, or -1 */
    unsigned nth;
    int result;
    bool for_ever;
} asked = {.failing = -1};

static bool torn_down, watches_exit;

void fake_lock(void)
{
    pthread_mutex_lock(&mutex);
}

void fake_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

uint32_t fake_random(void)
{
    fake.random ^= fake.random << 13;
    fake.random ^= fake.random >> 17;
    return fake.random ^= fake.random << 5;
}

void fake_complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (fake.violation[0] == '\0')
        vsnprintf(fake.violation, sizeof fake.violation, format, arguments);
    va_end(arguments);
}

/* ---- entering an entry point -------------------------------------------------------------- */

static const char *const names[ENTRIES] = {
#define X(name, version, arguments) #name,
    TIDE_CU_ENTRIES(X)
#undef X
};

static context *current(void)
{
    return here.depth > 0 ? here.stack[here.depth - 1] : NULL;
}

static int injected(int entry)
{
    bool fails = entry == asked.failing && asked.nth > 0 && --asked.nth == 0;
    if (!fails)
        return 0;
    asked.nth = asked.for_ever ? 1 : 0;
    asked.failures++;
    return asked.result;
}

/* Real ones differ in what they do to whoever calls them now. */
static void check_alive(int entry)
{
    if (!torn_down)
        return;
    fprintf(stderr, "fake_cuda: %s after the driver was torn down\n", names[entry]);
    _exit(99);
}

/* 0, or the result to fail with. Locked from here to leave(). */
static int enter(int entry)
{
    fake_lock();
    check_alive(entry);
    asked.calls[entry]++;
    asked.all++;
    model_advance();
    return injected(entry);
}

static int leave(int result)
{
    fake_unlock();
    return result;
}

/* The same for entry points that need a context that works. */
static int enter_current(int entry)
{
    int result = enter(entry);
    if (result == 0 && current() == NULL)
        result = INVALID_CONTEXT;
    return result == 0 && current()->lost ? TIDE_CU_ILLEGAL_ADDRESS : result;
}

static lane *stream_of(void *handle)
{
    if (handle == NULL)
        return current() != NULL ? current()->legacy : NULL;
    lane *found = handle;
    bool ours = found >= fake.streams && found < fake.streams + STREAMS && found->live;
    return ours ? found : NULL;
}

/* What would spoil a capture, in any thread that has not said that it does not care. */
static int unsafe(const char *what)
{
    if (fake.captures == 0 || here.mode == TIDE_CU_CAPTURE_RELAXED)
        return 0;
    fake_complain("%s while a graph is captured", what);
    return CAPTURE_UNSUPPORTED;
}

#define ENTRY(name, ...) static tide_cu_result fake_##name(__VA_ARGS__)
#define START(name)                       \
    int result = enter(ENTRY_##name);     \
    if (result != 0)                      \
        return leave(result)
#define START_CURRENT(name)                   \
    int result = enter_current(ENTRY_##name); \
    if (result != 0)                          \
        return leave(result)

/* ---- driver and devices ------------------------------------------------------------------- */

static void tear_down(void)
{
    torn_down = true;
}

ENTRY(cuInit, unsigned flags)
{
    START(cuInit);
    if (!watches_exit)
        watches_exit = atexit(tear_down) == 0;
    return leave(flags == 0 ? 0 : TIDE_CU_INVALID_VALUE);
}

static const char *words(tide_cu_result of)
{
    return of == TIDE_CU_OUT_OF_MEMORY     ? "out of memory"
           : of == TIDE_CU_ILLEGAL_ADDRESS ? "an illegal memory access was encountered"
                                           : "a failure that a test asked for";
}

ENTRY(cuGetErrorName, tide_cu_result of, const char **name)
{
    START(cuGetErrorName);
    *name = of == TIDE_CU_OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : of == TIDE_CU_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                            : "CUDA_ERROR_FAKE";
    return leave(0);
}

ENTRY(cuGetErrorString, tide_cu_result of, const char **string)
{
    START(cuGetErrorString);
    *string = words(of);
    return leave(0);
}

ENTRY(cuDeviceGetCount, int *count)
{
    START(cuDeviceGetCount);
    *count = (int)fake.devices;
    return leave(0);
}

ENTRY(cuDeviceGet, tide_cu_device *device, int ordinal)
{
    START(cuDeviceGet);
    *device = ordinal;
    return leave(ordinal >= 0 && (unsigned)ordinal < fake.devices ? 0 : 101);
}

ENTRY(cuDeviceGetName, char *name, int bytes, tide_cu_device device)
{
    START(cuDeviceGetName);
    snprintf(name, (size_t)bytes, "fake device %d", device);
    return leave(0);
}

ENTRY(cuDeviceTotalMem, size_t *bytes, tide_cu_device device)
{
    START(cuDeviceTotalMem);
    (void)device;
    *bytes = fake.limit;
    return leave(0);
}

ENTRY(cuDeviceGetAttribute, int *value, int attribute, tide_cu_device device)
{
    START(cuDeviceGetAttribute);
    (void)device;
    *value = attribute == TIDE_CU_DEVICE_POOLS_SUPPORTED;
    return leave(0);
}

/* ---- contexts ----------------------------------------------------------------------------- */

ENTRY(cuDevicePrimaryCtxRetain, tide_cu_context *out, tide_cu_device device)
{
    START(cuDevicePrimaryCtxRetain);
    fake.contexts[device].retained++;
    *out = (tide_cu_context)(void *)&fake.contexts[device];
    return leave(0);
}

ENTRY(cuDevicePrimaryCtxRelease, tide_cu_device device)
{
    START(cuDevicePrimaryCtxRelease);
    if (fake.contexts[device].retained-- == 0)
        fake_complain("a primary context is released more often than retained");
    return leave(0);
}

ENTRY(cuCtxGetCurrent, tide_cu_context *out)
{
    START(cuCtxGetCurrent);
    *out = (tide_cu_context)(void *)current();
    return leave(0);
}

ENTRY(cuCtxPushCurrent, tide_cu_context pushed)
{
    START(cuCtxPushCurrent);
    if (here.depth == CONTEXTS_DEEP)
        abort();
    here.stack[here.depth++] = (context *)(void *)pushed;
    return leave(0);
}

ENTRY(cuCtxPopCurrent, tide_cu_context *out)
{
    START(cuCtxPopCurrent);
    if (here.depth == 0)
        return leave(INVALID_CONTEXT);
    *out = (tide_cu_context)(void *)here.stack[--here.depth];
    return leave(0);
}

static set everything(const context *of)
{
    return model_tail(of->legacy);
}

ENTRY(cuCtxSynchronize, void)
{
    START_CURRENT(cuCtxSynchronize);
    result = unsafe("cuCtxSynchronize");
    if (result != 0)
        return leave(result);
    set all = everything(current());
    model_finish(&all);
    return leave(0);
}

ENTRY(cuThreadExchangeStreamCaptureMode, int *mode)
{
    START(cuThreadExchangeStreamCaptureMode);
    int old = here.mode;
    here.mode = *mode;
    *mode = old;
    return leave(0);
}

/* ---- memory ------------------------------------------------------------------------------- */

ENTRY(cuMemPoolCreate, tide_cu_pool *out, const tide_cu_pool_properties *properties)
{
    START(cuMemPoolCreate);
    if (properties->allocation != 1 || properties->location.type != 1 ||
        (unsigned)properties->location.id >= fake.devices)
        return leave(TIDE_CU_INVALID_VALUE);
    *out = (tide_cu_pool)(void *)&fake.contexts[properties->location.id];
    return leave(0);
}

ENTRY(cuMemPoolDestroy, tide_cu_pool pool)
{
    START(cuMemPoolDestroy);
    return leave(pool != NULL ? 0 : TIDE_CU_INVALID_VALUE);
}

ENTRY(cuMemPoolSetAttribute, tide_cu_pool pool, int attribute, void *value)
{
    START(cuMemPoolSetAttribute);
    bool right = pool != NULL && attribute == 4 && *(uint64_t *)value == UINT64_MAX;
    return leave(right ? 0 : TIDE_CU_INVALID_VALUE);
}

/* A graph that allocates would give other addresses in each replay, or the same to two. */
static void forbid_in_capture(const lane *on, const char *what)
{
    if (on->capture != NULL)
        fake_complain("%s on a stream that is captured", what);
}

ENTRY(cuMemAllocFromPoolAsync, tide_cu_address *out, size_t bytes, tide_cu_pool pool,
      tide_cu_stream handle)
{
    START_CURRENT(cuMemAllocFromPoolAsync);
    lane *on = stream_of(handle);
    if (on == NULL || (void *)on->context != (void *)pool)
        return leave(INVALID_HANDLE);
    forbid_in_capture(on, "cuMemAllocFromPoolAsync");
    *out = memory_take(bytes, on);
    return leave(*out != 0 ? 0 : TIDE_CU_OUT_OF_MEMORY);
}

ENTRY(cuMemFreeAsync, tide_cu_address address, tide_cu_stream handle)
{
    START_CURRENT(cuMemFreeAsync);
    lane *on = stream_of(handle);
    if (on == NULL)
        return leave(INVALID_HANDLE);
    forbid_in_capture(on, "cuMemFreeAsync");
    if (memory_give(address, on))
        return leave(0);
    fake_complain("cuMemFreeAsync of %#llx, which is not allocated", address);
    return leave(TIDE_CU_INVALID_VALUE);
}

ENTRY(cuMemHostAlloc, void **out, size_t bytes, unsigned flags)
{
    START_CURRENT(cuMemHostAlloc);
    (void)flags;
    result = unsafe("cuMemHostAlloc");
    if (result != 0)
        return leave(result);
    *out = bytes <= fake.limit ? memory_pinned(bytes) : NULL;
    return leave(*out != NULL ? 0 : TIDE_CU_OUT_OF_MEMORY);
}

ENTRY(cuMemFreeHost, void *data)
{
    START_CURRENT(cuMemFreeHost);
    result = unsafe("cuMemFreeHost");
    if (result != 0)
        return leave(result);
    if (memory_unpin(data))
        return leave(0);
    fake_complain("cuMemFreeHost of %p, which is not pinned", data);
    return leave(TIDE_CU_INVALID_VALUE);
}

/* Fills and copies need the context of their stream. */
static int queue(void *handle, const work *one)
{
    lane *on = stream_of(handle);
    if (on == NULL)
        return INVALID_HANDLE;
    if (on->context != current()) {
        fake_complain("%s in another context than its stream's", one->what);
        return INVALID_CONTEXT;
    }
    model_queue(on, one);
    return 0;
}

/* The range of a strided fill is that of its elements, gaps included: nobody else uses those then. */
static int fill(uint64_t to, uint64_t pitch, unsigned unit, unsigned value, uint64_t width,
                uint64_t height, void *stream)
{
    const work one = {.run = memory_write,
                      .to = to,
                      .pitch = pitch,
                      .unit = unit,
                      .value = value,
                      .width = width,
                      .height = height,
                      .ranges = {{(void *)(uintptr_t)to, (height - 1) * pitch + width * unit, true}},
                      .range_count = 1,
                      .what = "a fill"};
    return queue(stream, &one);
}

#define FILL(bits, type)                                                                          \
    ENTRY(cuMemsetD##bits##Async, tide_cu_address to, type value, size_t count,                   \
          tide_cu_stream stream)                                                                  \
    {                                                                                             \
        START_CURRENT(cuMemsetD##bits##Async);                                                    \
        return leave(fill(to, 0, bits / 8, value, count, 1, stream));                             \
    }                                                                                             \
    ENTRY(cuMemsetD2D##bits##Async, tide_cu_address to, size_t pitch, type value, size_t width,   \
          size_t height, tide_cu_stream stream)                                                   \
    {                                                                                             \
        START_CURRENT(cuMemsetD2D##bits##Async);                                                  \
        return leave(fill(to, pitch, bits / 8, value, width, height, stream));                    \
    }
FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned)

ENTRY(cuMemcpyAsync, tide_cu_address to, tide_cu_address from, size_t bytes,
      tide_cu_stream stream)
{
    START_CURRENT(cuMemcpyAsync);
    const work one = {.run = memory_copy,
                      .to = to,
                      .from = from,
                      .width = bytes,
                      .ranges = {{(void *)(uintptr_t)to, bytes, true},
                                 {(void *)(uintptr_t)from, bytes, false}},
                      .range_count = 2,
                      .what = "a copy"};
    return leave(queue(stream, &one));
}

/* ---- events ------------------------------------------------------------------------------- */

static event *event_of(tide_cu_event handle)
{
    event *found = (event *)(void *)handle;
    return found >= fake.events && found < fake.events + EVENTS && found->live ? found : NULL;
}

ENTRY(cuEventCreate, tide_cu_event *out, unsigned flags)
{
    START_CURRENT(cuEventCreate);
    for (int i = 0; i < EVENTS && flags == TIDE_CU_EVENT_DISABLE_TIMING; i++) {
        if (fake.events[i].live)
            continue;
        fake.events[i] = (event){.live = true, .context = current()};
        *out = (tide_cu_event)(void *)&fake.events[i];
        return leave(0);
    }
    return leave(TIDE_CU_OUT_OF_MEMORY);
}

ENTRY(cuEventDestroy, tide_cu_event handle)
{
    START_CURRENT(cuEventDestroy);
    event *of = event_of(handle);
    if (of == NULL)
        return leave(INVALID_HANDLE);
    of->live = false;
    return leave(0);
}

static void record(event *to, lane *on)
{
    to->capture = on->capture;
    to->captured = on->captured;
    to->before = model_tail(on);
}

ENTRY(cuEventRecord, tide_cu_event handle, tide_cu_stream stream_handle)
{
    START_CURRENT(cuEventRecord);
    event *to = event_of(handle);
    lane *on = stream_of(stream_handle);
    if (to == NULL || on == NULL || to->context != on->context)
        return leave(INVALID_HANDLE);
    record(to, on);
    return leave(0);
}

/* A wait joins its stream to the event's capture; what was recorded outside cannot be waited for inside. */
static int wait_for(lane *on, const event *of)
{
    bool captured = of->capture != NULL && of->capture->active;
    if (on->capture != NULL && (!captured || of->capture != on->capture)) {
        on->capture->spoiled = true;
        return CAPTURE_ISOLATION;
    }
    if (captured) {
        on->capture = of->capture;
        set_join(&on->captured, &of->captured);
        return 0;
    }
    set_join(&on->tail, &of->before);
    return 0;
}

ENTRY(cuStreamWaitEvent, tide_cu_stream stream_handle, tide_cu_event handle, unsigned flags)
{
    START_CURRENT(cuStreamWaitEvent);
    event *of = event_of(handle);
    lane *on = stream_of(stream_handle);
    if (of == NULL || on == NULL || flags != 0)
        return leave(INVALID_HANDLE);
    return leave(wait_for(on, of));
}

ENTRY(cuEventQuery, tide_cu_event handle)
{
    START_CURRENT(cuEventQuery);
    const event *of = event_of(handle);
    result = unsafe("cuEventQuery");
    if (of == NULL || result != 0)
        return leave(of == NULL ? INVALID_HANDLE : result);
    if (of->capture != NULL)
        return leave(CAPTURED_EVENT);
    if (!model_done(&of->before))
        return leave(TIDE_CU_NOT_READY);
    model_finish(&of->before);
    return leave(0);
}

ENTRY(cuEventSynchronize, tide_cu_event handle)
{
    START_CURRENT(cuEventSynchronize);
    const event *of = event_of(handle);
    if (of == NULL || of->capture != NULL)
        return leave(of == NULL ? INVALID_HANDLE : CAPTURED_EVENT);
    set before = of->before;
    model_finish(&before);
    return leave(0);
}

/* ---- streams ------------------------------------------------------------------------------ */

ENTRY(cuStreamSynchronize, tide_cu_stream handle)
{
    START_CURRENT(cuStreamSynchronize);
    lane *on = stream_of(handle);
    if (on == NULL)
        return leave(INVALID_HANDLE);
    if (on->capture != NULL) {
        fake_complain("cuStreamSynchronize of a stream that is captured");
        on->capture->spoiled = true;
        return leave(CAPTURE_UNSUPPORTED);
    }
    set tail = model_tail(on);
    model_finish(&tail);
    return leave(0);
}

ENTRY(cuStreamIsCapturing, tide_cu_stream handle, int *state)
{
    START_CURRENT(cuStreamIsCapturing);
    const lane *on = stream_of(handle);
    if (on == NULL)
        return leave(INVALID_HANDLE);
    *state = on->capture == NULL ? 0 : on->capture->spoiled ? 2 : 1;
    return leave(0);
}

ENTRY(cuStreamGetId, tide_cu_stream handle, unsigned long long *number)
{
    START_CURRENT(cuStreamGetId);
    const lane *on = stream_of(handle);
    if (on != NULL)
        *number = on->number;
    return leave(on != NULL ? 0 : INVALID_HANDLE);
}

ENTRY(cuStreamGetCtx, tide_cu_stream handle, tide_cu_context *out)
{
    START_CURRENT(cuStreamGetCtx);
    const lane *on = stream_of(handle);
    if (on != NULL)
        *out = (tide_cu_context)(void *)on->context;
    return leave(on != NULL ? 0 : INVALID_HANDLE);
}

/* ---- code: a module is the name of its one kernel ------------------------------------------- */

ENTRY(cuModuleLoadDataEx, tide_cu_module *out, const void *image, unsigned count, int *options,
      void **values)
{
    START_CURRENT(cuModuleLoadDataEx);
    (void)count, (void)options, (void)values;
    *out = (tide_cu_module)(uintptr_t)image;
    return leave(strncmp(image, "fake", 4) == 0 ? 0 : 200);
}

ENTRY(cuModuleUnload, tide_cu_module module)
{
    START_CURRENT(cuModuleUnload);
    return leave(module != NULL ? 0 : INVALID_HANDLE);
}

ENTRY(cuModuleGetFunction, tide_cu_function *out, tide_cu_module module, const char *name)
{
    START_CURRENT(cuModuleGetFunction);
    *out = (tide_cu_function)(void *)module;
    return leave(strcmp(name, "bump") == 0 ? 0 : NOT_FOUND);
}

/* The one kernel there is: adds its second argument to each of the first's so many bytes. */
typedef struct bump_arguments {
    unsigned char *data;
    unsigned by;
    size_t count;
} bump_arguments;

static void bump(const void *of)
{
    const bump_arguments *arguments = of;
    unsigned char *bytes = fake_see(arguments->data);
    for (size_t i = 0; i < arguments->count; i++)
        bytes[i] = (unsigned char)(bytes[i] + arguments->by);
}

static void run_kernel(const work *one)
{
    one->kernel(one->arguments);
}

static int queue_kernel(void *stream, fake_kernel *kernel, const void *arguments, size_t bytes,
                        const fake_range *ranges, unsigned count)
{
    work one = {.run = run_kernel, .kernel = kernel, .range_count = count, .what = "a kernel"};
    if (bytes > sizeof one.arguments || count > FAKE_RANGES)
        abort();
    if (bytes != 0)
        memcpy(one.arguments, arguments, bytes);
    if (count != 0)
        memcpy(one.ranges, ranges, count * sizeof *ranges);
    return queue(stream, &one);
}

ENTRY(cuLaunchKernel, tide_cu_function function, unsigned x, unsigned y, unsigned z, unsigned group,
      unsigned group_y, unsigned group_z, unsigned shared, tide_cu_stream stream, void **values,
      void **extra)
{
    START_CURRENT(cuLaunchKernel);
    if (function == NULL || y * z * group_y * group_z != 1 || shared != 0 || extra != NULL)
        return leave(TIDE_CU_INVALID_VALUE);
    bump_arguments arguments = {.count = (size_t)x * group};
    memcpy(&arguments.data, values[0], sizeof arguments.data);
    memcpy(&arguments.by, values[1], sizeof arguments.by);
    const fake_range range = {arguments.data, arguments.count, true};
    return leave(queue_kernel(stream, bump, &arguments, sizeof arguments, &range, 1));
}

/* ---- the table ---------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int version;
    void *function;
} table[] = {
#define X(name, version, arguments) {#name, version, (void *)fake_##name},
    TIDE_CU_ENTRIES(X)
#undef X
};

__attribute__((visibility("default"))) tide_cu_result cuGetProcAddress_v2(const char *name, void **out,
                                                                          int version,
                                                                          uint64_t flags,
                                                                          int *status);

tide_cu_result cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags,
                                   int *status)
{
    *out = NULL;
    for (int i = 0; i < ENTRIES; i++)
        if (strcmp(table[i].name, name) == 0 && version == table[i].version && flags == 1)
            *out = table[i].function;
    *status = *out != NULL ? 0 : 1;
    return *out != NULL ? 0 : NOT_FOUND;
}

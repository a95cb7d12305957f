/* SPDX-License-Identifier: MIT */
/* The driver's entry points, with the parameters of runtime/device/cuda/api.h; the only exported one of
 * the driver's own names is cuGetProcAddress_v2. Each counts, may fail on demand, and knows
 * contexts. */
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

static lane *stream_of(void *handle)
{
    if (handle == NULL)
        return control_current() != NULL ? control_current()->legacy : NULL;
    lane *found = handle;
    bool ours = found >= fake.streams && found < fake.streams + STREAMS && found->live;
    return ours ? found : NULL;
}

#define ENTRY(name, ...) static tide_cu_result fake_##name(__VA_ARGS__)
#define START(name)                           \
    int result = control_enter(ENTRY_##name); \
    if (result != 0)                          \
    return control_leave(result)
#define START_CURRENT(name)                           \
    int result = control_enter_current(ENTRY_##name); \
    if (result != 0)                                  \
    return control_leave(result)

/* ---- driver and devices ------------------------------------------------------------------- */

ENTRY(cuInit, unsigned flags)
{
    START(cuInit);
    static bool watched;
    watched = watched || atexit(control_tear_down) == 0;
    return control_leave(flags == 0 ? 0 : TIDE_CU_INVALID_VALUE);
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
    return control_leave(0);
}

ENTRY(cuGetErrorString, tide_cu_result of, const char **string)
{
    START(cuGetErrorString);
    *string = words(of);
    return control_leave(0);
}

ENTRY(cuDeviceGetCount, int *count)
{
    START(cuDeviceGetCount);
    *count = (int)fake.devices;
    return control_leave(0);
}

ENTRY(cuDeviceGet, tide_cu_device *device, int ordinal)
{
    START(cuDeviceGet);
    *device = ordinal;
    return control_leave(ordinal >= 0 && (unsigned)ordinal < fake.devices ? 0 : 101);
}

ENTRY(cuDeviceGetName, char *name, int bytes, tide_cu_device device)
{
    START(cuDeviceGetName);
    snprintf(name, (size_t)bytes, "fake device %d", device);
    return control_leave(0);
}

ENTRY(cuDeviceTotalMem, size_t *bytes, tide_cu_device device)
{
    START(cuDeviceTotalMem);
    (void)device;
    *bytes = fake.limit;
    return control_leave(0);
}

ENTRY(cuDeviceGetAttribute, int *value, int attribute, tide_cu_device device)
{
    START(cuDeviceGetAttribute);
    (void)device;
    *value = attribute == TIDE_CU_DEVICE_POOLS_SUPPORTED;
    return control_leave(0);
}

/* ---- contexts ----------------------------------------------------------------------------- */

ENTRY(cuDevicePrimaryCtxRetain, tide_cu_context *out, tide_cu_device device)
{
    START(cuDevicePrimaryCtxRetain);
    fake.contexts[device].retained++;
    *out = (tide_cu_context)(void *)&fake.contexts[device];
    return control_leave(0);
}

ENTRY(cuDevicePrimaryCtxRelease, tide_cu_device device)
{
    START(cuDevicePrimaryCtxRelease);
    if (fake.contexts[device].retained-- == 0)
        fake_complain("a primary context is released more often than retained");
    return control_leave(0);
}

ENTRY(cuCtxGetCurrent, tide_cu_context *out)
{
    START(cuCtxGetCurrent);
    *out = (tide_cu_context)(void *)control_current();
    return control_leave(0);
}

ENTRY(cuCtxPushCurrent, tide_cu_context pushed)
{
    START(cuCtxPushCurrent);
    control_push((context *)(void *)pushed);
    return control_leave(0);
}

ENTRY(cuCtxPopCurrent, tide_cu_context *out)
{
    START(cuCtxPopCurrent);
    *out = (tide_cu_context)(void *)control_pop();
    return control_leave(*out != NULL ? 0 : INVALID_CONTEXT);
}

static set everything(const context *of)
{
    set all = model_tail(of->legacy);
    set_join(&all, &of->gone);
    return all;
}

ENTRY(cuCtxSynchronize, void)
{
    START_CURRENT(cuCtxSynchronize);
    result = control_unsafe("cuCtxSynchronize");
    if (result != 0)
        return control_leave(result);
    set all = everything(control_current());
    model_finish(&all);
    return control_leave(0);
}

ENTRY(cuThreadExchangeStreamCaptureMode, int *mode)
{
    START(cuThreadExchangeStreamCaptureMode);
    *mode = control_mode(*mode);
    return control_leave(0);
}

/* ---- memory ------------------------------------------------------------------------------- */

ENTRY(cuMemPoolCreate, tide_cu_pool *out, const tide_cu_pool_properties *properties)
{
    START(cuMemPoolCreate);
    if (properties->allocation != 1 || properties->location.type != 1 ||
        (unsigned)properties->location.id >= fake.devices)
        return control_leave(TIDE_CU_INVALID_VALUE);
    *out = (tide_cu_pool)(void *)&fake.contexts[properties->location.id];
    return control_leave(0);
}

ENTRY(cuMemPoolDestroy, tide_cu_pool pool)
{
    START(cuMemPoolDestroy);
    return control_leave(pool != NULL ? 0 : TIDE_CU_INVALID_VALUE);
}

ENTRY(cuMemPoolSetAttribute, tide_cu_pool pool, int attribute, void *value)
{
    START(cuMemPoolSetAttribute);
    bool right = pool != NULL && attribute == 4 && *(uint64_t *)value == UINT64_MAX;
    return control_leave(right ? 0 : TIDE_CU_INVALID_VALUE);
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
        return control_leave(INVALID_HANDLE);
    forbid_in_capture(on, "cuMemAllocFromPoolAsync");
    *out = memory_take(bytes, on);
    return control_leave(*out != 0 ? 0 : TIDE_CU_OUT_OF_MEMORY);
}

ENTRY(cuMemFreeAsync, tide_cu_address address, tide_cu_stream handle)
{
    START_CURRENT(cuMemFreeAsync);
    lane *on = stream_of(handle);
    if (on == NULL)
        return control_leave(INVALID_HANDLE);
    forbid_in_capture(on, "cuMemFreeAsync");
    if (memory_give(address, on))
        return control_leave(0);
    fake_complain("cuMemFreeAsync of %#llx, which is not allocated", address);
    return control_leave(TIDE_CU_INVALID_VALUE);
}

ENTRY(cuMemHostAlloc, void **out, size_t bytes, unsigned flags)
{
    START_CURRENT(cuMemHostAlloc);
    (void)flags;
    result = control_unsafe("cuMemHostAlloc");
    if (result != 0)
        return control_leave(result);
    *out = bytes <= fake.limit ? memory_pinned(bytes) : NULL;
    return control_leave(*out != NULL ? 0 : TIDE_CU_OUT_OF_MEMORY);
}

ENTRY(cuMemFreeHost, void *data)
{
    START_CURRENT(cuMemFreeHost);
    result = control_unsafe("cuMemFreeHost");
    if (result != 0)
        return control_leave(result);
    if (memory_unpin(data))
        return control_leave(0);
    fake_complain("cuMemFreeHost of %p, which is not pinned", data);
    return control_leave(TIDE_CU_INVALID_VALUE);
}

/* Fills and copies need the context of their stream. */
int entry_queue(void *handle, const work *one)
{
    lane *on = stream_of(handle);
    if (on == NULL)
        return INVALID_HANDLE;
    if (on->context != control_current()) {
        fake_complain("%s in another context than its stream's", one->what);
        return INVALID_CONTEXT;
    }
    model_queue(on, one);
    return 0;
}

/* The range of a strided fill is that of its elements, gaps included: nobody else uses those then.
 */
static int fill(uint64_t to, uint64_t pitch, unsigned unit, unsigned value, uint64_t width,
                uint64_t height, void *stream)
{
    const work one = {
        .run = memory_write,
        .to = to,
        .pitch = pitch,
        .unit = unit,
        .value = value,
        .width = width,
        .height = height,
        .ranges = {{(void *)(uintptr_t)to, (height - 1) * pitch + width * unit, true}},
        .range_count = 1,
        .what = "a fill"};
    return entry_queue(stream, &one);
}

#define FILL(bits, type)                                                                        \
    ENTRY(cuMemsetD##bits##Async, tide_cu_address to, type value, size_t count,                 \
          tide_cu_stream stream)                                                                \
    {                                                                                           \
        START_CURRENT(cuMemsetD##bits##Async);                                                  \
        return control_leave(fill(to, 0, bits / 8, value, count, 1, stream));                   \
    }                                                                                           \
    ENTRY(cuMemsetD2D##bits##Async, tide_cu_address to, size_t pitch, type value, size_t width, \
          size_t height, tide_cu_stream stream)                                                 \
    {                                                                                           \
        START_CURRENT(cuMemsetD2D##bits##Async);                                                \
        return control_leave(fill(to, pitch, bits / 8, value, width, height, stream));          \
    }
FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned)

ENTRY(cuMemcpyAsync, tide_cu_address to, tide_cu_address from, size_t bytes, tide_cu_stream stream)
{
    START_CURRENT(cuMemcpyAsync);
    const work one = {
        .run = memory_copy,
        .to = to,
        .from = from,
        .width = bytes,
        .ranges = {{(void *)(uintptr_t)to, bytes, true}, {(void *)(uintptr_t)from, bytes, false}},
        .range_count = 2,
        .what = "a copy"};
    return control_leave(entry_queue(stream, &one));
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
        fake.events[i] = (event){.live = true, .context = control_current()};
        *out = (tide_cu_event)(void *)&fake.events[i];
        return control_leave(0);
    }
    return control_leave(TIDE_CU_OUT_OF_MEMORY);
}

ENTRY(cuEventDestroy, tide_cu_event handle)
{
    START_CURRENT(cuEventDestroy);
    event *of = event_of(handle);
    if (of == NULL)
        return control_leave(INVALID_HANDLE);
    of->live = false;
    return control_leave(0);
}

ENTRY(cuEventRecord, tide_cu_event handle, tide_cu_stream stream_handle)
{
    START_CURRENT(cuEventRecord);
    event *to = event_of(handle);
    lane *on = stream_of(stream_handle);
    if (to == NULL || on == NULL || to->context != on->context)
        return control_leave(INVALID_HANDLE);
    capture_record(to, on);
    return control_leave(0);
}

ENTRY(cuStreamWaitEvent, tide_cu_stream stream_handle, tide_cu_event handle, unsigned flags)
{
    START_CURRENT(cuStreamWaitEvent);
    event *of = event_of(handle);
    lane *on = stream_of(stream_handle);
    if (of == NULL || on == NULL || flags != 0)
        return control_leave(INVALID_HANDLE);
    return control_leave(capture_wait(on, of));
}

ENTRY(cuEventQuery, tide_cu_event handle)
{
    START_CURRENT(cuEventQuery);
    const event *of = event_of(handle);
    result = control_unsafe("cuEventQuery");
    if (of == NULL || result != 0)
        return control_leave(of == NULL ? INVALID_HANDLE : result);
    if (of->capture != NULL)
        return control_leave(CAPTURED_EVENT);
    if (!model_done(&of->before))
        return control_leave(TIDE_CU_NOT_READY);
    model_finish(&of->before);
    return control_leave(0);
}

ENTRY(cuEventSynchronize, tide_cu_event handle)
{
    START_CURRENT(cuEventSynchronize);
    const event *of = event_of(handle);
    if (of == NULL || of->capture != NULL)
        return control_leave(of == NULL ? INVALID_HANDLE : CAPTURED_EVENT);
    set before = of->before;
    model_finish(&before);
    return control_leave(0);
}

/* ---- streams ------------------------------------------------------------------------------ */

ENTRY(cuStreamSynchronize, tide_cu_stream handle)
{
    START_CURRENT(cuStreamSynchronize);
    lane *on = stream_of(handle);
    if (on == NULL)
        return control_leave(INVALID_HANDLE);
    if (on->capture != NULL) {
        fake_complain("cuStreamSynchronize of a stream that is captured");
        on->capture->spoiled = true;
        return control_leave(CAPTURE_UNSUPPORTED);
    }
    set tail = model_tail(on);
    model_finish(&tail);
    return control_leave(0);
}

ENTRY(cuStreamIsCapturing, tide_cu_stream handle, int *state)
{
    START_CURRENT(cuStreamIsCapturing);
    const lane *on = stream_of(handle);
    if (on == NULL)
        return control_leave(INVALID_HANDLE);
    *state = on->capture == NULL ? 0 : on->capture->spoiled ? 2 : 1;
    return control_leave(0);
}

ENTRY(cuStreamGetId, tide_cu_stream handle, unsigned long long *number)
{
    START_CURRENT(cuStreamGetId);
    const lane *on = stream_of(handle);
    if (on != NULL)
        *number = on->number;
    return control_leave(on != NULL ? 0 : INVALID_HANDLE);
}

ENTRY(cuStreamGetCtx, tide_cu_stream handle, tide_cu_context *out)
{
    START_CURRENT(cuStreamGetCtx);
    const lane *on = stream_of(handle);
    if (on != NULL)
        *out = (tide_cu_context)(void *)on->context;
    return control_leave(on != NULL ? 0 : INVALID_HANDLE);
}

/* ---- code: a module is the name of its one kernel ------------------------------------------- */

ENTRY(cuModuleLoadDataEx, tide_cu_module *out, const void *image, unsigned count, int *options,
      void **values)
{
    START_CURRENT(cuModuleLoadDataEx);
    (void)count, (void)options, (void)values;
    *out = (tide_cu_module)(uintptr_t)image;
    return control_leave(strncmp(image, "fake", 4) == 0 ? 0 : 200);
}

ENTRY(cuModuleUnload, tide_cu_module module)
{
    START_CURRENT(cuModuleUnload);
    return control_leave(module != NULL ? 0 : INVALID_HANDLE);
}

ENTRY(cuModuleGetFunction, tide_cu_function *out, tide_cu_module module, const char *name)
{
    START_CURRENT(cuModuleGetFunction);
    *out = (tide_cu_function)(void *)module;
    return control_leave(strcmp(name, "bump") == 0 ? 0 : NOT_FOUND);
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

int entry_launch(void *stream, fake_kernel *kernel, const void *arguments, size_t bytes,
                 const fake_range *ranges, unsigned count)
{
    work one = {.run = run_kernel, .kernel = kernel, .range_count = count, .what = "a kernel"};
    if (bytes > sizeof one.arguments || count > FAKE_RANGES)
        abort();
    if (bytes != 0)
        memcpy(one.arguments, arguments, bytes);
    if (count != 0)
        memcpy(one.ranges, ranges, count * sizeof *ranges);
    return entry_queue(stream, &one);
}

ENTRY(cuLaunchKernel, tide_cu_function function, unsigned x, unsigned y, unsigned z, unsigned group,
      unsigned group_y, unsigned group_z, unsigned shared, tide_cu_stream stream, void **values,
      void **extra)
{
    START_CURRENT(cuLaunchKernel);
    if (function == NULL || y * z * group_y * group_z != 1 || shared != 0 || extra != NULL)
        return control_leave(TIDE_CU_INVALID_VALUE);
    bump_arguments arguments = {.count = (size_t)x * group};
    memcpy(&arguments.data, values[0], sizeof arguments.data);
    memcpy(&arguments.by, values[1], sizeof arguments.by);
    const fake_range range = {arguments.data, arguments.count, true};
    return control_leave(entry_launch(stream, bump, &arguments, sizeof arguments, &range, 1));
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

tide_cu_result cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags,
                                   int *status);

tide_cu_result cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags,
                                   int *status)
{
    *out = beside_find(name, version);
    for (int i = 0; i < ENTRIES; i++)
        if (strcmp(table[i].name, name) == 0 && version == table[i].version && flags == 1)
            *out = table[i].function;
    *status = *out != NULL ? 0 : 1;
    return *out != NULL ? 0 : NOT_FOUND;
}

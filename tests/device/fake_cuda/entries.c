/* SPDX-License-Identifier: MIT */
/* The driver's entry points but for those of memory: devices, contexts, events, streams, code; and the table of
 * all. The only exported one of the driver's own names is cuGetProcAddress_v2. */
#include "entry.h"

#include <stdio.h>
#include <stdlib.h>

/* A thread's default stream, made when it is first used. */
static lane *per_thread(context *of)
{
    for (lane *one = fake.streams; one < fake.streams + STREAMS; one++)
        if (one->live && one->thread == control_thread() && one->context == of)
            return one;
    lane *made = control_new_stream(of, true);
    made->thread = control_thread();
    return made;
}

lane *entry_stream(void *handle)
{
    lane *found = handle;
    if ((uintptr_t)handle <= HANDLE_LEGACY)
        return control_current()->legacy;
    if ((uintptr_t)handle == HANDLE_PER_THREAD)
        return per_thread(control_current());
    if (found < fake.streams || found >= fake.streams + STREAMS || !found->live)
        control_fault("the stream", handle);
    return found;
}

/* ---- driver and devices ------------------------------------------------------------------- */

ENTRY(cuInit, ANY, (unsigned flags), (flags))
{
    static bool watched;
    watched = watched || atexit(control_tear_down) == 0;
    return flags == 0 ? 0 : TIDE_CU_INVALID_VALUE;
}

GIVES(cuGetErrorName, ANY, (tide_cu_result of, const char **name), (of, name),
      *name = of == TIDE_CU_OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
              : of == TIDE_CU_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                              : "CUDA_ERROR_FAKE")
GIVES(cuGetErrorString, ANY, (tide_cu_result of, const char **string), (of, string),
      *string = of == TIDE_CU_OUT_OF_MEMORY     ? "out of memory"
                : of == TIDE_CU_ILLEGAL_ADDRESS ? "an illegal memory access was encountered"
                                                : "a failure that a test asked for")
GIVES(cuDeviceGetCount, ANY, (int *count), (count), *count = (int)fake.devices)

RETURNS(cuDeviceGet, ANY, (tide_cu_device * device, int ordinal), (device, ordinal),
        *device = ordinal, ordinal >= 0 && (unsigned)ordinal < fake.devices ? 0 : 101)
GIVES(cuDeviceGetName, ANY, (char *name, int bytes, tide_cu_device device), (name, bytes, device),
      snprintf(name, (size_t)bytes, "fake device %d", device))

GIVES(cuDeviceTotalMem, ANY, (size_t * bytes, tide_cu_device device), (bytes, device), (void)device,
      *bytes = fake.limit)

GIVES(cuDriverGetVersion, ANY, (int *version), (version), *version = 13090)

enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76 };

static bool has(int attribute)
{
    switch (attribute) {
    case TIDE_CU_DEVICE_DIRECT:
    case TIDE_CU_DEVICE_FILES:
    case TIDE_CU_DEVICE_PAGES: return fake_has(FAKE_PAGES);
    case TIDE_CU_DEVICE_POOLS_SUPPORTED: return fake_has(FAKE_POOLS);
    case TIDE_CU_DEVICE_MANAGED: return fake_has(FAKE_MANAGED);
    case TIDE_CU_DEVICE_CONCURRENT: return fake_has(FAKE_MANAGED) && fake_has(FAKE_CONCURRENT);
    case TIDE_CU_DEVICE_IPC: return fake_has(FAKE_IPC);
    default: return false;
    }
}

GIVES(cuDeviceGetAttribute, ANY, (int *value, int attribute, tide_cu_device device),
      (value, attribute, device), (void)device,
      *value = attribute == CAPABILITY_MAJOR   ? code_architecture() / 10
               : attribute == CAPABILITY_MINOR ? code_architecture() % 10
                                               : has(attribute))

/* ---- contexts ----------------------------------------------------------------------------- */

ENTRY(cuDevicePrimaryCtxRetain, ANY, (tide_cu_context * out, tide_cu_device device), (out, device))
{
    fake.contexts[device].retained++;
    *out = (tide_cu_context)(void *)&fake.contexts[device];
    return 0;
}

ENTRY(cuDevicePrimaryCtxRelease, ANY, (tide_cu_device device), (device))
{
    if (fake.contexts[device].retained-- == 0)
        fake_complain("a primary context is released more often than retained");
    return 0;
}

GIVES(cuCtxGetCurrent, ANY, (tide_cu_context * out), (out),
      *out = (tide_cu_context)(void *)control_current())
GIVES(cuCtxPushCurrent, ANY, (tide_cu_context pushed), (pushed),
      control_push((context *)(void *)pushed))

ENTRY(cuCtxPopCurrent, ANY, (tide_cu_context * out), (out))
{
    *out = (tide_cu_context)(void *)control_pop();
    return *out != NULL ? 0 : INVALID_CONTEXT;
}

/* No mode makes it safe: it would wait for streams that are captured. */
static int synchronise_context(context *of)
{
    for (lane *one = fake.streams; one < fake.streams + STREAMS; one++) {
        if (!one->live || one->context != of || one->capture == NULL)
            continue;
        fake_complain("cuCtxSynchronize while a stream of the context is captured");
        one->capture->spoiled = true;
        return CAPTURE_UNSUPPORTED;
    }
    set all = model_everything(of);
    model_finish(&all);
    return 0;
}

RETURNS(cuCtxSynchronize, SAFE, (void), (), synchronise_context(control_current()))
GIVES(cuThreadExchangeStreamCaptureMode, ANY, (int *mode), (mode), *mode = control_mode(*mode))

/* ---- events ------------------------------------------------------------------------------- */

static event *event_of(tide_cu_event handle)
{
    event *found = (event *)(void *)handle;
    if (found < fake.events || found >= fake.events + EVENTS || !found->live)
        control_fault("the event", handle);
    return found;
}

ENTRY(cuEventCreate, CURRENT, (tide_cu_event * out, unsigned flags), (out, flags))
{
    for (int i = 0; i < EVENTS && flags == TIDE_CU_EVENT_DISABLE_TIMING; i++) {
        if (fake.events[i].live)
            continue;
        fake.events[i] = (event){.live = true, .context = control_current()};
        *out = (tide_cu_event)(void *)&fake.events[i];
        return 0;
    }
    return TIDE_CU_OUT_OF_MEMORY;
}

GIVES(cuEventDestroy, CURRENT, (tide_cu_event handle), (handle), event_of(handle)->live = false)

ENTRY(cuEventRecord, CURRENT, (tide_cu_event handle, tide_cu_stream stream_handle),
      (handle, stream_handle))
{
    event *to = event_of(handle);
    lane *on = entry_stream(stream_handle);
    if (to->context != on->context)
        return INVALID_HANDLE;
    int result = capture_implicit(on, "cuEventRecord");
    if (result == 0)
        capture_record(to, on);
    return result;
}

ENTRY(cuStreamWaitEvent, CURRENT,
      (tide_cu_stream stream_handle, tide_cu_event handle, unsigned flags),
      (stream_handle, handle, flags))
{
    event *of = event_of(handle);
    lane *on = entry_stream(stream_handle);
    if (flags != 0)
        return INVALID_HANDLE;
    int result = capture_implicit(on, "cuStreamWaitEvent");
    return result != 0 ? result : capture_wait(on, of);
}

static int settle_event(tide_cu_event handle, const char *what, bool waits)
{
    const event *of = event_of(handle);
    int result = capture_asked(of, what);
    const set before = of->before;
    if (result != 0 || (!waits && !model_done(&before)))
        return result != 0 ? result : TIDE_CU_NOT_READY;
    model_finish(&before);
    return 0;
}

RETURNS(cuEventQuery, CURRENT, (tide_cu_event handle), (handle),
        settle_event(handle, "cuEventQuery", false))
RETURNS(cuEventSynchronize, CURRENT, (tide_cu_event handle), (handle),
        settle_event(handle, "cuEventSynchronize", true))

/* ---- streams ------------------------------------------------------------------------------ */

ENTRY(cuStreamCreate, CURRENT, (tide_cu_stream * out, unsigned flags), (out, flags))
{
    enum { NON_BLOCKING = 1 };
    if (flags <= NON_BLOCKING)
        *out = (tide_cu_stream)(void *)control_new_stream(control_current(), flags == 0);
    return flags <= NON_BLOCKING ? 0 : TIDE_CU_INVALID_VALUE;
}

void entry_stream_ends(lane *gone)
{
    gone->live = false;
    set_join(&gone->context->gone, &gone->tail);
}

ENTRY(cuStreamDestroy, CURRENT, (tide_cu_stream handle), (handle))
{
    if ((uintptr_t)handle <= HANDLE_PER_THREAD)
        return INVALID_HANDLE;
    entry_stream_ends(entry_stream(handle));
    return 0;
}

/* Asked whether it is over, or waited for. */
static int settle_stream(void *handle, const char *what, bool waits)
{
    lane *on = entry_stream(handle);
    int result = capture_own(on, what);
    result = result != 0 ? result : capture_implicit(on, what);
    result = result != 0 ? result : control_unsafe(what);
    set tail = model_tail(on);
    if (result != 0 || (!waits && !model_done(&tail)))
        return result != 0 ? result : TIDE_CU_NOT_READY;
    model_finish(&tail);
    return 0;
}

RETURNS(cuStreamSynchronize, CURRENT, (tide_cu_stream handle), (handle),
        settle_stream(handle, "cuStreamSynchronize", true))
RETURNS(cuStreamQuery, CURRENT, (tide_cu_stream handle), (handle),
        settle_stream(handle, "cuStreamQuery", false))

ENTRY(cuStreamIsCapturing, CURRENT, (tide_cu_stream handle, int *state), (handle, state))
{
    const lane *on = entry_stream(handle);
    if (capture_blocks(on)) /* this question alone spoils nothing */
        return CAPTURE_IMPLICIT;
    *state = on->capture == NULL ? 0 : on->capture->spoiled ? 2 : 1;
    return 0;
}

ENTRY(cuStreamGetId, CURRENT, (tide_cu_stream handle, unsigned long long *number), (handle, number))
{
    const lane *on = entry_stream(handle);
    *number = on->number;
    int result = capture_own(on, "cuStreamGetId");
    return result != 0 ? result : capture_implicit(on, "cuStreamGetId");
}

ENTRY(cuStreamGetCtx, CURRENT, (tide_cu_stream handle, tide_cu_context *out), (handle, out))
{
    const lane *on = entry_stream(handle);
    *out = (tide_cu_context)(void *)on->context;
    return capture_implicit(on, "cuStreamGetCtx");
}

/* Fills and copies need the context of their stream. */
int entry_queue(void *handle, const work *one)
{
    lane *on = entry_stream(handle);
    if (on->context != control_current()) {
        fake_complain("%s in another context than its stream's", one->what);
        return INVALID_CONTEXT;
    }
    for (unsigned i = 0; i < one->range_count && !one->between; i++) {
        const context *owner = memory_owner((uint64_t)(uintptr_t)one->ranges[i].data);
        if (owner != NULL && owner != on->context)
            fake_complain("%s of device %u uses memory of another", one->what, on->context->device);
    }
    int result = capture_implicit(on, one->what);
    if (result == 0)
        model_queue(on, one);
    return result;
}

/* ---- code (code.c) -------------------------------------------------------------------------- */

ENTRY(cuModuleLoadDataEx, CURRENT,
      (tide_cu_module * out, const void *image, unsigned count, int *options, void **values),
      (out, image, count, options, values))
{
    (void)count, (void)options, (void)values;
    return code_load(image, out);
}

RETURNS(cuModuleUnload, SAFE, (tide_cu_module module), (module), code_unload(module))
RETURNS(cuModuleGetFunction, CURRENT,
        (tide_cu_function * out, tide_cu_module module, const char *name), (out, module, name),
        code_find(module, name, out))

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

ENTRY(cuLaunchKernel, CURRENT,
      (tide_cu_function function, unsigned x, unsigned y, unsigned z, unsigned group,
       unsigned group_y, unsigned group_z, unsigned shared, tide_cu_stream stream, void **values,
       void **extra),
      (function, x, y, z, group, group_y, group_z, shared, stream, values, extra))
{
    const unsigned shape[] = {x, y, z, group, group_y, group_z, shared};
    return extra != NULL ? TIDE_CU_INVALID_VALUE : code_start(function, shape, values, stream);
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

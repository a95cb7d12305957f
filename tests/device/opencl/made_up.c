/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "made_up.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "tests/gate.h"

bool made_up_inside, made_up_no_room, made_up_buffers;
unsigned made_up_ends, made_up_objects, made_up_waits;
void (*made_up_callback)(void);

enum { IN_DRIVER = 1, AFTER_QUESTION = 2 };

static bool down;        /* atomic: a driver's handler has run         */
static unsigned passing; /* atomic: calls that do not stop at the gate */

/* ---- the drivers ---------------------------------------------------------------------------- */

static struct object {
    bool used;
} platforms[MADE_UP_PLATFORMS], contexts[MADE_UP_PLATFORMS], thing;

static int32_t called(void)
{
    if (__atomic_load_n(&down, __ATOMIC_SEQ_CST))
        _exit(MADE_UP_CALLED_LATE);
    return TIDE_CL_SUCCESS;
}

static int32_t linger(void)
{
    if (made_up_callback != NULL) {
        made_up_callback();
    } else if (gate_is_at(IN_DRIVER) && __atomic_load_n(&passing, __ATOMIC_RELAXED) != 0) {
        __atomic_fetch_sub(&passing, 1, __ATOMIC_RELAXED);
    } else if (gate_is_at(IN_DRIVER)) {
        __atomic_store_n(&made_up_inside, true, __ATOMIC_SEQ_CST);
        gate_pass(IN_DRIVER);
        __atomic_store_n(&made_up_inside, false, __ATOMIC_SEQ_CST);
    }
    return called();
}

void made_up_stop_after(unsigned calls)
{
    __atomic_store_n(&passing, calls, __ATOMIC_RELAXED);
    gate_close(IN_DRIVER);
}

void made_up_stop_after_question(void)
{
    gate_close(AFTER_QUESTION);
}

void made_up_wait_stopped(void)
{
    gate_wait_reached();
}

void made_up_let_go(void)
{
    gate_let_pass();
}

static void end_driver(void)
{
    made_up_ends++;
    made_up_at_end();
    __atomic_store_n(&down, true, __ATOMIC_SEQ_CST);
}

static int32_t get_platforms(uint32_t room, tide_cl_platform *out, uint32_t *count)
{
    for (uint32_t i = 0; i < MADE_UP_PLATFORMS && i < room; i++)
        out[i] = (tide_cl_platform)&platforms[i];
    *count = MADE_UP_PLATFORMS;
    return called();
}

/* The one device of a platform has the platform's handle. */
static int32_t get_devices(tide_cl_platform platform, uint64_t type, uint32_t room,
                           tide_cl_device *out, uint32_t *count)
{
    (void)type;
    if (room > 0)
        *out = (tide_cl_device)platform;
    *count = 1;
    return called();
}

static int32_t get_info(tide_cl_device device, uint32_t what, size_t bytes, void *out, size_t *size)
{
    (void)device, (void)size;
    const uint64_t memory = made_up_buffers ? 0 : TIDE_CL_SVM_COARSE;
    if (what == TIDE_CL_DEVICE_SVM_CAPABILITIES && bytes == sizeof memory)
        memcpy(out, &memory, sizeof memory);
    return called();
}

/* By the linker's name: the one that the tests replace would fail for the driver as well. */
int __real_atexit(void (*function)(void));

static tide_cl_context make_context(const intptr_t *properties, uint32_t count,
                                    const tide_cl_device *device,
                                    void (*notify)(const char *, const void *, size_t, void *),
                                    void *user, int32_t *error)
{
    (void)properties, (void)count, (void)notify, (void)user;
    struct object *platform = (struct object *)*device;
    if (!platform->used && __real_atexit(end_driver) != 0)
        abort();
    platform->used = true;
    made_up_objects++;
    *error = linger();
    return (tide_cl_context)&contexts[platform - platforms];
}

static int32_t release_context(tide_cl_context context)
{
    (void)context;
    made_up_objects--;
    return called();
}

static tide_cl_queue make_queue(tide_cl_context context, tide_cl_device device,
                                const uint64_t *properties, int32_t *error)
{
    (void)context, (void)device, (void)properties;
    made_up_objects++;
    *error = called();
    return (tide_cl_queue)&thing;
}

static int32_t keep_queue(tide_cl_queue queue)
{
    (void)queue;
    made_up_objects++;
    return called();
}

/* Each is of the first device. */
static int32_t ask_queue(tide_cl_queue queue, uint32_t what, size_t bytes, void *out, size_t *size)
{
    (void)queue, (void)size;
    const void *object = what == TIDE_CL_QUEUE_CONTEXT  ? &contexts[0]
                         : what == TIDE_CL_QUEUE_DEVICE ? &platforms[0]
                                                        : NULL; /* no properties */
    if (bytes != sizeof object)
        abort();
    memcpy(out, &object, bytes);
    return linger();
}

static int32_t release_queue(tide_cl_queue queue)
{
    (void)queue;
    made_up_objects--;
    return called();
}

static void *allocate(tide_cl_context context, uint64_t flags, size_t bytes, uint32_t align)
{
    (void)context, (void)flags;
    (void)linger();
    return aligned_alloc(align, bytes);
}

static tide_cl_mem make_buffer(tide_cl_context context, uint64_t flags, size_t bytes, void *host,
                               int32_t *error)
{
    (void)context, (void)flags, (void)bytes, (void)host;
    *error = called();
    return (tide_cl_mem)&thing;
}

static tide_cl_mem make_part(tide_cl_mem of, uint64_t flags, uint32_t what, const void *region,
                             int32_t *error)
{
    (void)flags, (void)what, (void)region;
    *error = called();
    return of;
}

static int32_t release_buffer(tide_cl_mem buffer)
{
    (void)buffer;
    return called();
}

static int32_t queue_free(tide_cl_queue queue, uint32_t count, void **pointers,
                          void (*notify)(tide_cl_queue, uint32_t, void **, void *), void *user,
                          uint32_t befores, const tide_cl_event *before, tide_cl_event *event)
{
    (void)queue, (void)count, (void)notify, (void)user, (void)befores, (void)before, (void)event;
    free(pointers[0]);
    return linger();
}

static int32_t queue_fill(tide_cl_queue queue, void *data, const void *pattern,
                          size_t pattern_bytes, size_t bytes, uint32_t befores,
                          const tide_cl_event *before, tide_cl_event *event)
{
    (void)queue, (void)data, (void)pattern, (void)pattern_bytes, (void)bytes;
    (void)befores, (void)before, (void)event;
    return linger();
}

static int32_t queue_copy(tide_cl_queue queue, uint32_t waits, void *to, const void *from,
                          size_t bytes, uint32_t befores, const tide_cl_event *before,
                          tide_cl_event *event)
{
    (void)queue, (void)waits, (void)to, (void)from, (void)bytes;
    (void)befores, (void)before, (void)event;
    return linger();
}

static int32_t queue_barrier(tide_cl_queue queue, uint32_t count, const tide_cl_event *after,
                             tide_cl_event *event)
{
    (void)queue, (void)count, (void)after, (void)event;
    return linger();
}

static int32_t wait_for_events(uint32_t count, const tide_cl_event *events)
{
    (void)count, (void)events;
    return linger();
}

static int32_t queue_mark(tide_cl_queue queue, uint32_t count, const tide_cl_event *after,
                          tide_cl_event *event)
{
    (void)queue, (void)count, (void)after;
    *event = (tide_cl_event)&thing;
    return linger();
}

static int32_t flush(tide_cl_queue queue)
{
    (void)queue;
    return called();
}

static int32_t finish(tide_cl_queue queue)
{
    (void)queue;
    __atomic_fetch_add(&made_up_waits, 1, __ATOMIC_RELAXED);
    return linger();
}

static int32_t release_event(tide_cl_event event)
{
    (void)event;
    return linger();
}

static int32_t tell_event(tide_cl_event event, uint32_t what, size_t bytes, void *out, size_t *size)
{
    (void)event, (void)what, (void)bytes, (void)out, (void)size;
    return linger();
}

static tide_cl_program make_program(tide_cl_context context, uint32_t count, const char **texts,
                                    const size_t *bytes, int32_t *error)
{
    (void)context, (void)count, (void)texts, (void)bytes;
    *error = called();
    return (tide_cl_program)&thing;
}

static int32_t build_program(tide_cl_program program, uint32_t count, const tide_cl_device *on,
                             const char *options, void (*notify)(tide_cl_program, void *),
                             void *user)
{
    (void)program, (void)count, (void)on, (void)options, (void)notify, (void)user;
    return linger();
}

static tide_cl_kernel make_kernel(tide_cl_program program, const char *name, int32_t *error)
{
    (void)program, (void)name;
    *error = linger();
    return (tide_cl_kernel)&thing;
}

static int32_t release_kernel(tide_cl_kernel kernel)
{
    (void)kernel;
    return called();
}

static int32_t queue_launch(tide_cl_queue queue, tide_cl_kernel kernel, uint32_t dimensions,
                            const size_t *offset, const size_t *global, const size_t *local,
                            uint32_t befores, const tide_cl_event *before, tide_cl_event *event)
{
    (void)queue, (void)kernel, (void)dimensions, (void)offset, (void)global, (void)local;
    (void)befores, (void)before, (void)event;
    return linger();
}

static int32_t release_program(tide_cl_program program)
{
    (void)program;
    return linger();
}

/* ---- the linker, and the C library ---------------------------------------------------------- */

static const char library[] = "an ICD loader of the test";

void *__real_dlopen(const char *path, int flags);
void *__wrap_dlopen(const char *path, int flags);
void *__real_dlsym(void *from, const char *name);
void *__wrap_dlsym(void *from, const char *name);
int __wrap_atexit(void (*function)(void));
int usleep(useconds_t microseconds);

UNOBSERVED void *__wrap_dlopen(const char *path, int flags)
{
    return path == library ? &thing : __real_dlopen(path, flags);
}

/* Each entry point is something, until the table is filled in by hand. */
UNOBSERVED void *__wrap_dlsym(void *from, const char *name)
{
    return from == &thing ? &thing : __real_dlsym(from, name);
}

UNOBSERVED int __wrap_atexit(void (*function)(void))
{
    return made_up_no_room ? -1 : __real_atexit(function);
}

bool __real_tide_opencl_alive(const tide_opencl_device *device);
bool __wrap_tide_opencl_alive(const tide_opencl_device *device);
tide_status __real_tide_opencl_usable(const tide_opencl_device *device, const char *call);
tide_status __wrap_tide_opencl_usable(const tide_opencl_device *device, const char *call);

bool __wrap_tide_opencl_alive(const tide_opencl_device *device)
{
    bool alive = __real_tide_opencl_alive(device);
    gate_pass(AFTER_QUESTION);
    return alive;
}

tide_status __wrap_tide_opencl_usable(const tide_opencl_device *device, const char *call)
{
    tide_status status = __real_tide_opencl_usable(device, call);
    gate_pass(AFTER_QUESTION);
    return status;
}

/* In place of the C library's: who exits waits here. */
int usleep(useconds_t microseconds)
{
    (void)microseconds;
    made_up_at_sleep();
    return 0;
}

/* Else each process that ends takes a second. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "atexit_sleep_ms=50";
}

/* ---- the table ------------------------------------------------------------------------------ */

tide_status made_up_load(void)
{
    tide_opencl_library = library;
    TIDE_FORWARD(tide_opencl_load("a test"));
    tide_opencl = (tide_opencl_calls){
        .clGetPlatformIDs = get_platforms,
        .clGetDeviceIDs = get_devices,
        .clGetDeviceInfo = get_info,
        .clCreateContext = make_context,
        .clReleaseContext = release_context,
        .clCreateCommandQueueWithProperties = make_queue,
        .clReleaseCommandQueue = release_queue,
        .clRetainCommandQueue = keep_queue,
        .clGetCommandQueueInfo = ask_queue,
        .clCreateBuffer = make_buffer,
        .clCreateSubBuffer = make_part,
        .clReleaseMemObject = release_buffer,
        .clSVMAlloc = allocate,
        .clEnqueueSVMFree = queue_free,
        .clEnqueueMarkerWithWaitList = queue_mark,
        .clGetEventInfo = tell_event,
        .clFlush = flush,
        .clFinish = finish,
        .clReleaseEvent = release_event,
        .clCreateProgramWithSource = make_program,
        .clBuildProgram = build_program,
        .clReleaseProgram = release_program,
        .clEnqueueSVMMemFill = queue_fill,
        .clEnqueueSVMMemcpy = queue_copy,
        .clEnqueueBarrierWithWaitList = queue_barrier,
        .clWaitForEvents = wait_for_events,
        .clCreateKernel = make_kernel,
        .clReleaseKernel = release_kernel,
        .clEnqueueNDRangeKernel = queue_launch,
    };
    return TIDE_OK;
}

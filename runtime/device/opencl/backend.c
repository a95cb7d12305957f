/* SPDX-License-Identifier: MIT */
/* OpenCL devices: found, opened, closed. Any driver from OpenCL 2.0 on will do; shared virtual
 * memory is used where there is some. */
#include "runtime/device/backends.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/base/settings.h"
#include "runtime/device/opencl/opencl.h"

enum { DEVICES_MAX = 64, PLATFORMS_MAX = 16 };

static const char call[] = "tide_device_open";

/* ---- finding ------------------------------------------------------------------------------ */

/* Devices are counted over all platforms, in the loader's order. */
static tide_status opencl_find_device(unsigned ordinal, tide_cl_device *found)
{
    tide_cl_platform platforms[PLATFORMS_MAX];
    uint32_t platform_count = 0, before = 0;
    if (tide_opencl.clGetPlatformIDs(PLATFORMS_MAX, platforms, &platform_count) !=
            TIDE_CL_SUCCESS ||
        platform_count == 0)
        return tide_fail(TIDE_ERROR_DEVICE, call,
                         "opencl:%u: %s knows no platform; is a driver installed (Debian: "
                         "pocl-opencl-icd)?",
                         ordinal, tide_opencl_library);
    for (uint32_t i = 0; i < platform_count && i < PLATFORMS_MAX; i++) {
        tide_cl_device devices[DEVICES_MAX];
        uint32_t count = 0;
        if (tide_opencl.clGetDeviceIDs(platforms[i], TIDE_CL_DEVICE_TYPE_ALL, DEVICES_MAX, devices,
                                       &count) != TIDE_CL_SUCCESS)
            continue;
        if (count > DEVICES_MAX)
            count = DEVICES_MAX;
        tide_assert(ordinal >= before); /* else an earlier platform would have had it */
        if (ordinal - before < count) {
            *found = devices[ordinal - before];
            return TIDE_OK;
        }
        before += count;
    }
    return tide_fail(TIDE_ERROR_DEVICE, call, "no device opencl:%u: the drivers know %u", ordinal,
                     before);
}

/* 0 when the driver does not answer. */
static uint64_t opencl_ask_number(tide_cl_device device, uint32_t what, size_t bytes)
{
    uint64_t answer = 0; /* little-endian: a shorter answer fills the low end */
    tide_assert(bytes <= sizeof answer);
    (void)tide_opencl.clGetDeviceInfo(device, what, bytes, &answer, NULL);
    return answer;
}

static void opencl_describe_device(tide_opencl_device *device, unsigned ordinal)
{
    tide_device *base = device->base;
    base->dl = (tide_dl_device){TIDE_DL_OPENCL, (int32_t)ordinal};
    char text[256] = "";
    (void)tide_opencl.clGetDeviceInfo(device->device, TIDE_CL_DEVICE_NAME, sizeof text, text, NULL);
    text[sizeof text - 1] = '\0';
    _Static_assert(sizeof base->description > 95, "so many characters fit");
    snprintf(base->description, sizeof base->description, "%.95s", text);
    base->bytes =
        opencl_ask_number(device->device, TIDE_CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(uint64_t));
    base->integrated = opencl_ask_number(device->device, TIDE_CL_DEVICE_HOST_UNIFIED_MEMORY,
                                         sizeof(uint32_t)) != 0;
}

static tide_status opencl_choose_memory(tide_opencl_device *device)
{
    int wanted = (int)tide_setting_get(TIDE_SETTING_opencl_memory);
    uint64_t svm =
        opencl_ask_number(device->device, TIDE_CL_DEVICE_SVM_CAPABILITIES, sizeof(uint64_t));
    bool shared = (svm & TIDE_CL_SVM_COARSE) != 0; /* which every device has that has any */
    if (wanted == TIDE_OPENCL_SHARED && !shared)
        return tide_fail(TIDE_ERROR_DEVICE, call,
                         "%s has no shared virtual memory, which opencl_memory = %d asks for",
                         device->base->name, wanted);
    if (wanted == TIDE_OPENCL_BEST)
        wanted = shared ? TIDE_OPENCL_SHARED : TIDE_OPENCL_BUFFERS;
    device->memory = wanted;
    tide_assert(wanted == TIDE_OPENCL_SHARED || wanted == TIDE_OPENCL_BUFFERS);
    return TIDE_OK;
}

/* ---- open and close ------------------------------------------------------------------------ */

/* Gives back what there is of queue and context: opening may have failed between them. */
static void opencl_stop_device(tide_opencl_device *device)
{
    if (device->queue != NULL)
        (void)tide_opencl.clReleaseCommandQueue(device->queue);
    if (device->context != NULL)
        (void)tide_opencl.clReleaseContext(device->context);
}

/* The exit is watched at last: what the driver registers as it is used is older then. */
static tide_status opencl_start_device(tide_opencl_device *device, unsigned ordinal)
{
    tide_assert(device->context == NULL && device->base != NULL);
    TIDE_FORWARD(opencl_find_device(ordinal, &device->device));
    opencl_describe_device(device, ordinal);
    TIDE_FORWARD(opencl_choose_memory(device));
    int32_t error = TIDE_CL_SUCCESS;
    device->context = tide_opencl.clCreateContext(NULL, 1, &device->device, NULL, NULL, &error);
    TIDE_FORWARD(tide_opencl_check(device, error, "clCreateContext"));
    device->queue = tide_opencl.clCreateCommandQueueWithProperties(device->context, device->device,
                                                                   NULL, &error);
    TIDE_FORWARD(tide_opencl_check(device, error, "clCreateCommandQueueWithProperties"));
    return tide_driver_watch_exit(TIDE_DRIVER_OPENCL, call);
}

/* A driver that can no longer be called keeps what it has. Once exit has begun so does the device:
 * a thread may still be in the driver with it. */
static void opencl_close_device(tide_device *base)
{
    tide_opencl_device *device = tide_opencl_of(base);
    tide_assert(base->opened == 0 && __atomic_load_n(&base->holds, __ATOMIC_RELAXED) == 0);
    const bool alive = tide_driver_alive(TIDE_DRIVER_OPENCL);
    if (!alive && tide_driver_exiting(TIDE_DRIVER_OPENCL))
        return;
    if (alive) {
        tide_assert(device->span_count == 0);
        (void)tide_opencl.clFinish(device->queue);
        opencl_stop_device(device);
    }
    tide_lock_destroy(&device->lock);
    tide_os_free(device->spans);
    tide_os_free(device);
    base->own = NULL;
}

static const tide_device_methods methods = {
    .allocate = tide_opencl_allocate,
    .release = tide_opencl_release,
    .misplaced = tide_opencl_misplaced,
    .fill = tide_opencl_fill,
    .copy = tide_opencl_copy,
    .order = tide_opencl_order,
    .wait = tide_opencl_wait,
    .wait_all = tide_opencl_wait_all,
    .mark = tide_opencl_mark,
    .mark_done = tide_opencl_mark_done,
    .mark_wait = tide_opencl_mark_wait,
    .mark_drop = tide_opencl_mark_drop,
    .mark_follow = tide_opencl_mark_follow,
    .stream_number = tide_opencl_stream_number,
    .stream_check = tide_opencl_stream_check,
    .buffer = tide_opencl_buffer,
    .close = opencl_close_device,
};

tide_status tide_opencl_open(tide_device *base, unsigned ordinal)
{
    tide_assert(base->own == NULL && base->methods == NULL && base->opened == 0);
    if (!tide_driver_alive(TIDE_DRIVER_OPENCL))
        return tide_driver_refuse(TIDE_DRIVER_OPENCL, call);
    TIDE_FORWARD(tide_opencl_load(call));
    tide_opencl_device *device = tide_os_resize(NULL, sizeof *device);
    if (device == NULL)
        return tide_fail(TIDE_ERROR_MEMORY, call, "no %zu bytes for a device", sizeof *device);
    *device = (tide_opencl_device){.base = base};
    tide_status status = opencl_start_device(device, ordinal);
    if (status != TIDE_OK) {
        opencl_stop_device(device);
        tide_os_free(device);
        return status;
    }
    tide_lock_create(&device->lock, TIDE_FORK_MEMORY);
    base->methods = &methods;
    base->driver = TIDE_DRIVER_OPENCL;
    base->own = device;
    base->context = device->context;
    base->stream = base->service = device->queue;
    return TIDE_OK;
}

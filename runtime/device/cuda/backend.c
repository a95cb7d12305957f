/* SPDX-License-Identifier: MIT */
/* CUDA devices: opened and closed. A device has its primary context, shared with the runtime API
 * and every other user in the process, and a memory pool of its own. What it does stands in
 * memory.c, streams.c and code.c. */
#include "runtime/device/backends.h"

#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/base/settings.h"
#include "runtime/device/cuda/cuda.h"

static const char call[] = "tide_device_open";

static void cuda_close_device(tide_device *device);

static const tide_device_methods methods = {.allocate = tide_cuda_allocate,
                                            .release = tide_cuda_release,
                                            .extend = tide_cuda_extend,
                                            .trim = tide_cuda_trim,
                                            .reserved = tide_cuda_reserved,
                                            .misplaced = tide_cuda_misplaced,
                                            .fill = tide_cuda_fill,
                                            .copy = tide_cuda_copy,
                                            .copy_between = tide_cuda_copy_between,
                                            .order = tide_cuda_order,
                                            .order_both = tide_cuda_order_both,
                                            .wait = tide_cuda_wait,
                                            .wait_all = tide_cuda_wait_all,
                                            .mark = tide_cuda_mark_make,
                                            .mark_done = tide_cuda_mark_done,
                                            .mark_wait = tide_cuda_mark_wait,
                                            .mark_drop = tide_cuda_mark_drop,
                                            .mark_follow = tide_cuda_mark_follow,
                                            .capturing = tide_cuda_capturing,
                                            .stream_number = tide_cuda_stream_number,
                                            .stream_check = tide_cuda_stream_check,
                                            .close = cuda_close_device};

/* ---- what the driver knows of it ---------------------------------------------------------- */

static tide_status cuda_find_device(tide_device *device, unsigned ordinal, tide_cu_device *found)
{
    int count = 0;
    tide_assert(ordinal <= INT32_MAX); /* it goes to the driver as an int */
    TIDE_CUDA_TRY(device, cuDeviceGetCount, &count);
    if (ordinal >= (unsigned)count)
        return tide_fail(TIDE_ERROR_DEVICE, call, "no device cuda:%u: the driver knows %d", ordinal,
                         count);
    TIDE_CUDA_TRY(device, cuDeviceGet, found, (int)ordinal);
    return TIDE_OK;
}

static tide_status cuda_ask(tide_device *device, tide_cu_device of, int attribute, bool *out)
{
    int value = 0;
    TIDE_CUDA_TRY(device, cuDeviceGetAttribute, &value, attribute, of);
    *out = value != 0;
    return TIDE_OK;
}

static tide_status cuda_describe_device(tide_device *device, tide_cu_device of)
{
    TIDE_CUDA_TRY(device, cuDeviceGetName, device->description, (int)sizeof device->description,
                  of);
    TIDE_CUDA_TRY(device, cuDeviceTotalMem, &device->bytes, of);
    TIDE_FORWARD(cuda_ask(device, of, TIDE_CU_DEVICE_INTEGRATED, &device->integrated));
    TIDE_FORWARD(cuda_ask(device, of, TIDE_CU_DEVICE_MANAGED, &device->managed));
    TIDE_FORWARD(cuda_ask(device, of, TIDE_CU_DEVICE_CONCURRENT, &device->concurrent));
    device->concurrent = device->managed && device->concurrent;
    int known = 1; /* drivers that do not know the question can */
    device->exports =
        tide_cu.cuDeviceGetAttribute(&known, TIDE_CU_DEVICE_IPC, of) != TIDE_CU_SUCCESS ||
        known != 0;
    return TIDE_OK;
}

/* ---- its memory pool ---------------------------------------------------------------------- */

/* It keeps all free memory: by default it gives that back at each synchronisation, and re-use would
 * cost thousands of times more. Virtual devices of some hosts have no memory pools: their memory is
 * allocated and freed at once (release.c). */
static tide_status cuda_make_pool(tide_device *device)
{
    tide_cuda *cuda = tide_cuda_of(device);
    bool pools = false;
    uint64_t all = UINT64_MAX;
    TIDE_FORWARD(cuda_ask(device, cuda->ordinal, TIDE_CU_DEVICE_POOLS_SUPPORTED, &pools));
    if (!pools)
        return TIDE_OK;
    const tide_cu_pool_properties properties = {
        .allocation = TIDE_CU_ALLOCATION_PINNED,
        .location = {.type = TIDE_CU_LOCATION_DEVICE, .id = cuda->ordinal}};
    tide_assert(cuda->pool == NULL);
    TIDE_CUDA_TRY(device, cuMemPoolCreate, &cuda->pool, &properties);
    return TIDE_CUDA_CALL(device, cuMemPoolSetAttribute, cuda->pool, TIDE_CU_POOL_RELEASE_THRESHOLD,
                          &all);
}

/* ---- open and close ----------------------------------------------------------------------- */

/* What there is of its parts, while its context is current. The driver ends events, the stream and the memory pool
 * when what is queued there is over. */
static void cuda_end_parts(tide_device *device)
{
    tide_cuda *cuda = tide_cuda_of(device);
    tide_cuda_marks_end(device, true);
    tide_cuda_pages_end(device, true);
    if (cuda->pool != NULL)
        (void)tide_cu.cuMemPoolDestroy(cuda->pool);
    if (cuda->service != NULL)
        (void)tide_cu.cuStreamDestroy(cuda->service);
}

/* What the device has of its own besides its context. Memory by the page is for what is not small, where that is
 * asked for and the device can. */
static tide_status cuda_make_parts(tide_device *device)
{
    tide_cuda *cuda = tide_cuda_of(device);
    TIDE_CUDA_TRY(device, cuStreamCreate, &cuda->service, TIDE_CU_STREAM_NON_BLOCKING);
    TIDE_FORWARD(cuda_make_pool(device));
    if (tide_setting_get(TIDE_SETTING_cuda_memory) != 0)
        TIDE_FORWARD(tide_cuda_pages_begin(device));
    device->extends = cuda->pages != NULL;
    return TIDE_OK;
}

static tide_status cuda_enter_parts(tide_device *device)
{
    tide_cuda_entered entered;
    TIDE_FORWARD(tide_cuda_enter(device, &entered));
    tide_status status = cuda_make_parts(device);
    if (status != TIDE_OK)
        cuda_end_parts(device);
    return tide_cuda_left(entered, status);
}

/* What cuda_retain_context took, also when the context cannot be entered any more. */
static void cuda_release_context(tide_cu_device device)
{
    if (!tide_driver_alive(TIDE_DRIVER_CUDA))
        return;
    int mode = tide_cuda_relax();
    (void)tide_cu.cuDevicePrimaryCtxRelease(device);
    tide_cuda_relax_end(mode);
}

/* Its primary context, the stream and the memory pool; on failure none of them. */
static tide_status cuda_retain_context(tide_device *device)
{
    tide_cuda *cuda = tide_cuda_of(device);
    tide_assert(cuda->context == NULL);
    TIDE_CUDA_TRY(device, cuDevicePrimaryCtxRetain, &cuda->context, cuda->ordinal);
    tide_status status = cuda_enter_parts(device);
    if (status != TIDE_OK)
        (void)tide_cu.cuDevicePrimaryCtxRelease(cuda->ordinal);
    return status;
}

static tide_status cuda_open_found(tide_device *device, unsigned ordinal)
{
    tide_cu_device found = 0;
    tide_assert(device->own == NULL && device->methods == NULL && device->opened == 0);
    TIDE_FORWARD(cuda_find_device(device, ordinal, &found));
    TIDE_FORWARD(cuda_describe_device(device, found));
    tide_cuda *cuda = tide_os_resize(NULL, sizeof *cuda);
    if (cuda == NULL)
        return tide_fail(TIDE_ERROR_MEMORY, call, "no memory for device %s", device->name);
    *cuda = (tide_cuda){.ordinal = found, .lock = TIDE_LOCK(TIDE_FORK_MEMORY)};
    device->own = cuda;
    tide_status status = cuda_retain_context(device);
    if (status != TIDE_OK) {
        tide_os_free(cuda);
        device->own = NULL;
        return status;
    }
    device->methods = &methods;
    device->driver = TIDE_DRIVER_CUDA;
    device->dl = (tide_dl_device){TIDE_DL_CUDA, (int32_t)ordinal};
    device->context = cuda->context;
    device->service = cuda->service;
    return TIDE_OK;
}

tide_status tide_cuda_open(tide_device *device, unsigned ordinal)
{
    if (!tide_driver_alive(TIDE_DRIVER_CUDA))
        return tide_driver_refuse(TIDE_DRIVER_CUDA, call);
    TIDE_FORWARD(tide_cuda_load());
    int mode = tide_cuda_relax();
    tide_status status = cuda_open_found(device, ordinal);
    tide_cuda_relax_end(mode);
    return status;
}

/* Memory that cannot be given back goes with the context, at the latest. Once exit has begun all is
 * left as it is: a thread may still be in the driver with it. */
static void cuda_close_device(tide_device *device)
{
    tide_cuda *cuda = tide_cuda_of(device);
    tide_cuda_entered entered;
    tide_assert(device->opened == 0 && __atomic_load_n(&device->holds, __ATOMIC_RELAXED) == 0);
    const tide_status status = tide_cuda_enter(device, &entered);
    if (status != TIDE_OK && tide_device_exiting(device))
        return;
    if (status == TIDE_OK) {
        cuda_end_parts(device);
        tide_cuda_leave(entered);
    }
    cuda_release_context(cuda->ordinal);
    tide_cuda_marks_end(device, false);
    tide_cuda_pages_end(device, false);
    tide_assert(cuda->free_marks == NULL);
    tide_lock_destroy(&cuda->lock);
    tide_os_free(cuda);
    device->own = NULL;
}

/* SPDX-License-Identifier: MIT */
/* CUDA devices: opened and closed. A device has its primary context, shared with the runtime API
 * and every other user in the process, and a memory pool of its own. What it does stands in
 * memory.c, streams.c and code.c. */
#include "runtime/device/cuda/backend.h"

#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/device/cuda/cuda.h"

static const char call[] = "tide_device_open";

static void *cuda_no_buffer(tide_device *device, const void *data, size_t *offset)
{
    (void)device, (void)data, (void)offset;
    return NULL;
}

static void cuda_close_device(tide_device *device);

static const tide_device_methods methods = {.allocate = tide_cuda_allocate,
                                            .release = tide_cuda_release,
                                            .fill = tide_cuda_fill,
                                            .copy = tide_cuda_copy,
                                            .order = tide_cuda_order,
                                            .wait = tide_cuda_wait,
                                            .wait_all = tide_cuda_wait_all,
                                            .mark = tide_cuda_mark_make,
                                            .mark_done = tide_cuda_mark_done,
                                            .mark_wait = tide_cuda_mark_wait,
                                            .mark_drop = tide_cuda_mark_drop,
                                            .mark_follow = tide_cuda_mark_follow,
                                            .capturing = tide_cuda_capturing,
                                            .stream_number = tide_cuda_stream_number,
                                            .buffer = cuda_no_buffer,
                                            .load = tide_cuda_module,
                                            .unload = tide_cuda_module_drop,
                                            .kernel = tide_cuda_kernel,
                                            .launch = tide_cuda_launch,
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

static tide_status cuda_describe_device(tide_device *device, tide_cu_device of)
{
    int integrated = 0, pools = 0;
    TIDE_CUDA_TRY(device, cuDeviceGetName, device->description, (int)sizeof device->description,
                  of);
    TIDE_CUDA_TRY(device, cuDeviceTotalMem, &device->bytes, of);
    TIDE_CUDA_TRY(device, cuDeviceGetAttribute, &integrated, TIDE_CU_DEVICE_INTEGRATED, of);
    TIDE_CUDA_TRY(device, cuDeviceGetAttribute, &pools, TIDE_CU_DEVICE_POOLS_SUPPORTED, of);
    device->integrated = integrated != 0;
    if (pools == 0)
        return tide_fail(TIDE_ERROR_DEVICE, call,
                         "%s (%s) has no stream-ordered allocator (cuMemAllocFromPoolAsync)",
                         device->name, device->description);
    return TIDE_OK;
}

/* ---- its memory pool ---------------------------------------------------------------------- */

/* The pool keeps all free memory. By default it gives that back at each synchronisation, and re-use
 * would cost thousands of times more. */
static tide_status cuda_set_pool_threshold(tide_device *device)
{
    uint64_t all = UINT64_MAX;
    TIDE_CUDA_TRY(device, cuMemPoolSetAttribute, tide_cuda_of(device)->pool,
                  TIDE_CU_POOL_RELEASE_THRESHOLD, &all);
    return TIDE_OK;
}

static tide_status cuda_make_pool(tide_device *device)
{
    tide_cuda *cuda = tide_cuda_of(device);
    const tide_cu_pool_properties properties = {
        .allocation = TIDE_CU_ALLOCATION_PINNED,
        .location = {.type = TIDE_CU_LOCATION_DEVICE, .id = cuda->ordinal}};
    tide_assert(cuda->pool == NULL);
    TIDE_CUDA_TRY(device, cuMemPoolCreate, &cuda->pool, &properties);
    tide_status status = cuda_set_pool_threshold(device);
    if (status != TIDE_OK)
        (void)tide_cu.cuMemPoolDestroy(cuda->pool);
    return status;
}

/* ---- open and close ----------------------------------------------------------------------- */

/* Its primary context, and the memory pool; on failure neither. */
static tide_status cuda_retain_context(tide_device *device)
{
    tide_cuda *cuda = tide_cuda_of(device);
    tide_assert(cuda->context == NULL);
    TIDE_CUDA_TRY(device, cuDevicePrimaryCtxRetain, &cuda->context, cuda->ordinal);
    tide_status status = cuda_make_pool(device);
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
    *cuda = (tide_cuda){.ordinal = found, .lock = PTHREAD_MUTEX_INITIALIZER};
    device->own = cuda;
    tide_status status = cuda_retain_context(device);
    if (status != TIDE_OK) {
        tide_os_free(cuda);
        device->own = NULL;
        return status;
    }
    device->methods = &methods;
    device->dl = (tide_dl_device){TIDE_DL_CUDA, (int32_t)ordinal};
    device->context = cuda->context;
    return TIDE_OK;
}

tide_status tide_cuda_open(tide_device *device, unsigned ordinal)
{
    TIDE_FORWARD(tide_cuda_load());
    if (!tide_cuda_begin())
        return tide_fail(TIDE_ERROR_DEVICE, call, "the process is exiting");
    tide_status status = cuda_open_found(device, ordinal);
    tide_cuda_end();
    return status;
}

/* Memory that cannot be given back goes with the context, at the latest. */
static void cuda_close_device(tide_device *device)
{
    tide_cuda *cuda = tide_cuda_of(device);
    tide_cuda_entered entered;
    tide_assert(device->opened == 0 && __atomic_load_n(&device->holds, __ATOMIC_RELAXED) == 0);
    bool reachable = tide_cuda_enter(device, &entered) == TIDE_OK;
    if (reachable)
        (void)tide_cu.cuCtxSynchronize();
    tide_cuda_release_deferred(device, reachable);
    tide_cuda_marks_end(device, reachable);
    if (reachable) {
        (void)tide_cu.cuMemPoolDestroy(cuda->pool);
        tide_cuda_leave(entered);
    }
    if (tide_cuda_begin()) {
        (void)tide_cu.cuDevicePrimaryCtxRelease(cuda->ordinal);
        tide_cuda_end();
    }
    tide_assert(cuda->deferred == NULL && cuda->free_marks == NULL);
    pthread_mutex_destroy(&cuda->lock);
    tide_os_free(cuda);
    device->own = NULL;
}

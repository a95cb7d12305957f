/* SPDX-License-Identifier: MIT */
/* Memory of a CUDA device on its way back: to the driver's pool in the order of a stream, or, where
 * there is no such pool or the stream is captured, when work on the stream is over; and what the
 * driver's pool keeps, back to the system. */
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/device/cuda/cuda.h"
#include "runtime/device/deferred.h"

/* Memory that goes later. */
typedef struct release_later {
    tide_deferred deferred; /* first */
    void *data;
} release_later;

/* What work may use has been waited for. */
static void release_plain(tide_device *device, const void *data)
{
    (void)TIDE_CUDA_CALL(device, cuMemFree, (tide_cu_address)(uintptr_t)data);
}

/* Work on it is over. */
static void release_go(tide_device *device, tide_deferred *deferred)
{
    release_later *later = (release_later *)(void *)deferred;
    const tide_cuda *cuda = tide_cuda_of(device);
    const tide_cu_address data = (tide_cu_address)(uintptr_t)later->data;
    tide_cuda_entered entered;
    if (tide_cuda_enter(device, &entered) == TIDE_OK) {
        if (cuda->pool == NULL)
            release_plain(device, later->data);
        else /* where that fails it is leaked */
            (void)TIDE_CUDA_CALL(device, cuMemFreeAsync, data, cuda->service);
        tide_cuda_leave(entered);
    }
    tide_os_free(later);
}

/* Without memory to remember it is leaked, until the device is closed. */
static void release_defer(tide_device *device, void *stream, void *data)
{
    release_later *later = tide_os_resize(NULL, sizeof *later);
    if (later == NULL)
        return;
    later->data = data;
    tide_deferred_put(device, stream, &later->deferred, release_go);
}

/* Not in the order of the legacy stream beside the capture of a blocking one, which that would end; of a captured
 * stream the driver says so itself, and nothing ends. What a shortage waits for is remembered, too. */
static void release_device(tide_device *device, void *stream, void *data)
{
    const bool ordered =
        tide_cuda_of(device)->pool != NULL &&
        ((uintptr_t)stream > TIDE_CU_STREAM_LEGACY || !tide_cuda_capturing(device, stream));
    tide_cu_result result = ordered
                                ? tide_cu.cuMemFreeAsync((tide_cu_address)(uintptr_t)data, stream)
                                : TIDE_CU_INVALID_VALUE;
    if (result == TIDE_CU_SUCCESS)
        tide_deferred_note(device, stream);
    else
        release_defer(device, stream, data);
}

void tide_cuda_release(tide_device *device, void *stream, int memory, void *data, size_t bytes)
{
    (void)bytes;
    tide_cuda_entered entered;
    tide_assert(data != NULL);
    tide_assert(memory >= TIDE_MEMORY_DEVICE && memory <= TIDE_MEMORY_IPC);
    if (tide_cuda_enter(device, &entered) != TIDE_OK)
        return; /* exiting, or lost: the memory stays the driver's */
    if (memory == TIDE_MEMORY_PINNED)
        (void)TIDE_CUDA_CALL(device, cuMemFreeHost, data);
    else if (memory != TIDE_MEMORY_DEVICE)
        release_plain(device, data); /* what used it is over */
    else if (!tide_cuda_pages_give(device, stream, data))
        release_device(device, stream, data);
    tide_cuda_leave(entered);
    tide_device_count(&device->releases);
}

/* ---- the system --------------------------------------------------------------------------- */

tide_status tide_cuda_trim(tide_device *device, size_t keep)
{
    tide_cu_pool pool = tide_cuda_of(device)->pool;
    tide_cuda_entered entered;
    TIDE_FORWARD(tide_cuda_enter(device, &entered));
    tide_status status = tide_cuda_pages_trim(device, keep);
    keep = tide_cuda_of(device)->pages != NULL ? 0 : keep; /* the pool has what is small */
    tide_status trimmed =
        pool != NULL ? TIDE_CUDA_CALL(device, cuMemPoolTrimTo, pool, keep) : TIDE_OK;
    return tide_cuda_left(entered, trimmed != TIDE_OK ? trimmed : status);
}

tide_status tide_cuda_reserved(tide_device *device, tide_reserved *out)
{
    tide_cu_pool pool = tide_cuda_of(device)->pool;
    uint64_t values[TIDE_CU_POOL_USED_PEAK - TIDE_CU_POOL_RESERVED + 1] = {0};
    tide_status status = TIDE_OK;
    tide_cuda_entered entered;
    TIDE_FORWARD(tide_cuda_enter(device, &entered));
    for (int i = 0; pool != NULL && status == TIDE_OK && i < 4; i++)
        status = TIDE_CUDA_CALL(device, cuMemPoolGetAttribute, pool, TIDE_CU_POOL_RESERVED + i,
                                &values[i]);
    TIDE_FORWARD(tide_cuda_left(entered, status));
    *out = (tide_reserved){.known = pool != NULL,
                           .pool = pool,
                           .reserved = values[0],
                           .reserved_peak = values[1],
                           .used = values[2],
                           .used_peak = values[3]};
    tide_cuda_pages_reserved(device, out);
    return TIDE_OK;
}

/* SPDX-License-Identifier: MIT */
/* Memory of a CUDA device on its way back: released on a stream, deferred while a graph is
 * captured, waited for where there is none, given back to the system.
 *
 * A device with memory pools releases in the order of a stream. The last release on each of some
 * streams is marked: who finds no memory waits for these marks. A device without memory pools
 * releases at once, so its memory leaves when a mark behind its last use has been passed. */
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/device/cuda/cuda.h"

static tide_cu_address release_address(const void *data)
{
    return (tide_cu_address)(uintptr_t)data;
}

/* ---- without memory pools ----------------------------------------------------------------- */

static void release_plain(tide_device *device, const void *data)
{
    int mode = tide_cuda_relax();
    tide_cu_result result = tide_cu.cuMemFree(release_address(data));
    tide_cuda_relax_end(mode);
    if (result != TIDE_CU_SUCCESS)
        (void)tide_cuda_fail(device, "cuMemFree", result);
}

/* The memory goes; a mark that cannot be waited for is of a device where nothing runs. */
static void release_end_leaving(tide_device *device, tide_cuda_leaving *one)
{
    tide_assert(one->mark != NULL && one->data != NULL);
    (void)tide_cuda_mark_wait(device, one->mark);
    release_plain(device, one->data);
    tide_cuda_mark_drop(device, one->mark);
    tide_os_free(one);
}

static void release_keep_leaving(tide_cuda *cuda, tide_cuda_leaving *one)
{
    tide_lock_take(&cuda->lock);
    one->next = cuda->leaving;
    cuda->leaving = one;
    tide_lock_let_go(&cuda->lock);
}

/* What has been passed goes; all of it if the host is to wait. True: something went. */
static bool release_settle_leaving(tide_device *device, bool wait)
{
    tide_cuda *cuda = tide_cuda_of(device);
    bool any = false;
    tide_lock_take(&cuda->lock);
    tide_cuda_leaving *one = cuda->leaving, *next;
    cuda->leaving = NULL;
    tide_lock_let_go(&cuda->lock);
    for (; one != NULL; one = next) {
        next = one->next;
        bool goes = wait || tide_cuda_mark_done(device, one->mark);
        any = any || goes;
        if (goes)
            release_end_leaving(device, one);
        else
            release_keep_leaving(cuda, one);
    }
    return any;
}

/* Without memory or an event for that, the host waits. */
static void release_later(tide_device *device, void *stream, void *data)
{
    tide_cuda *cuda = tide_cuda_of(device);
    tide_cuda_leaving *one = tide_os_resize(NULL, sizeof *one);
    void *mark = one != NULL ? tide_cuda_mark_make(device, stream) : NULL;
    if (mark == NULL) {
        tide_os_free(one);
        (void)tide_cuda_wait(device, stream);
        release_plain(device, data);
        return;
    }
    *one = (tide_cuda_leaving){.data = data, .mark = mark};
    release_keep_leaving(cuda, one);
}

/* ---- with them ---------------------------------------------------------------------------- */

/* The stream's own place, or the next one to be used again. Lock held. */
static tide_cuda_released *release_place_of(tide_cuda *cuda, uint64_t number)
{
    for (size_t i = 0; i < TIDE_CUDA_RELEASED_MAX; i++)
        if (cuda->released[i].number == number)
            return &cuda->released[i];
    return &cuda->released[cuda->released_next++ % TIDE_CUDA_RELEASED_MAX];
}

/* Marks the last release on the stream. Without an event nobody can wait for it. */
static void release_mark(tide_device *device, void *stream)
{
    tide_cuda *cuda = tide_cuda_of(device);
    const tide_cuda_released now = {.number = tide_cuda_stream_number(device, stream),
                                    .mark = tide_cuda_mark_make(device, stream)};
    if (now.mark == NULL)
        return;
    tide_lock_take(&cuda->lock);
    tide_cuda_released *place = release_place_of(cuda, now.number), before = *place;
    *place = now;
    tide_lock_let_go(&cuda->lock);
    if (before.mark != NULL)
        tide_cuda_mark_drop(device, before.mark);
}

void tide_cuda_give_back(tide_device *device, void *stream, void *data)
{
    if (tide_cuda_of(device)->pool == NULL) {
        release_later(device, stream, data);
        return;
    }
    tide_cu_result result = tide_cu.cuMemFreeAsync(release_address(data), stream);
    if (result != TIDE_CU_SUCCESS)
        (void)tide_cuda_fail(device, "cuMemFreeAsync", result);
    else
        release_mark(device, stream);
}

/* ---- where there is no memory ------------------------------------------------------------- */

static tide_cuda_released release_take_mark(tide_cuda *cuda)
{
    tide_cuda_released taken = {0};
    tide_lock_take(&cuda->lock);
    for (size_t i = 0; i < TIDE_CUDA_RELEASED_MAX && taken.mark == NULL; i++) {
        taken = cuda->released[i];
        cuda->released[i] = (tide_cuda_released){0};
    }
    tide_lock_let_go(&cuda->lock);
    return taken;
}

bool tide_cuda_wait_released(tide_device *device)
{
    bool waited = false;
    for (tide_cuda_released one; (one = release_take_mark(tide_cuda_of(device))).mark != NULL;) {
        (void)tide_cuda_mark_wait(device, one.mark);
        tide_cuda_mark_drop(device, one.mark);
        waited = true;
    }
    return release_settle_leaving(device, true) || waited;
}

/* ---- deferred ----------------------------------------------------------------------------- */

/* Takes one that was given up on this stream; NULL: none. */
static tide_cuda_deferred *release_take_deferred(tide_cuda *cuda, uint64_t number)
{
    tide_lock_take(&cuda->lock);
    tide_cuda_deferred **place = &cuda->deferred, *one;
    while ((one = *place) != NULL && one->number != number)
        place = &one->next;
    if (one != NULL)
        __atomic_store_n(place, one->next, __ATOMIC_RELAXED);
    tide_lock_let_go(&cuda->lock);
    return one;
}

void tide_cuda_release_deferred_on(tide_device *device, void *stream)
{
    tide_cuda *cuda = tide_cuda_of(device);
    if (cuda->pool == NULL)
        (void)release_settle_leaving(device, false);
    if (__atomic_load_n(&cuda->deferred, __ATOMIC_RELAXED) == NULL)
        return;
    uint64_t number = tide_cuda_stream_number(device, stream);
    for (tide_cuda_deferred *one; (one = release_take_deferred(cuda, number)) != NULL;) {
        tide_assert(one->data != NULL);
        tide_cuda_give_back(device, stream, one->data);
        tide_os_free(one);
    }
}

/* Remembers memory that a capture does not let go. Without memory for that it is leaked. */
static void release_defer(tide_device *device, void *stream, void *data)
{
    tide_cuda *cuda = tide_cuda_of(device);
    uint64_t number = tide_cuda_stream_number(device, stream);
    tide_cuda_deferred *one = tide_os_resize(NULL, sizeof *one);
    if (one == NULL)
        return;
    tide_lock_take(&cuda->lock);
    *one = (tide_cuda_deferred){.next = cuda->deferred, .number = number, .data = data};
    __atomic_store_n(&cuda->deferred, one, __ATOMIC_RELAXED);
    tide_lock_let_go(&cuda->lock);
}

/* ---- release ------------------------------------------------------------------------------ */

static void release_device(tide_device *device, void *stream, void *data)
{
    if (tide_cuda_capturing(device, stream)) {
        release_defer(device, stream, data);
        return;
    }
    tide_cuda_release_deferred_on(device, stream);
    tide_cuda_give_back(device, stream, data);
}

static void release_pinned(tide_device *device, void *data)
{
    int mode = tide_cuda_relax();
    tide_cu_result result = tide_cu.cuMemFreeHost(data);
    tide_cuda_relax_end(mode);
    if (result != TIDE_CU_SUCCESS)
        (void)tide_cuda_fail(device, "cuMemFreeHost", result);
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
        release_pinned(device, data);
    else if (memory != TIDE_MEMORY_DEVICE)
        release_plain(device, data); /* what used it is over */
    else
        release_device(device, stream, data);
    tide_cuda_leave(entered);
    tide_device_count(&device->releases);
}

/* ---- the system --------------------------------------------------------------------------- */

tide_status tide_cuda_trim(tide_device *device, size_t keep, bool wait)
{
    tide_cu_pool pool = tide_cuda_of(device)->pool;
    tide_cuda_entered entered;
    TIDE_FORWARD(tide_cuda_enter(device, &entered));
    if (wait)
        (void)tide_cuda_wait_released(device);
    int mode = tide_cuda_relax();
    tide_cu_result result = pool != NULL ? tide_cu.cuMemPoolTrimTo(pool, keep) : TIDE_CU_SUCCESS;
    tide_cuda_relax_end(mode);
    tide_cuda_leave(entered);
    return result == TIDE_CU_SUCCESS ? TIDE_OK : tide_cuda_fail(device, "cuMemPoolTrimTo", result);
}

tide_status tide_cuda_reserved(tide_device *device, tide_reserved *out)
{
    tide_cu_pool pool = tide_cuda_of(device)->pool;
    uint64_t values[TIDE_CU_POOL_USED_PEAK - TIDE_CU_POOL_RESERVED + 1] = {0};
    tide_cu_result result = TIDE_CU_SUCCESS;
    tide_cuda_entered entered;
    TIDE_FORWARD(tide_cuda_enter(device, &entered));
    for (int i = 0; pool != NULL && result == TIDE_CU_SUCCESS && i < 4; i++)
        result = tide_cu.cuMemPoolGetAttribute(pool, TIDE_CU_POOL_RESERVED + i, &values[i]);
    tide_cuda_leave(entered);
    if (result != TIDE_CU_SUCCESS)
        return tide_cuda_fail(device, "cuMemPoolGetAttribute", result);
    *out = (tide_reserved){.known = pool != NULL,
                           .pool = pool,
                           .reserved = values[0],
                           .reserved_peak = values[1],
                           .used = values[2],
                           .used_peak = values[3]};
    return TIDE_OK;
}

/* ---- end ---------------------------------------------------------------------------------- */

void tide_cuda_release_end(tide_device *device, bool reachable)
{
    tide_cuda *cuda = tide_cuda_of(device);
    for (size_t i = 0; i < TIDE_CUDA_RELEASED_MAX; i++)
        if (cuda->released[i].mark != NULL)
            tide_cuda_mark_drop(device, cuda->released[i].mark);
    memset(cuda->released, 0, sizeof cuda->released);
    for (tide_cuda_leaving *one = cuda->leaving; one != NULL; one = cuda->leaving) {
        cuda->leaving = one->next;
        if (reachable) {
            release_end_leaving(device, one);
            continue;
        }
        tide_cuda_mark_drop(device, one->mark);
        tide_os_free(one);
    }
}

void tide_cuda_release_deferred(tide_device *device, bool reachable)
{
    tide_cuda *cuda = tide_cuda_of(device);
    for (tide_cuda_deferred *one = cuda->deferred; one != NULL; one = cuda->deferred) {
        cuda->deferred = one->next;
        tide_assert(one->data != NULL);
        if (reachable)
            tide_cuda_give_back(device, cuda->service, one->data);
        tide_os_free(one);
    }
}

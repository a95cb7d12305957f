/* SPDX-License-Identifier: MIT */
/* Each thread's own pools, one of the host and one of each stream of a device: made on first use,
 * discarded when the thread ends.
 *
 * After fork the child's only thread keeps its pool: the owner is known by its pthread id, which
 * fork preserves. Pools of the parent's other threads are lost to it (runtime/pool/pool.c). */
#include <tidepool/device.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/thread.h"
#include "runtime/pool/pool.h"

static _Thread_local tide_pool *local_pool;

/* The thread's pools of devices, one for each stream, the latest first. */
static _Thread_local tide_pool *local_on_devices;

static void local_end(tide_pool *pool)
{
    tide_pool_discard(pool, (tide_place){TIDE_NOWHERE});
}

/* Out of the list, the latest of the device (NULL: of any) first; NULL: there is none. */
static tide_pool *local_take(const tide_device *device)
{
    tide_pool **link = &local_on_devices;
    while (*link != NULL && device != NULL && (*link)->core->device != device)
        link = &(*link)->core->owner.next_local;
    tide_pool *taken = *link;
    if (taken != NULL)
        *link = taken->core->owner.next_local;
    return taken;
}

/* Runs when the thread ends. A later destructor of the same thread may enter a scope and so make a
 * new pool: the next round of destructors discards it. */
static void local_discard(void)
{
    tide_pool *pool = local_pool;
    tide_assert(pool != NULL || local_on_devices != NULL);
    local_pool = NULL;
    if (pool != NULL)
        local_end(pool);
    while ((pool = local_take(NULL)) != NULL)
        local_end(pool);
}

/* There was nothing to keep after all. */
static void local_forget(void)
{
    if (local_pool == NULL && local_on_devices == NULL)
        tide_thread_forget(TIDE_THREAD_POOL);
}

/* Without somebody to end it with the thread, the thread gets no pool. */
static tide_pool *local_make(tide_device *device, void *stream, const char *call)
{
    char name[TIDE_OS_NAME_BYTES];
    tide_os_thread_name(name);
    tide_status kept = tide_thread_keep(TIDE_THREAD_POOL, local_discard);
    if (kept != TIDE_OK) {
        tide_fail(kept, call, "thread '%s' cannot keep a pool: %s", name,
                  kept == TIDE_ERROR_LIMIT ? "the process has no thread key left"
                                           : "no memory for what is done when the thread ends");
        return NULL;
    }
    tide_pool *pool =
        tide_pool_create(&(tide_pool_options){.name = name, .device = device, .stream = stream});
    if (pool == NULL) {
        local_forget();
        return NULL;
    }
    tide_assert(tide_pool_owner(pool->core) == tide_os_thread());
    __atomic_store_n(&pool->core->owner.local, true, __ATOMIC_RELAXED);
    return pool;
}

static TIDE_COLD tide_pool *local_make_first(void)
{
    return local_pool = local_make(NULL, NULL, "tide_pool_local");
}

tide_pool *tide_pool_local(void)
{
    return TIDE_LIKELY(local_pool != NULL) ? local_pool : local_make_first();
}

/* ---- on devices --------------------------------------------------------------------------- */

/* By the stream's number: handles are used again. */
static tide_pool *local_find(const tide_device *device, uint64_t stream)
{
    tide_pool *pool = local_on_devices;
    while (pool != NULL &&
           (pool->core->device != device || pool->core->streams.own_number != stream))
        pool = pool->core->owner.next_local;
    return pool;
}

/* The device is held meanwhile. */
static tide_pool *local_make_on(tide_device *device, void *stream, const char *call)
{
    tide_pool *pool = local_make(device, stream, call);
    if (pool == NULL)
        return NULL;
    pool->core->owner.next_local = local_on_devices;
    return local_on_devices = pool;
}

tide_pool *tide_pool_local_on(tide_device *device, void *stream)
{
    const char *call = "tide_pool_local_on";
    if (device == NULL) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the device is NULL");
        return NULL;
    }
    if (device == &tide_device_host && stream == NULL)
        return tide_pool_local();
    if (tide_device_hold(device, call) != TIDE_OK)
        return NULL;
    tide_pool *pool = local_find(device, device->methods->stream_number(device, stream));
    if (pool == NULL)
        pool = local_make_on(device, stream, call);
    tide_device_drop(device);
    return pool;
}

static tide_status local_check_end(const tide_device *device, const char *call)
{
    for (tide_pool *pool = local_on_devices; pool != NULL; pool = pool->core->owner.next_local) {
        if (pool->core->device != device)
            continue;
        TIDE_FORWARD(tide_pool_use(pool, call));
        if (!tide_at_root(pool))
            return tide_fail(TIDE_ERROR_STATE, call, "pool '%s' has %zu open scopes or marks",
                             pool->core->name, tide_depth(pool));
    }
    return TIDE_OK;
}

/* From the list's start again after each: deleters are called, which may end others, too. */
tide_status tide_pool_local_end(tide_device *device)
{
    const char *call = "tide_pool_local_end";
    if (device == NULL || device == &tide_device_host)
        return tide_fail(TIDE_ERROR_ARGUMENT, call,
                         "the %s has no pools that end before the thread",
                         device == NULL ? "NULL device" : "host");
    TIDE_FORWARD(local_check_end(device, call));
    for (tide_pool *pool; (pool = local_take(device)) != NULL;)
        local_end(pool);
    local_forget();
    return TIDE_OK;
}

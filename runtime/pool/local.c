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

/* The thread's pools of devices, one for each stream. */
typedef struct local_pools {
    struct local_pools *next;
    tide_pool *pool;
    tide_device *device;
    uint64_t stream; /* its number: handles are used again */
} local_pools;

static _Thread_local local_pools *local_on_devices;

/* Runs when the thread ends. A later destructor of the same thread may enter a scope and so make a
 * new pool: the next round of destructors discards it. */
static void local_discard(void)
{
    tide_pool *pool = local_pool;
    tide_assert(pool != NULL || local_on_devices != NULL);
    local_pool = NULL;
    if (pool != NULL)
        tide_pool_discard(pool, (tide_place){TIDE_NOWHERE});
    for (local_pools *one; (one = local_on_devices) != NULL;) {
        local_on_devices = one->next;
        tide_pool_discard(one->pool, (tide_place){TIDE_NOWHERE});
        tide_os_free(one);
    }
}

/* Without somebody to end it with the thread, the thread gets no pool. */
static tide_status local_keep(const char *call)
{
    char name[TIDE_OS_NAME_BYTES];
    tide_status kept = tide_thread_keep(TIDE_THREAD_POOL, local_discard);
    if (kept == TIDE_OK)
        return TIDE_OK;
    tide_os_thread_name(name);
    return tide_fail(kept, call, "thread '%s' cannot keep a pool: %s", name,
                     tide_thread_refusal(kept));
}

/* There was nothing to keep after all. */
static void local_forget(void)
{
    if (local_pool == NULL && local_on_devices == NULL)
        tide_thread_forget(TIDE_THREAD_POOL);
}

static tide_pool *local_make_pool(void)
{
    tide_assert(local_pool == NULL);
    char name[TIDE_OS_NAME_BYTES];
    if (local_keep("tide_pool_local") != TIDE_OK)
        return NULL;
    tide_os_thread_name(name);
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.name = name});
    if (pool == NULL) {
        local_forget();
        return NULL;
    }
    tide_assert(tide_pool_owner(pool->core) == tide_os_thread());
    __atomic_store_n(&pool->core->owner.local, true, __ATOMIC_RELAXED);
    return local_pool = pool;
}

tide_pool *tide_pool_local(void)
{
    return TIDE_LIKELY(local_pool != NULL) ? local_pool : local_make_pool();
}

/* ---- on devices --------------------------------------------------------------------------- */

static tide_pool *local_find(const tide_device *device, uint64_t stream)
{
    local_pools *one = local_on_devices;
    while (one != NULL && (one->device != device || one->stream != stream))
        one = one->next;
    return one != NULL ? one->pool : NULL;
}

/* The device is held meanwhile. */
static tide_pool *local_make_on(tide_device *device, void *stream, const char *call)
{
    char name[TIDE_OS_NAME_BYTES];
    if (local_keep(call) != TIDE_OK)
        return NULL;
    tide_os_thread_name(name);
    local_pools *made = tide_os_resize(NULL, sizeof *made);
    tide_pool *pool = made != NULL ? tide_pool_create(&(tide_pool_options){
                                         .name = name, .device = device, .stream = stream})
                                   : NULL;
    if (pool == NULL) {
        if (made == NULL)
            tide_fail(TIDE_ERROR_MEMORY, call, "no memory to remember a pool of '%s'", name);
        tide_os_free(made);
        local_forget();
        return NULL;
    }
    __atomic_store_n(&pool->core->owner.local, true, __ATOMIC_RELAXED);
    *made = (local_pools){local_on_devices, pool, device, pool->core->streams.own_number};
    local_on_devices = made;
    return pool;
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
    for (const local_pools *one = local_on_devices; one != NULL; one = one->next) {
        if (one->device != device)
            continue;
        TIDE_FORWARD(tide_pool_use(one->pool, call));
        if (!tide_at_root(one->pool))
            return tide_fail(TIDE_ERROR_STATE, call, "pool '%s' has %zu open scopes or marks",
                             one->pool->core->name, tide_depth(one->pool));
    }
    return TIDE_OK;
}

/* Out of the list, the latest first; NULL: there is none. */
static local_pools *local_take(const tide_device *device)
{
    local_pools **link = &local_on_devices;
    while (*link != NULL && (*link)->device != device)
        link = &(*link)->next;
    local_pools *taken = *link;
    if (taken != NULL)
        *link = taken->next;
    return taken;
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
    for (local_pools *one; (one = local_take(device)) != NULL;) {
        tide_pool_discard(one->pool, (tide_place){TIDE_NOWHERE});
        tide_os_free(one);
    }
    local_forget();
    return TIDE_OK;
}

/* SPDX-License-Identifier: MIT */
/* Every pool of the process, seen from any thread: copied with the registry locked, shown without. */
#include <tidepool/facts.h>
#include <tidepool/upkeep.h>

#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/inspect/stats.h"

/* ---- copying ---------------------------------------------------------------------------- */

typedef struct pools_copied {
    tide_pool_information *pools; /* the youngest first, as the list is */
    size_t count, room;
} pools_copied;

/* Registry locked. */
static void pools_describe(const tide_pool *pool, tide_pool_information *out)
{
    const tide_pool_core *core = pool->core;
    _Static_assert(sizeof out->name == sizeof core->name &&
                       sizeof out->device == sizeof core->device->name &&
                       sizeof out->thread_name == sizeof core->owner.name,
                   "names are copied whole");
    *out = (tide_pool_information){
        .id = core->list.number,
        .thread = core->owner.number,
        .check = core->check > 0 ? (int)core->check : 0,
        .local = __atomic_load_n(&core->owner.local, __ATOMIC_RELAXED),
        .disabled = core->disabled,
    };
    tide_pool_read(pool, &out->statistics);
    memcpy(out->name, core->name, sizeof out->name);
    memcpy(out->device, core->device->name, sizeof out->device);
    memcpy(out->thread_name, core->owner.name, sizeof out->thread_name);
}

/* Those for which there is no room are counted. */
static void pools_copy(tide_pool *pool, void *user)
{
    pools_copied *copied = user;
    if (copied->count < copied->room)
        pools_describe(pool, &copied->pools[copied->count]);
    copied->count++;
}

/* False: no memory. All are copied in one hold of the registry, with memory got before. */
static bool pools_copy_all(pools_copied *copied)
{
    for (*copied = (pools_copied){.room = 16};; copied->room = copied->count * 2) {
        tide_os_free(copied->pools);
        copied->pools = tide_os_resize(NULL, copied->room * sizeof *copied->pools);
        if (copied->pools == NULL)
            return false;
        copied->count = 0;
        tide_pools_visit(pools_copy, copied);
        if (copied->count <= copied->room)
            return true;
    }
}

tide_status tide_pool_each(bool (*visit)(const tide_pool_information *pool, void *user), void *user)
{
    const char *call = "tide_pool_each";
    pools_copied copied;
    if (visit == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the function is NULL");
    if (!pools_copy_all(&copied))
        return tide_fail(TIDE_ERROR_MEMORY, call, "no memory to copy the pools");
    tide_assert(copied.count <= copied.room);
    for (size_t i = copied.count; i > 0 && visit(&copied.pools[i - 1], user); i--)
        continue;
    tide_os_free(copied.pools);
    return TIDE_OK;
}

/* ---- asking one of them ----------------------------------------------------------------- */

typedef struct pools_wanted {
    uint64_t id;
    uint32_t requests;
    bool found;
    tide_status status;
} pools_wanted;

/* The registry is locked, so the pool stays. */
static void pools_request(tide_pool *pool, void *user)
{
    pools_wanted *wanted = user;
    if (pool->core->list.number != wanted->id)
        return;
    tide_assert(!wanted->found);
    wanted->found = true;
    wanted->status = tide_pool_request(pool, wanted->requests);
}

tide_status tide_pool_request_by_id(uint64_t id, uint32_t requests)
{
    pools_wanted wanted = {.id = id, .requests = requests};
    tide_pools_visit(pools_request, &wanted);
    return wanted.found ? wanted.status
                        : tide_fail(TIDE_ERROR_NAME, "tide_pool_request_by_id",
                                    "no live pool has the id %llu", (unsigned long long)id);
}

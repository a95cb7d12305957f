/* SPDX-License-Identifier: MIT */
/* Whose a pool is, how a call of a foreign thread is refused, and the list of all pools. */
#include "runtime/pool/core.h"

#include <stdarg.h>
#include <stdio.h>

#include <tidepool/check.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/registry.h"
#include "runtime/check/report.h"

int tide_checked_pools;

/* ---- the list of all pools -------------------------------------------------------------- */

static tide_pool *core_all_pools;   /* guarded by the registry */
static uint64_t core_pools_created; /* guarded likewise */

uint64_t tide_pool_numbers(void)
{
    return core_pools_created;
}

void tide_pool_enlist(tide_pool *pool)
{
    tide_registry_lock();
    tide_assert(pool->core->list.number == 0 && pool->core->list.link == NULL);
    pool->core->list.number = ++core_pools_created;
    pool->core->list.next = core_all_pools;
    pool->core->list.link = &core_all_pools;
    if (core_all_pools != NULL)
        core_all_pools->core->list.link = &pool->core->list.next;
    core_all_pools = pool;
    tide_registry_unlock();
}

void tide_pool_delist(tide_pool *pool)
{
    tide_registry_lock();
    tide_assert(pool->core->list.number != 0 && *pool->core->list.link == pool);
    *pool->core->list.link = pool->core->list.next;
    if (pool->core->list.next != NULL)
        pool->core->list.next->core->list.link = pool->core->list.link;
    tide_registry_unlock();
}

void tide_pool_each(void (*visit)(tide_pool *pool, void *user), void *user)
{
    tide_assert(visit != NULL);
    tide_registry_lock();
    for (tide_pool *pool = core_all_pools; pool != NULL; pool = pool->core->list.next)
        visit(pool, user);
    tide_registry_unlock();
}

/* ---- ownership -------------------------------------------------------------------------- */

void tide_pool_own(tide_pool_core *core)
{
    __atomic_store_n(&core->owner.thread, tide_os_thread(), __ATOMIC_RELAXED);
    tide_os_thread_name(core->owner.name);
}

tide_status tide_pool_use(const tide_pool *pool, const char *call)
{
    if (TIDE_UNLIKELY(pool == NULL))
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the pool is NULL");
    const tide_pool_core *core = pool->core;
    if (core->check < TIDE_CHECK_POISON || tide_pool_owner(core) == tide_os_thread())
        return TIDE_OK;
    char name[TIDE_OS_NAME_BYTES];
    tide_os_thread_name(name);
    return tide_misuse(pool, TIDE_ERROR_THREAD, call,
                       "pool '%s' belongs to thread '%s' (%#zx), not to thread '%s' (%#zx)",
                       core->name, core->owner.name, (size_t)tide_pool_owner(core), name,
                       (size_t)tide_os_thread());
}

tide_status tide_misuse(const tide_pool *pool, tide_status status, const char *call,
                        const char *format, ...)
{
    tide_assert(pool != NULL && status != TIDE_OK);
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (pool->core->check >= TIDE_CHECK_POISON)
        tide_report(TIDE_REPORT_MISUSE, "%s: %s", call, text);
    return tide_fail(status, call, "%s", text);
}

tide_status tide_pool_adopt(tide_pool *pool)
{
    if (pool == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, "tide_pool_adopt", "the pool is NULL");
    tide_pool_own(pool->core);
    /* Whoever turned a plan while the pool was an orphan held the registry's lock, which is taken
     * here: so the uses to come see the turned plan. */
    tide_registry_lock();
    pool->core->requests.orphan = false;
    tide_registry_unlock();
    return TIDE_OK;
}

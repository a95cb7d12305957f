/* SPDX-License-Identifier: MIT */
/* Whose a pool is, how a call of a foreign thread is refused; all pools. */
#define _GNU_SOURCE
#include "runtime/pool/core.h"

#include <string.h>
#include <unistd.h>

#include <tidepool/check.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/lock.h"
#include "runtime/base/process.h"
#include "runtime/base/registry.h"
#include "runtime/check/report.h"
#include "runtime/pool/shut.h"
#include "runtime/pool/streams.h"
#include "runtime/pool/uses.h"

int tide_checked_pools;

/* ---- the list of all pools -------------------------------------------------------------- */

static tide_pool *core_all_pools;   /* guarded by the registry */
static uint64_t core_pools_created; /* guarded likewise */
static uint32_t core_pools_count;   /* guarded likewise */

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
    core_pools_count++;
    tide_registry_unlock();
}

void tide_pool_delist(tide_pool *pool)
{
    tide_registry_lock();
    tide_assert(pool->core->list.number != 0 && *pool->core->list.link == pool);
    tide_uses_keep(pool);
    *pool->core->list.link = pool->core->list.next;
    if (pool->core->list.next != NULL)
        pool->core->list.next->core->list.link = pool->core->list.link;
    tide_assert(core_pools_count > 0);
    core_pools_count--;
    tide_registry_unlock();
}

uint32_t tide_pools_count(void)
{
    tide_assert(tide_registry_held());
    return core_pools_count;
}

void tide_pools_visit(void (*visit)(tide_pool *pool, void *user), void *user)
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
    char name[TIDE_OS_NAME_BYTES];
    __atomic_store_n(&core->owner.thread, tide_os_thread(), __ATOMIC_RELAXED);
    tide_os_thread_name(name);
    tide_registry_lock();
    memcpy(core->owner.name, name, sizeof name);
    core->owner.number = tide_os_thread_number();
    tide_registry_unlock();
}

static TIDE_COLD tide_status core_refuse_lost(const tide_pool_core *core, const char *call)
{
    return tide_fail(
        TIDE_ERROR_STATE, call,
        "pool '%s' belongs to thread '%s' of the parent process: the child of a fork has "
        "the pools of the thread that forked",
        core->name, core->owner.name);
}

/* The thread that uses it is inside a deleter or hook that the pool itself has called. */
static TIDE_COLD tide_status core_refuse_shut(const tide_pool_core *core, const char *call)
{
    return tide_fail(TIDE_ERROR_STATE, call,
                     "pool '%s' is being changed: a deleter or hook that it calls may not use it",
                     core->name);
}

/* Its cold part may have another layout: nothing of it is read. */
static TIDE_COLD tide_status core_refuse_foreign(const tide_pool *pool, const char *call)
{
    if (pool->copy == 0) /* runtime/pool/shell.h */
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "pool %p was destroyed", (const void *)pool);
    return tide_fail(TIDE_ERROR_ARGUMENT, call,
                     "pool %p was made by another copy of the library: a plugin or the program has "
                     "one of its own",
                     (const void *)pool);
}

tide_status tide_pool_of_ours(const tide_pool *pool, const char *call)
{
    if (pool == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the pool is NULL");
    uintptr_t copy = __atomic_load_n(&pool->copy, __ATOMIC_RELAXED); /* runtime/pool/shut.h */
    return copy == tide_pool_copy(false) || copy == tide_pool_copy(true)
               ? TIDE_OK
               : core_refuse_foreign(pool, call);
}

tide_status tide_pool_use(const tide_pool *pool, const char *call)
{
    if (TIDE_UNLIKELY(pool == NULL))
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the pool is NULL");
    uintptr_t copy = __atomic_load_n(&pool->copy, __ATOMIC_ACQUIRE);
    if (TIDE_LIKELY(copy == tide_pool_copy(false)))
        return TIDE_OK;
    if (copy != tide_pool_copy(true))
        return core_refuse_foreign(pool, call);
    const tide_pool_core *core = pool->core;
    if (__atomic_load_n(&core->seized, __ATOMIC_SEQ_CST)) {
        tide_registry_lock(); /* free slots are being taken: wait for that */
        tide_registry_unlock();
        return TIDE_OK;
    }
    if (core->lost)
        return core_refuse_lost(core, call);
    if (tide_pool_owner(core) == tide_os_thread()) {
        tide_assert(core->shut || core->check >= TIDE_CHECK_POISON ||
                    __atomic_load_n(&pool->copy, __ATOMIC_ACQUIRE) == tide_pool_copy(false));
        return core->shut ? core_refuse_shut(core, call) : TIDE_OK;
    }
    char name[TIDE_OS_NAME_BYTES];
    tide_os_thread_name(name);
    return tide_fail(TIDE_ERROR_THREAD, call,
                     "pool '%s' belongs to thread '%s' (%#zx), not to thread '%s' (%#zx)",
                     core->name, core->owner.name, (size_t)tide_pool_owner(core), name,
                     (size_t)tide_os_thread());
}

tide_status tide_pool_use_or_report(const tide_pool *pool, const char *call)
{
    tide_status status = tide_pool_use(pool, call);
    return status == TIDE_ERROR_THREAD ? tide_misuse(pool, status) : status;
}

tide_status tide_misuse(const tide_pool *pool, tide_status status)
{
    tide_assert(pool != NULL && status != TIDE_OK && status == tide_error_status());
    if (pool->core->check >= TIDE_CHECK_POISON)
        tide_report(TIDE_REPORT_MISUSE, "%s", tide_error_message());
    return status;
}

tide_status tide_pool_adopt(tide_pool *pool)
{
    TIDE_FORWARD(tide_pool_of_ours(pool, "tide_pool_adopt"));
    if (pool->core->shut)
        return core_refuse_shut(pool->core, "tide_pool_adopt");
    if (pool->core->lost)
        return core_refuse_lost(pool->core, "tide_pool_adopt");
    tide_error_prepare();
    TIDE_FORWARD(tide_streams_adopt(pool, "tide_pool_adopt"));
    tide_pool_own(pool->core);
    tide_lock_assert_none();
    while (__atomic_load_n(&pool->core->working, __ATOMIC_ACQUIRE)) /* the old owner presses it */
        usleep(100);
    return TIDE_OK;
}

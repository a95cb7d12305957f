/* SPDX-License-Identifier: MIT */
/* Whose a pool is, how a call of a foreign thread is refused; all pools, and the uses of sites that
 * they have counted. */
#include "runtime/pool/core.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <tidepool/check.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/process.h"
#include "runtime/base/registry.h"
#include "runtime/check/report.h"
#include "runtime/pool/shut.h"
#include "runtime/pool/streams.h"

int tide_checked_pools;

/* ---- uses of sites ---------------------------------------------------------------------- */

/* Guarded by the registry. */
static struct {
    bool taken[TIDE_SITES_COUNTED];
    uint32_t last;                     /* the largest number that was ever taken */
    uint64_t kept[TIDE_SITES_COUNTED]; /* of pools that have ended               */
} core_counts;

uint32_t tide_uses_take_number(void)
{
    uint32_t number = 1;
    while (number <= core_counts.last && core_counts.taken[number])
        number++;
    if (number == TIDE_SITES_COUNTED)
        return 0;
    tide_assert(!core_counts.taken[number]);
    core_counts.taken[number] = true;
    core_counts.last = number > core_counts.last ? number : core_counts.last;
    return number;
}

void tide_uses_give_number(uint32_t number)
{
    tide_assert(number <= core_counts.last && core_counts.taken[number] == (number != 0));
    core_counts.taken[number] = false;
}

/* The owner stores with plain stores: as in runtime/inspect/stats.c the word is sampled. */
__attribute__((no_sanitize("thread"))) static uint64_t core_sample_uses(const tide_pool *pool,
                                                                        uint32_t number)
{
    return *(const volatile uint64_t *)&pool->uses[number];
}

/* The pool leaves the list of all pools: what it has counted is kept, and the pool counts anew. */
static void core_keep_uses(tide_pool *pool)
{
    for (uint32_t number = 1; number <= core_counts.last; number++) {
        uint64_t counted = core_sample_uses(pool, number);
        if (counted == 0)
            continue; /* so pages that were never written stay unwritten */
        core_counts.kept[number] += counted;
        pool->uses[number] = 0;
    }
}

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
    core_keep_uses(pool);
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

/* ---- their uses, added up ----------------------------------------------------------------- */

uint64_t tide_uses_sum(uint32_t number)
{
    tide_assert(number != 0 && number < TIDE_SITES_COUNTED && tide_registry_held());
    uint64_t sum = core_counts.kept[number];
    for (const tide_pool *pool = core_all_pools; pool != NULL; pool = pool->core->list.next)
        sum += core_sample_uses(pool, number);
    return sum;
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
    return TIDE_OK;
}

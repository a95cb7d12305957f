/* SPDX-License-Identifier: MIT */
/* Retired code waits here until nobody can be inside it: each pool is asked to pass twice. The
 * proof is in jit/learn/limbo.h. */
#include "jit/learn/limbo.h"

#include "runtime/base/assert.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/pool/core.h"
#include "runtime/pool/request.h"

typedef struct waiting {
    struct waiting *next;
    tide_artefact *artefact;
} waiting;

/* Guarded by the registry. Retired code waits in `arrived` until the pools are asked anew; it is in
 * `asked` while they pass, and in `free` when all have passed twice. */
static struct {
    waiting *arrived, *asked, *free;
    uint64_t youngest; /* number of the youngest pool that was asked */
    size_t count;      /* atomic */
} limbo;

void tide_limbo_add(tide_artefact *artefact, bool for_good)
{
    tide_assert(artefact != NULL);
    waiting *made = for_good ? NULL : tide_os_resize(NULL, sizeof *made);
    __atomic_fetch_add(&limbo.count, 1, __ATOMIC_RELAXED);
    if (made == NULL)
        return; /* for good */
    *made = (waiting){limbo.arrived, artefact};
    limbo.arrived = made;
}

size_t tide_limbo_count(void)
{
    return __atomic_load_n(&limbo.count, __ATOMIC_RELAXED);
}

/* A pool that nobody adopted has no uses, so it need not pass. */
static void limbo_ask(tide_pool *pool, void *user)
{
    (void)user;
    tide_assert(pool->core->requests.passes_left == 0); /* the last question was answered */
    if (pool->core->requests.orphan) {
        pool->core->requests.passes_left = 0;
        return;
    }
    pool->core->requests.pass_wanted =
        __atomic_load_n(&pool->core->requests.passes, __ATOMIC_ACQUIRE) + 1;
    pool->core->requests.passes_left = 2;
    tide_request_pass(pool);
}

/* After the first pass has been seen, the pool is asked for the second. */
static void limbo_look(tide_pool *pool, void *user)
{
    tide_pool_core *core = pool->core;
    bool *all = user;
    if (core->list.number > limbo.youngest || core->requests.passes_left == 0)
        return;
    tide_assert(core->requests.passes_left <= 2);
    uint64_t passes = __atomic_load_n(&core->requests.passes, __ATOMIC_ACQUIRE);
    if (passes >= core->requests.pass_wanted && --core->requests.passes_left != 0) {
        core->requests.pass_wanted = passes + 1;
        tide_request_pass(pool);
    }
    *all = *all && core->requests.passes_left == 0;
}

/* In the child of a fork: the pools of threads that are not there. */
static void limbo_orphan(tide_pool *pool, void *user)
{
    if (tide_pool_owner(pool->core) == *(const uintptr_t *)user)
        return;
    pool->core->requests.orphan = true;
    pool->core->requests.passes_left = 0;
}

void tide_limbo_forked(void)
{
    uintptr_t self = tide_os_thread();
    tide_pool_each(limbo_orphan, &self);
}

static void limbo_append(waiting **list, waiting *more)
{
    tide_assert(more != NULL);
    while (*list != NULL)
        list = &(*list)->next;
    *list = more;
}

void tide_limbo_round(void)
{
    if (limbo.asked != NULL) {
        bool all = true;
        tide_pool_each(limbo_look, &all);
        if (!all)
            return;
        limbo_append(&limbo.free, limbo.asked);
        limbo.asked = NULL;
    }
    if (limbo.arrived == NULL)
        return;
    tide_assert(limbo.asked == NULL);
    limbo.asked = limbo.arrived;
    limbo.arrived = NULL;
    tide_assert(tide_pool_numbers() >= limbo.youngest);
    limbo.youngest = tide_pool_numbers();
    tide_pool_each(limbo_ask, NULL);
}

size_t tide_limbo_unload(void)
{
    size_t unloaded = 0;
    tide_registry_lock();
    waiting *list = limbo.free;
    limbo.free = NULL;
    tide_registry_unlock();
    while (list != NULL) {
        waiting *next = list->next;
        tide_assert(list->artefact != NULL);
        tide_artefact_drop(list->artefact);
        tide_os_free(list);
        list = next;
        unloaded++;
    }
    tide_assert(tide_limbo_count() >= unloaded);
    __atomic_fetch_sub(&limbo.count, unloaded, __ATOMIC_RELAXED);
    return unloaded;
}

/* SPDX-License-Identifier: MIT */
/* Each thread's own pool: made on first use, discarded when the thread ends.
 *
 * After fork the child's only thread keeps its pool: the owner is known by its pthread id, which
 * fork preserves. Pools of the parent's other threads are copies that nobody owns; their pages
 * are shared with the parent until the child ends. */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/pool/pool.h"

static _Thread_local tide_pool *local_pool;
static pthread_key_t local_key;
static pthread_once_t local_once = PTHREAD_ONCE_INIT;
static bool local_have_key;

/* Runs when the thread ends. A later destructor of the same thread may enter a scope and so make a
 * new pool: the next round of destructors discards it. */
static void local_discard(void *pool)
{
    tide_assert(pool != NULL && pool == local_pool);
    local_pool = NULL;
    tide_pool_discard(pool, (tide_place){TIDE_NOWHERE});
}

static void local_make_key(void)
{
    local_have_key = pthread_key_create(&local_key, local_discard) == 0;
}

/* The key's destructor ends the pool, so without it the thread gets none. */
static tide_pool *local_make_pool(void)
{
    tide_assert(local_pool == NULL);
    pthread_once(&local_once, local_make_key);
    char name[TIDE_OS_NAME_BYTES];
    tide_os_thread_name(name);
    if (!local_have_key) {
        tide_fail(TIDE_ERROR_LIMIT, "tide_pool_local",
                  "the process has no thread key left, limit %d", PTHREAD_KEYS_MAX);
        return NULL;
    }
    tide_pool *pool = tide_pool_create(&(tide_pool_options){.name = name});
    if (pool == NULL)
        return NULL;
    if (tide_os_faulted(sizeof(void *)) || pthread_setspecific(local_key, pool) != 0) {
        tide_pool_discard(pool, (tide_place){TIDE_NOWHERE});
        tide_fail(TIDE_ERROR_MEMORY, "tide_pool_local", "thread '%s' cannot keep a pool", name);
        return NULL;
    }
    tide_assert(tide_pool_owner(pool->core) == tide_os_thread());
    pool->core->owner.local = true;
    return local_pool = pool;
}

tide_pool *tide_pool_local(void)
{
    return TIDE_LIKELY(local_pool != NULL) ? local_pool : local_make_pool();
}

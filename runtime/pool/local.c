/* SPDX-License-Identifier: MIT */
/* Each thread's own pool: made on first use, discarded when the thread ends.
 *
 * After fork the child's only thread keeps its pool: the owner is known by its pthread id, which
 * fork preserves. Pools of the parent's other threads are copies that nobody owns; their pages
 * are shared with the parent until the child ends. */
#include <pthread.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/pool/pool.h"

static _Thread_local tide_pool *current;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool have_key;

/* Runs at thread exit. A scope entered in a later destructor of the same thread makes a new
 * pool, which the next round of destructors discards. */
static void discard(void *pool)
{
    current = NULL;
    tide_pool_discard(pool, (tide_place){TIDE_NOWHERE});
}

static void make_key(void)
{
    have_key = pthread_key_create(&key, discard) == 0;
}

static tide_pool *make_pool(void)
{
    pthread_once(&once, make_key);
    char name[TIDE_OS_NAME_BYTES];
    tide_os_thread_name(name);
    tide_pool *pool = have_key ? tide_pool_create(&(tide_pool_options){.name = name}) : NULL;
    if (pool == NULL)
        return NULL;
    if (tide_os_faulted(sizeof(void *)) || pthread_setspecific(key, pool) != 0) {
        tide_pool_discard(pool, (tide_place){TIDE_NOWHERE});
        tide_fail(TIDE_ERROR_MEMORY, "tide_pool_local", "thread '%s' cannot keep a pool", name);
        return NULL;
    }
    pool->core->owner.local = true;
    return current = pool;
}

tide_pool *tide_pool_local(void)
{
    return TIDE_LIKELY(current != NULL) ? current : make_pool();
}

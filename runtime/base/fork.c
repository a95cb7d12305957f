/* SPDX-License-Identifier: MIT */
/* The handlers of all ranks, called around fork in the order of the ranks. */
#include "runtime/base/fork.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/assert.h"
#include "runtime/base/lock.h"

static const tide_fork_handlers *fork_handlers[TIDE_FORK_RANKS]; /* each is atomic */
static pthread_once_t fork_installed = PTHREAD_ONCE_INIT;

/* The ranks that this thread prepared. One that was registered in the middle of a fork was not
 * taken, so it must not be let go of. Each thread has its own, for two may fork at once. */
static _Thread_local uint16_t fork_prepared; /* copies have little such memory */

_Static_assert(TIDE_FORK_RANKS <= 16, "fork_prepared has a bit for each rank");

static const tide_fork_handlers *fork_handlers_of(int rank)
{
    return __atomic_load_n(&fork_handlers[rank], __ATOMIC_ACQUIRE);
}

static void fork_prepare(void)
{
    fork_prepared = 0;
    for (int rank = 0; rank < TIDE_FORK_RANKS; rank++) {
        const tide_fork_handlers *handlers = fork_handlers_of(rank);
        if (handlers == NULL)
            continue;
        if (handlers->prepare != NULL)
            handlers->prepare();
        if (handlers->lock != NULL)
            tide_lock_take(handlers->lock);
        fork_prepared = (uint16_t)(fork_prepared | 1u << rank);
    }
}

static void fork_end(bool child)
{
    for (int rank = TIDE_FORK_RANKS; rank-- > 0;) {
        if ((fork_prepared >> rank & 1) == 0)
            continue;
        const tide_fork_handlers *handlers = fork_handlers_of(rank);
        void (*end)(void) = child ? handlers->child : handlers->parent;
        if (end != NULL)
            end();
        if (handlers->lock != NULL)
            tide_lock_let_go(handlers->lock);
    }
}

static void fork_parent(void)
{
    fork_end(false);
}

static void fork_child(void)
{
    fork_end(true);
}

/* Without memory for it children of this process may find a lock held. */
static void fork_install(void)
{
    (void)pthread_atfork(fork_prepare, fork_parent, fork_child);
}

void tide_fork_register(tide_fork_rank rank, const tide_fork_handlers *handlers)
{
    tide_assert((unsigned)rank < TIDE_FORK_RANKS && handlers != NULL);
    const tide_fork_handlers *before = fork_handlers_of((int)rank);
    tide_assert(before == NULL || before == handlers);
    if (before == NULL)
        __atomic_store_n(&fork_handlers[rank], handlers, __ATOMIC_RELEASE);
    pthread_once(&fork_installed, fork_install);
}

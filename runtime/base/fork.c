/* SPDX-License-Identifier: MIT */
/* The handlers of all ranks, called around fork in the order of the ranks. */
#include "runtime/base/fork.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/assert.h"

static const tide_fork_handlers *fork_handlers[TIDE_FORK_RANKS]; /* each is atomic */

/* The ranks that this thread prepared. A rank may be registered in the middle of a fork:
 * its lock has not been taken, so it must not be let go of. Each thread has its own, for
 * two may fork at once. */
static _Thread_local uint32_t fork_prepared;

_Static_assert(TIDE_FORK_RANKS <= 32, "fork_prepared has a bit for each rank");

static void fork_prepare(void)
{
    fork_prepared = 0;
    for (int rank = 0; rank < TIDE_FORK_RANKS; rank++) {
        const tide_fork_handlers *handlers =
            __atomic_load_n(&fork_handlers[rank], __ATOMIC_ACQUIRE);
        if (handlers == NULL)
            continue;
        if (handlers->prepare != NULL)
            handlers->prepare();
        fork_prepared |= UINT32_C(1) << rank;
    }
}

static void fork_parent(void)
{
    for (int rank = TIDE_FORK_RANKS; rank-- > 0;)
        if ((fork_prepared >> rank & 1) != 0 && fork_handlers[rank]->parent != NULL)
            fork_handlers[rank]->parent();
}

static void fork_child(void)
{
    for (int rank = TIDE_FORK_RANKS; rank-- > 0;)
        if ((fork_prepared >> rank & 1) != 0 && fork_handlers[rank]->child != NULL)
            fork_handlers[rank]->child();
}

static void fork_install(void)
{
    (void)pthread_atfork(fork_prepare, fork_parent, fork_child);
}

void tide_fork_register(tide_fork_rank rank, const tide_fork_handlers *handlers)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    tide_assert((unsigned)rank < TIDE_FORK_RANKS && handlers != NULL);
    tide_assert(__atomic_load_n(&fork_handlers[rank], __ATOMIC_ACQUIRE) == NULL ||
                __atomic_load_n(&fork_handlers[rank], __ATOMIC_ACQUIRE) == handlers);
    __atomic_store_n(&fork_handlers[rank], handlers, __ATOMIC_RELEASE);
    pthread_once(&once, fork_install);
}

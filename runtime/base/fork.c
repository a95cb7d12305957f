/* SPDX-License-Identifier: MIT */
#include "runtime/base/fork.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/assert.h"

static const tide_fork_handlers *handlers_of[TIDE_FORK_RANKS]; /* atomic each */

/* The ranks that this thread prepared: one registered in the middle of a fork must not be let go of
 * without having been taken. A thread's own, for two threads may fork at once. */
static _Thread_local uint32_t fork_prepared;

_Static_assert(TIDE_FORK_RANKS <= 32, "fork_prepared has a bit for each rank");

static void fork_prepare(void)
{
    fork_prepared = 0;
    for (int rank = 0; rank < TIDE_FORK_RANKS; rank++) {
        const tide_fork_handlers *handlers =
            __atomic_load_n(&handlers_of[rank], __ATOMIC_ACQUIRE);
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
        if ((fork_prepared >> rank & 1) != 0 && handlers_of[rank]->parent != NULL)
            handlers_of[rank]->parent();
}

static void fork_child(void)
{
    for (int rank = TIDE_FORK_RANKS; rank-- > 0;)
        if ((fork_prepared >> rank & 1) != 0 && handlers_of[rank]->child != NULL)
            handlers_of[rank]->child();
}

static void fork_install(void)
{
    (void)pthread_atfork(fork_prepare, fork_parent, fork_child);
}

void tide_fork_register(tide_fork_rank rank, const tide_fork_handlers *handlers)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    tide_assert((unsigned)rank < TIDE_FORK_RANKS && handlers != NULL);
    __atomic_store_n(&handlers_of[rank], handlers, __ATOMIC_RELEASE);
    pthread_once(&once, fork_install);
}

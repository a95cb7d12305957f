/* SPDX-License-Identifier: MIT */
/* The one lock of what is process-wide, and how it passes a fork. */
#define _GNU_SOURCE
#include "runtime/base/registry.h"

#include <pthread.h>
#include <stdint.h>

#include "runtime/base/assert.h"
#include "runtime/base/fork.h"
#include "runtime/base/os.h"

static pthread_mutex_t registry_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_once_t registry_prepared = PTHREAD_ONCE_INIT;
static _Thread_local uint32_t registry_times_held; /* by this thread */
static _Thread_local int registry_cancel;          /* its state before */

/* A recursive mutex remembers its owner's thread id, and fork changes that id: the child cannot
 * unlock what its parent locked, so it starts with a fresh mutex. The unlock fails, but tells
 * ThreadSanitizer that the old mutex is no longer held. */
static void registry_renew_in_child(void)
{
    (void)pthread_mutex_unlock(&registry_mutex);
    registry_mutex = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    if (--registry_times_held == 0) /* which the forking thread took to prepare */
        tide_os_restore_cancel(registry_cancel);
}

static void registry_prepare(void)
{
    static const tide_fork_handlers handlers = {tide_registry_lock, tide_registry_unlock,
                                                registry_renew_in_child};
    tide_fork_register(TIDE_FORK_REGISTRY, &handlers);
}

void tide_registry_lock(void)
{
    pthread_once(&registry_prepared, registry_prepare);
    int failed = pthread_mutex_lock(&registry_mutex);
    tide_assert(!failed); /* recursive: the owner may lock it again */
    (void)failed;
    if (registry_times_held++ == 0)
        registry_cancel = tide_os_forbid_cancel();
}

/* Its result is not looked at: a thread that forked with the lock held unlocks the child's fresh
 * mutex, which nobody holds. */
void tide_registry_unlock(void)
{
    tide_assert(registry_times_held > 0);
    registry_times_held--;
    pthread_mutex_unlock(&registry_mutex);
    if (registry_times_held == 0)
        tide_os_restore_cancel(registry_cancel);
}

bool tide_registry_held(void)
{
    return registry_times_held > 0;
}

/* SPDX-License-Identifier: MIT */
/* The one lock of what is process-wide, and how it passes a fork. */
#define _GNU_SOURCE
#include "runtime/base/registry.h"

#include <pthread.h>
#include <stdint.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/fork.h"
#include "runtime/base/lock.h"

static tide_lock registry_lock = TIDE_LOCK(TIDE_FORK_REGISTRY);
static pthread_once_t registry_prepared = PTHREAD_ONCE_INIT;
static _Thread_local uint32_t registry_times_held; /* by this thread */

static void registry_prepare(void)
{
    static const tide_fork_handlers handlers = {.prepare = tide_registry_lock,
                                                .parent = tide_registry_unlock,
                                                .child = tide_registry_unlock};
    tide_fork_register(TIDE_FORK_REGISTRY, &handlers);
}

void tide_registry_lock(void)
{
    pthread_once(&registry_prepared, registry_prepare);
    if (registry_times_held++ == 0)
        tide_lock_take(&registry_lock);
    tide_assert(registry_times_held != 0 && tide_lock_held(TIDE_FORK_REGISTRY));
}

bool tide_registry_try_lock(void)
{
    pthread_once(&registry_prepared, registry_prepare);
    bool taken = registry_times_held != 0 || tide_lock_try(&registry_lock);
    registry_times_held += taken;
    tide_assert(!taken || tide_lock_held(TIDE_FORK_REGISTRY));
    return taken;
}

void tide_registry_unlock(void)
{
    tide_assert(registry_times_held > 0);
    if (--registry_times_held == 0)
        tide_lock_let_go(&registry_lock);
}

bool tide_registry_held(void)
{
    return registry_times_held > 0;
}

tide_status tide_registry_admit(const char *call)
{
    return tide_registry_held() ? tide_fail(TIDE_ERROR_STATE, call, "called by a visitor of sites")
                                : TIDE_OK;
}

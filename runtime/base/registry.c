/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "runtime/base/registry.h"

#include <pthread.h>

#include "runtime/base/fork.h"

static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;

/* A recursive mutex remembers its owner's thread id, which fork changes: the child cannot
 * unlock what its parent locked, so it starts with a fresh one. The unlock is for
 * ThreadSanitizer, which else takes the old lock for held. */
static void child(void)
{
    (void)pthread_mutex_unlock(&mutex);
    mutex = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
}

static void prepare(void)
{
    static const tide_fork_handlers handlers = {tide_registry_lock, tide_registry_unlock, child};
    tide_fork_register(TIDE_FORK_REGISTRY, &handlers);
}

void tide_registry_lock(void)
{
    pthread_once(&prepared, prepare);
    pthread_mutex_lock(&mutex);
}

void tide_registry_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

/* SPDX-License-Identifier: MIT */
/* Acquires from another thread's pool. */
#define _GNU_SOURCE
#include "diagnosed.h"

#include <pthread.h>

static void *thief(void *pool)
{
    pthread_setname_np(pthread_self(), "thief");
    need(tide_acquire((tide_pool *)pool, double, 1) == NULL);
    need(tide_error_status() == TIDE_ERROR_THREAD);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    EXPECT("tidepool: tide_acquire: pool 'the pool' belongs to thread 'foreign_thread'");
    EXPECT("), not to thread 'thief' (");
    need(pthread_create(&thread, NULL, thief, pool_at(TIDE_CHECK_POISON)) == 0);
    pthread_join(thread, NULL);
    return 0;
}

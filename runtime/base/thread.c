/* SPDX-License-Identifier: MIT */
/* The key whose destructor ends what a thread leaves behind. */
#define _GNU_SOURCE
#include "runtime/base/thread.h"

#include <pthread.h>
#include <stdint.h>

#include "runtime/base/assert.h"
#include "runtime/base/os.h"
#include "runtime/base/process.h"

static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;
static bool thread_have_key;

static void (*thread_ends[TIDE_THREAD_RANKS])(void); /* each is atomic */
static _Thread_local uint32_t thread_left;           /* a bit for each rank */

/* `left` is the thread's own variable, which is still there. */
static void thread_end(void *left)
{
    tide_assert(left == &thread_left);
    (void)left;
    for (int rank = 0; rank < TIDE_THREAD_RANKS; rank++) {
        bool there = (thread_left >> rank & 1) != 0;
        thread_left &= ~(UINT32_C(1) << rank);
        if (there)
            __atomic_load_n(&thread_ends[rank], __ATOMIC_RELAXED)();
    }
}

static void thread_make_key(void)
{
    thread_have_key = pthread_key_create(&thread_key, thread_end) == 0;
}

tide_status tide_thread_keep(tide_thread_rank rank, void (*end)(void))
{
    tide_assert((unsigned)rank < TIDE_THREAD_RANKS && end != NULL);
    tide_copy_stay();
    pthread_once(&thread_once, thread_make_key);
    if (!thread_have_key)
        return TIDE_ERROR_LIMIT;
    if (pthread_getspecific(thread_key) == NULL &&
        (tide_os_faulted(sizeof(void *)) || pthread_setspecific(thread_key, &thread_left) != 0))
        return TIDE_ERROR_MEMORY;
    __atomic_store_n(&thread_ends[rank], end, __ATOMIC_RELAXED);
    thread_left |= UINT32_C(1) << rank;
    return TIDE_OK;
}

void tide_thread_forget(tide_thread_rank rank)
{
    thread_left &= ~(UINT32_C(1) << rank);
}

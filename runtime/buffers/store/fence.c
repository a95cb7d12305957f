/* SPDX-License-Identifier: MIT */
/* The heavy side of the fence (runtime/buffers/store/fence.h): membarrier(2), or a full fence where
 * the system has no such call. */
#define _GNU_SOURCE
#include "runtime/buffers/store/fence.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/assert.h"
#include "runtime/base/os.h"

bool tide_fence_asymmetric;

static pthread_once_t fence_once = PTHREAD_ONCE_INIT;

static long fence_membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0);
}

static void fence_prepare_once(void)
{
    long commands = fence_membarrier(MEMBARRIER_CMD_QUERY);
    bool works = commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
                 fence_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
    tide_assert(!__atomic_load_n(&tide_fence_asymmetric, __ATOMIC_RELAXED));
    __atomic_store_n(&tide_fence_asymmetric, works, __ATOMIC_RELAXED);
}

void tide_fence_prepare(void)
{
    pthread_once(&fence_once, fence_prepare_once);
}

static bool fence_lost; /* atomic: the call worked once and does no more */

/* A forked child may have to register again. */
static bool fence_all_threads(void)
{
    return fence_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0 ||
           (fence_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 &&
            fence_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0);
}

/* The call may be forbidden at any time, by a filter of system calls. From then on the light side
 * has a full fence too. But a thread may have decided for the light one before, and may have been
 * stopped just then, for as long as it likes. Its store and its read follow each other at once: so
 * either it still reads what was written here before, or its store leaves the processor while this
 * thread sleeps, which is hundreds of times as long as a processor keeps one. */
static void fence_without_the_call(void)
{
    __atomic_store_n(&fence_lost, true, __ATOMIC_RELAXED);
    __atomic_store_n(&tide_fence_asymmetric, false, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    tide_os_nap();
}

void tide_fence_heavy(void)
{
    tide_fence_prepare(); /* this copy of the library may have made no buffers of its own */
    if (TIDE_UNLIKELY(__atomic_load_n(&fence_lost, __ATOMIC_RELAXED)) ||
        (__atomic_load_n(&tide_fence_asymmetric, __ATOMIC_RELAXED) && !fence_all_threads()))
        fence_without_the_call();
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

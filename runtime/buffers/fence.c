/* SPDX-License-Identifier: MIT */
/* The heavy side of the fence (runtime/buffers/fence.h): membarrier(2), or a full fence where the
 * system has no such call. */
#define _GNU_SOURCE
#include "runtime/buffers/fence.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/assert.h"

bool tide_fence_asymmetric;

static pthread_once_t fence_once = PTHREAD_ONCE_INIT;

static long fence_membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0);
}

static void fence_prepare_once(void)
{
    long commands = fence_membarrier(MEMBARRIER_CMD_QUERY);
    tide_fence_asymmetric = commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
                            fence_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

void tide_fence_prepare(void)
{
    pthread_once(&fence_once, fence_prepare_once);
}

/* A forked child may have to register again. */
void tide_fence_heavy(void)
{
    if (tide_fence_asymmetric && fence_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) {
        long failed = fence_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
        failed = failed != 0 ? failed : fence_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
        tide_assert(failed == 0);
        (void)failed;
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

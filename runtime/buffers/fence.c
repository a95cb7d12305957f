/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "runtime/buffers/fence.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/assert.h"

bool tide_fence_asymmetric;

static pthread_once_t prepared = PTHREAD_ONCE_INIT;

static long barrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0);
}

static void prepare(void)
{
    long commands = barrier(MEMBARRIER_CMD_QUERY);
    tide_fence_asymmetric = commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
                            barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

void tide_fence_prepare(void)
{
    pthread_once(&prepared, prepare);
}

/* A forked child may have to register again. */
void tide_fence_heavy(void)
{
    if (tide_fence_asymmetric && barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) {
        long failed = barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
        failed = failed != 0 ? failed : barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
        tide_assert(failed == 0);
        (void)failed;
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

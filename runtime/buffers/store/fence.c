/* SPDX-License-Identifier: MIT */
/* The heavy side of the fence (runtime/buffers/store/fence.h): membarrier(2). */
#define _GNU_SOURCE
#include "runtime/buffers/store/fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/os.h"
#include "runtime/base/settings.h"

static bool fence_membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0) == 0;
}

/* A process must register before its first call, a forked child perhaps again. */
static bool fence_all_threads(void)
{
    return fence_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) ||
           (fence_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
            fence_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED));
}

/* Where the system has no such call, or a filter forbids it, time does: what was written here is
 * seen by every read that follows the first fence. A light side that read before has written
 * before, and its store leaves the processor while this thread sleeps, which is hundreds of times
 * as long as a processor keeps one. */
void tide_fence_heavy(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (tide_locked_down() || !fence_all_threads())
        tide_os_nap();
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

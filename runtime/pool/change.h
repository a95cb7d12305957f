/* SPDX-License-Identifier: MIT */
/* What becomes of a pool whose owner was at work in it when another thread forked.
 *
 *  1. Whoever changes which memory the slots of a pool have, or what is known of them, says so
 *     before, and takes it back after. Fork waits for none of them: a change may wait for a driver.
 *  2. The child has all that a thread wrote in the order in which the thread wrote it, up to some
 *     point. So a pool whose owner is not there was either being changed, and says so, or its rows
 *     are whole.
 *  3. The first kind is torn: each call but tide_pool_destroy refuses it, and that gives back what
 *     the pool held of others, and leaves its memory as it is.
 *  4. The second kind may have any level open, and the last one half-way. A reset goes by the log
 *     up to its top, below which all entries are whole, and then sets every shelf of every row
 *     itself. */
#ifndef TIDEPOOL_RUNTIME_POOL_CHANGE_H
#define TIDEPOOL_RUNTIME_POOL_CHANGE_H

#include "runtime/pool/core.h"

/* Between the two the calling thread changes the pool. They nest: the end gets what the beginning
 * returned. */
static inline uintptr_t tide_change_begin(tide_pool_core *core)
{
    uintptr_t before = core->changing;
    tide_assert(!core->torn);
    __atomic_store_n(&core->changing, tide_os_thread(), __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_ACQ_REL); /* on x86-64 only the compiler is held back */
    return before;
}

static inline void tide_change_end(tide_pool_core *core, uintptr_t before)
{
    tide_assert(core->changing == tide_os_thread());
    __atomic_store_n(&core->changing, before, __ATOMIC_RELEASE);
}

#endif

/* SPDX-License-Identifier: MIT */
/* Free slots that go because memory is short, and what the pool of an idle thread holds.
 *
 * A thread that has nothing to do opens no scope, so it serves no request: somebody else must take
 * what its pool keeps. No fast path knows of that. Whoever takes, with the registry locked,
 *
 *  1. marks the pool `seized` and gives it the odd `copy`, so that cold code of the owner that begins
 *     now waits in tide_pool_use until the registry is free;
 *  2. closes the log, so that no level opens but by cold code, and sets the limit of each free slot
 *     to 0, so that no array is acquired there but by cold code;
 *  3. asks the system whether the owner sleeps in a system call. If it does, at that moment it is in
 *     no fast path, for these make no call; and it has seen (1) and (2) when it runs next;
 *  4. asks, before (3) and after it, whether the owner is at the root, and neither in cold code that
 *     is changing slots (`working`) nor in a function of the program that the pool called (`shut`).
 *     From here on no level is open or opens, so that no slot becomes free;
 *  5. does (2) once more: a level that was open the first time may have given slots back since;
 *  6. asks (3) and (4) once more. Now the limit of every free slot is 0, and the owner has seen it:
 *     nobody but the taker touches free slots until the pool is let go.
 *
 * Cold code that was on its way before (1) opens the pool again when it ends: so (4) asks that the pool
 * is still closed. If an answer is no, the pool is let go as it was, but for one cold entry. A signal
 * handler that sleeps in a system call on top of an interrupted fast path looks like an idle owner: a
 * handler must not wait for anything (<tidepool/limit.h>). */
#ifndef TIDEPOOL_RUNTIME_POOL_PRESS_H
#define TIDEPOOL_RUNTIME_POOL_PRESS_H

#include "runtime/pool/core.h"

/* Cold code changes slots until tide_pool_worked. Owner only; may be nested in nothing. Another thread
 * may adopt a pool while its owner presses it for another one (tide_pools_press): that owner calls this
 * with the registry locked, and tide_pool_adopt waits until the pool has been worked on. */
static inline void tide_pool_working(tide_pool_core *core)
{
    __atomic_store_n(&core->working, true, __ATOMIC_RELAXED);
    __asm__ volatile("" ::: "memory");
}

static inline void tide_pool_worked(tide_pool_core *core)
{
    __asm__ volatile("" ::: "memory");
    __atomic_store_n(&core->working, false, __ATOMIC_RELEASE);
}

/* Gives back free slots of the pool's device until that is so many bytes, or none are left: first
 * `slot`, if it is free. Returns how many bytes went. Owner, or who has seized the pool. */
size_t tide_pool_press(tide_pool *pool, tide_row *row, tide_slot *slot, size_t bytes);

/* What idle pools keep, for tide_press and its messages (runtime/device/budget.h): of the host those of
 * all threads, of a device the calling thread's, and nothing for memory that does not lie there. */
size_t tide_pools_press(tide_device *device, int memory, size_t bytes);
void tide_pools_tell(const tide_device *device, char *text, size_t room);

/* Gives back all free slots of a pool whose owner, another thread, is idle. Registry locked. */
void tide_pool_press_idle(tide_pool *pool);

/* May the calling thread, its owner, trim it with the registry locked? */
bool tide_pool_is_own_and_idle(const tide_pool *pool);

#endif

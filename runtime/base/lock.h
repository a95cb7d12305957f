/* SPDX-License-Identifier: MIT */
/* Every mutex of the library is a tide_lock, and this is their law. (The mutex of the metrics, a
 * component, is not one: no function of the library is called while it is held.)
 *
 *  1. Each has a rank (runtime/base/fork.h lists them, outermost first). A thread takes a lock only
 *     while all that it holds are of lower ranks. A lock that one thread may take twice counts that
 *     itself.
 *  2. Code that is not ours is called with none held: the dynamic linker, which runs constructors
 *     and destructors under a lock of its own, and functions of the program (hooks, listeners,
 *     deleters). The same holds for each wait for a thread, but for one that needs no lock to be
 *     done (runtime/buffers/store/instance.h, 1).
 *  3. A device's driver is called with locks held where others must not be in it meanwhile: for the
 *     memory of a depot, and the pages of a device. Such a call takes no lock of the library, waits
 *     for no thread that needs one, and calls no function of the library or the program.
 *
 * Taking a lock asserts (1), tide_lock_assert_none asserts (2). */
#ifndef TIDEPOOL_RUNTIME_BASE_LOCK_H
#define TIDEPOOL_RUNTIME_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "runtime/base/fork.h"

typedef struct tide_lock {
    pthread_mutex_t mutex;
    tide_fork_rank rank;
} tide_lock;

#define TIDE_LOCK(of_rank)                 \
    {                                      \
        PTHREAD_MUTEX_INITIALIZER, of_rank \
    }

/* For locks of things that are made and ended. */
void tide_lock_create(tide_lock *lock, tide_fork_rank rank);
void tide_lock_destroy(tide_lock *lock);

void tide_lock_take(tide_lock *lock);
void tide_lock_let_go(tide_lock *lock);

/* Takes it if nobody has it, and waits for nobody. */
bool tide_lock_try(tide_lock *lock);

/* Lets go, waits to be woken, and takes the lock again. No other lock is held. */
void tide_lock_wait(tide_lock *lock, pthread_cond_t *woken);

/* The same until that time of the condition's clock; false: it has come. */
bool tide_lock_wait_until(tide_lock *lock, pthread_cond_t *woken, const struct timespec *until);

/* A condition whose clock is the monotonic one; such a time, so many milliseconds after another, or
 * from now on. */
void tide_lock_make_condition(pthread_cond_t *woken);
struct timespec tide_lock_time_after(struct timespec since, double ms);
struct timespec tide_lock_time_in(double ms);

/* Around fork only, for many locks of one rank: whoever forks takes them all, in the order of their
 * list. */
void tide_lock_take_with_others(tide_lock *lock);
void tide_lock_let_go_with_others(tide_lock *lock);

/* Does the calling thread hold one of this rank? */
bool tide_lock_held(tide_fork_rank rank);

/* Does it hold any? */
bool tide_lock_held_any(void);

/* Before each call of code that is not ours. */
void tide_lock_assert_none(void);

#endif

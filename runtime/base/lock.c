/* SPDX-License-Identifier: MIT */
/* Mutexes with ranks, and the one word by which a thread knows which of them it holds. */
#define _GNU_SOURCE
#include "runtime/base/lock.h"

#include <errno.h>
#include <stdint.h>

#include "runtime/base/assert.h"

static _Thread_local uint32_t lock_mine; /* a bit for each rank */

_Static_assert((int)TIDE_FORK_RANKS <= 32, "each rank has a bit");

/* ---- taking and letting go ---------------------------------------------------------------- */

void tide_lock_create(tide_lock *lock, tide_fork_rank rank)
{
    tide_assert((unsigned)rank < TIDE_FORK_RANKS);
    pthread_mutex_init(&lock->mutex, NULL);
    lock->rank = rank;
}

void tide_lock_destroy(tide_lock *lock)
{
    pthread_mutex_destroy(&lock->mutex);
}

/* All that the thread holds are of outer ranks. */
static void lock_note_taken(tide_fork_rank rank)
{
    tide_assert(lock_mine >> rank == 0);
    lock_mine |= UINT32_C(1) << rank;
}

static void lock_note_let_go(tide_fork_rank rank)
{
    lock_mine &= ~(UINT32_C(1) << rank);
}

static void lock_pause(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

/* Most locks are held for less time than it takes to sleep and to be woken. But whoever has it may
 * have lost its processor, maybe to this thread, which may be one that goes before all others: so
 * only for a while (a pause takes 10 to 150 cycles), and with few looks, since each takes the
 * mutex's memory from the processor that will let go of it. (The C library's adaptive mutex looks a
 * hundred times: with four threads for each processor buffers then took nearly twice as long.) */
static bool lock_take_spinning(tide_lock *lock)
{
    enum { LOOKS = 5, PAUSES = 8 };
    for (int look = 0; look < LOOKS; look++) {
        if (pthread_mutex_trylock(&lock->mutex) == 0)
            return true;
        for (int i = 0; i < PAUSES; i++)
            lock_pause();
    }
    return false;
}

void tide_lock_take(tide_lock *lock)
{
    lock_note_taken(lock->rank);
    if (!lock_take_spinning(lock))
        pthread_mutex_lock(&lock->mutex);
}

bool tide_lock_try(tide_lock *lock)
{
    lock_note_taken(lock->rank);
    bool taken = pthread_mutex_trylock(&lock->mutex) == 0;
    if (!taken)
        lock_note_let_go(lock->rank);
    return taken;
}

/* Whoever takes it next may destroy it at once, so after the unlock nothing of it is read. */
void tide_lock_let_go(tide_lock *lock)
{
    const tide_fork_rank rank = lock->rank;
    tide_assert(tide_lock_held(rank));
    pthread_mutex_unlock(&lock->mutex);
    lock_note_let_go(rank);
}

void tide_lock_wait(tide_lock *lock, pthread_cond_t *woken)
{
    tide_assert(lock_mine == UINT32_C(1) << lock->rank);
    pthread_cond_wait(woken, &lock->mutex);
}

bool tide_lock_wait_until(tide_lock *lock, pthread_cond_t *woken, const struct timespec *until)
{
    tide_assert(lock_mine == UINT32_C(1) << lock->rank);
    return pthread_cond_timedwait(woken, &lock->mutex, until) != ETIMEDOUT;
}

void tide_lock_make_condition(pthread_cond_t *woken)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(woken, &attributes);
    pthread_condattr_destroy(&attributes);
}

struct timespec tide_lock_time_after(struct timespec since, double ms)
{
    enum { NS = 1000000000 };
    struct timespec until = since;
    tide_assert(ms > 0 && since.tv_nsec >= 0 && since.tv_nsec < NS);
    until.tv_sec += (time_t)(ms / 1e3);
    until.tv_nsec += (long)((ms - 1e3 * (double)(long)(ms / 1e3)) * 1e6);
    if (until.tv_nsec >= NS) {
        until.tv_nsec -= NS;
        until.tv_sec++;
    }
    tide_assert(until.tv_nsec >= 0 && until.tv_nsec < NS);
    return until;
}

struct timespec tide_lock_time_in(double ms)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return tide_lock_time_after(now, ms);
}

void tide_lock_take_with_others(tide_lock *lock)
{
    tide_assert(lock_mine >> lock->rank == 0);
    pthread_mutex_lock(&lock->mutex);
}

void tide_lock_let_go_with_others(tide_lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
}

bool tide_lock_held(tide_fork_rank rank)
{
    return (lock_mine >> rank & 1) != 0;
}

bool tide_lock_held_any(void)
{
    return lock_mine != 0;
}

/* ---- code that is not ours ---------------------------------------------------------------- */

void tide_lock_assert_none(void)
{
    tide_assert(lock_mine == 0);
}

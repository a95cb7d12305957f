/* SPDX-License-Identifier: MIT */
/* Magazines: each thread's own buffers of a quick instance, found through the thread, entered
 * without a lock, stopped by whoever holds the instance's mutex. The protocol is in
 * runtime/buffers/store/instance.h, 1 and 2. */
#ifndef TIDEPOOL_RUNTIME_BUFFERS_STORE_MAGAZINE_H
#define TIDEPOOL_RUNTIME_BUFFERS_STORE_MAGAZINE_H

#include "runtime/buffers/store/fence.h"
#include "runtime/buffers/store/handle.h"

enum { TIDE_MAGAZINE_WAYS = 64 }; /* quick instances at a time */

/* A thread's magazine of the instance that has the way. An instance's number is never used again, so a
 * magazine that is gone is never found, and the next instance's takes its way. */
typedef struct tide_magazine_way {
    uint64_t number;
    tide_magazine *magazine;
} tide_magazine_way;

/* The calling thread's, TIDE_MAGAZINE_WAYS of them; never NULL. The shared library
 * reads it at an offset that is fixed when it is loaded: it takes eight bytes of the little room which
 * a process has for thread-local memory of modules loaded later. A copy in a plugin must not, for
 * there may be many. In a program the linker makes either a constant offset. */
#ifdef TIDEPOOL_SHARED
#define TIDE_MAGAZINE_TLS __attribute__((tls_model("initial-exec"), visibility("hidden")))
#else
#define TIDE_MAGAZINE_TLS __attribute__((visibility("hidden")))
#endif
extern _Thread_local const tide_magazine_way *tide_magazine_ways TIDE_MAGAZINE_TLS;

/* The calling thread's magazine, if it has one; else NULL. */
TIDE_INLINE tide_magazine *tide_magazine_known(const tide_buffers *buffers)
{
    const void *way = (const char *)tide_magazine_ways + buffers->way;
    const tide_magazine_way *known = way;
    tide_assert(buffers->number != 0);
    if (TIDE_UNLIKELY(known->number != buffers->number))
        return NULL;
    tide_magazine *magazine = known->magazine;
    if (magazine == NULL)
        __builtin_unreachable(); /* so that nobody asks again */
    return magazine;
}

/* The calling thread's magazine, made on first use; NULL, without a message: the instance is not
 * quick, or there is no memory. Mutex not held. */
tide_magazine *tide_magazine_of(tide_buffers *buffers);

/* False: somebody has stopped the magazines, or wants to; take the mutex. */
TIDE_INLINE bool tide_magazine_enter(const tide_buffers *buffers, tide_magazine *magazine)
{
    tide_assert(magazine->busy == 0); /* written by this thread only, which is not in it yet */
    tide_assert(magazine->buffers == buffers);
    tide_fence_light_store(&magazine->busy, 1);
    if (TIDE_LIKELY(__atomic_load_n(&buffers->stopped, __ATOMIC_ACQUIRE) == 0))
        return true;
    __atomic_store_n(&magazine->busy, 0, __ATOMIC_RELEASE);
    return false;
}

TIDE_INLINE void tide_magazine_leave(tide_magazine *magazine)
{
    tide_assert(magazine->busy == 1);
    __atomic_store_n(&magazine->busy, 0, __ATOMIC_RELEASE);
}

/* Nobody is in a magazine any more, until all are resumed. Mutex held. */
void tide_magazines_stop(tide_buffers *buffers);
void tide_magazines_resume(tide_buffers *buffers);

/* Ends all magazines of an instance that nobody uses. Registry and mutex held. */
void tide_magazines_end(tide_buffers *buffers);

/* In the child of a fork: what the magazines of threads that are not there hold comes to the depot.
 * Registry and mutex held, magazines stopped. */
void tide_magazines_inherit(tide_buffers *buffers);

/* ---- cells: by the magazine's thread, in its magazine or with the mutex held; or stopped ---- */

/* In a register: else the compiler finds the place of a slot by another calculation. */
TIDE_INLINE tide_cell *tide_cell_at(tide_magazine *magazine, size_t bucket)
{
    tide_cell *cell = &magazine->cells[bucket];
    tide_assert(bucket < TIDE_BUCKETS);
    __asm__("" : "+r"(cell));
    return cell;
}

TIDE_INLINE void tide_cell_push(tide_cell *cell, uint32_t slot)
{
    tide_assert(cell->held < cell->room && cell->room <= TIDE_CELL_SLOTS);
    cell->slots[cell->held++] = slot;
}

/* The oldest entries of a cell go. */
void tide_cell_forget_oldest(tide_cell *cell, unsigned count);

#endif

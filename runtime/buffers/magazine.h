/* SPDX-License-Identifier: MIT */
/* Magazines: each thread's own buffers, found through the thread, entered without a lock, stopped
 * by whoever holds the instance's mutex. The protocol is in runtime/buffers/instance.h, 1 and 2. */
#ifndef TIDEPOOL_RUNTIME_BUFFERS_MAGAZINE_H
#define TIDEPOOL_RUNTIME_BUFFERS_MAGAZINE_H

#include "runtime/buffers/cell.h"
#include "runtime/buffers/fence.h"

enum { TIDE_MAGAZINE_WAYS = 4 };

/* A magazine that the thread used lately. An instance's number is never used again, so the way to a
 * magazine that is gone is never found. */
typedef struct tide_magazine_way {
    uint64_t number;
    tide_magazine *magazine;
} tide_magazine_way;

extern _Thread_local tide_magazine_way tide_magazine_ways[TIDE_MAGAZINE_WAYS]
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* The calling thread's magazine, made on first use; NULL, without a message, when it
 * can have none. */
tide_magazine *tide_magazine_make(tide_buffers *buffers);

TIDE_INLINE tide_magazine *tide_magazine_of(tide_buffers *buffers)
{
    const tide_magazine_way *way = &tide_magazine_ways[buffers->number % TIDE_MAGAZINE_WAYS];
    tide_assert(buffers->number != 0);
    tide_assert(way->number != buffers->number || way->magazine->buffers == buffers);
    return TIDE_LIKELY(way->number == buffers->number) ? way->magazine
                                                       : tide_magazine_make(buffers);
}

/* False: somebody has stopped the magazines, or wants to; take the mutex. */
TIDE_INLINE bool tide_magazine_enter(tide_magazine *magazine)
{
    tide_assert(magazine->busy == 0); /* written by this thread only, which is not in it yet */
    tide_fence_light_store(&magazine->busy, 1);
    if (TIDE_LIKELY(__atomic_load_n(&magazine->buffers->stopped, __ATOMIC_ACQUIRE) == 0))
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

/* Ends all magazines of an instance that nobody uses. Registry and mutex
 * held, magazines stopped. */
void tide_magazines_end(tide_buffers *buffers);

/* Cells of a key. Only by the magazine's thread, mutex held. False: no memory. */
bool tide_cells_make(tide_magazine *magazine, unsigned key);

#endif

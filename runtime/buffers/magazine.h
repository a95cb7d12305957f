/* SPDX-License-Identifier: MIT */
/* Magazines: each thread's own buffers, found through the thread, entered without a lock, stopped
 * by whoever holds the instance's mutex. The protocol is in runtime/buffers/buffers.h, 1 and 2. */
#ifndef TIDEPOOL_RUNTIME_BUFFERS_MAGAZINE_H
#define TIDEPOOL_RUNTIME_BUFFERS_MAGAZINE_H

#include "runtime/buffers/buffers.h"
#include "runtime/buffers/fence.h"

enum { TIDE_MAGAZINE_WAYS = 4 };

/* The thread's magazines used last. An instance's number is never used again, so what is left of
 * one that is gone is never found. */
typedef struct tide_magazine_way {
    uint64_t number;
    tide_magazine *magazine;
} tide_magazine_way;

extern _Thread_local tide_magazine_way tide_magazine_ways[TIDE_MAGAZINE_WAYS]
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* The calling thread's magazine, made on first use; NULL, without a message, when it can have none.
 */
tide_magazine *tide_magazine_make(tide_buffers *buffers);

TIDE_INLINE tide_magazine *tide_magazine_of(tide_buffers *buffers)
{
    const tide_magazine_way *way = &tide_magazine_ways[buffers->number % TIDE_MAGAZINE_WAYS];
    return TIDE_LIKELY(way->number == buffers->number) ? way->magazine
                                                       : tide_magazine_make(buffers);
}

/* False: somebody has stopped the magazines, or wants to; take the mutex. */
TIDE_INLINE bool tide_magazine_enter(tide_magazine *magazine)
{
    tide_fence_light_store(&magazine->busy, 1);
    if (TIDE_LIKELY(__atomic_load_n(&magazine->buffers->stopped, __ATOMIC_ACQUIRE) == 0))
        return true;
    __atomic_store_n(&magazine->busy, 0, __ATOMIC_RELEASE);
    return false;
}

TIDE_INLINE void tide_magazine_leave(tide_magazine *magazine)
{
    __atomic_store_n(&magazine->busy, 0, __ATOMIC_RELEASE);
}

/* Nobody is in a magazine any more, until they are resumed. Mutex held. */
void tide_magazines_stop(tide_buffers *buffers);
void tide_magazines_resume(tide_buffers *buffers);

/* Ends all magazines of an instance that nobody uses. Registry and mutex held, magazines stopped.
 */
void tide_magazines_end(tide_buffers *buffers);

/* Cells of a key. Only by the magazine's thread, mutex held. False: no memory. */
bool tide_cells_make(tide_magazine *magazine, unsigned key);

/* ---- cells ---- */

TIDE_INLINE unsigned tide_cell_held(const tide_cell *cell)
{
    return __atomic_load_n(&cell->held, __ATOMIC_RELAXED);
}

TIDE_INLINE unsigned tide_cell_credit(const tide_cell *cell)
{
    return __atomic_load_n(&cell->credit, __ATOMIC_RELAXED);
}

TIDE_INLINE void tide_cell_hold(tide_cell *cell, unsigned held)
{
    __atomic_store_n(&cell->held, (uint16_t)held, __ATOMIC_RELAXED);
}

TIDE_INLINE void tide_cell_trust(tide_cell *cell, unsigned credit)
{
    __atomic_store_n(&cell->credit, (uint16_t)credit, __ATOMIC_RELAXED);
}

TIDE_INLINE void tide_cell_push(tide_cell *cell, uint32_t slot)
{
    unsigned held = tide_cell_held(cell);
    cell->slots[held] = slot;
    tide_cell_hold(cell, held + 1);
}

/* Takes the entry out, and closes the gap. */
TIDE_INLINE uint32_t tide_cell_take(tide_cell *cell, unsigned at)
{
    uint32_t slot = cell->slots[at];
    unsigned held = tide_cell_held(cell) - 1;
    for (; at < held; at++)
        cell->slots[at] = cell->slots[at + 1];
    tide_cell_hold(cell, held);
    return slot;
}

#endif

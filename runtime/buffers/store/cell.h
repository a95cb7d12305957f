/* SPDX-License-Identifier: MIT */
/* Cells, the depot's buckets, and how buffers and permits go from one to the other. A cell is used
 * by its thread, in its magazine or with the mutex held, or by who has stopped all magazines
 * (runtime/buffers/store/instance.h, 1 and 2). A bucket of the depot is used with the mutex
 * held. */
#ifndef TIDEPOOL_RUNTIME_BUFFERS_STORE_CELL_H
#define TIDEPOOL_RUNTIME_BUFFERS_STORE_CELL_H

#include <string.h>

#include "runtime/buffers/store/runs.h"

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
    tide_assert(held <= TIDE_CELL_SLOTS);
    __atomic_store_n(&cell->held, held, __ATOMIC_RELAXED);
}

TIDE_INLINE void tide_cell_trust(tide_cell *cell, unsigned credit)
{
    tide_assert(credit <= TIDE_CELL_SLOTS);
    __atomic_store_n(&cell->credit, (uint8_t)credit, __ATOMIC_RELAXED);
}

/* The calling thread's cell for the buffers of a record; NULL: it has none. */
TIDE_INLINE tide_cell *tide_cell_for(const tide_magazine *magazine,
                                     const tide_buffer_record *record)
{
    unsigned key = __atomic_load_n(&record->key, __ATOMIC_RELAXED);
    return magazine != NULL && magazine->cells[key] != NULL
               ? &magazine->cells[key][__atomic_load_n(&record->bucket, __ATOMIC_RELAXED)]
               : NULL;
}

/* The buffer is in the cell, or its thread's, from now on; `cell` NULL: nobody's. Nobody's is each
 * buffer of another key than the instance's, at which no fast path looks: one that is left live
 * outlives the cells of its thread, and where these lay another thread may have cells of the
 * instance's own key, which must not be taken for its owner. */
TIDE_INLINE void tide_cell_own(const tide_buffers *buffers, const tide_cell *cell,
                               tide_buffer_record *record)
{
    bool own = __atomic_load_n(&record->key, __ATOMIC_RELAXED) == buffers->key;
    __atomic_store_n(&record->owner, own ? cell : NULL, __ATOMIC_RELAXED);
}

/* The cell has an idle credit for it. */
TIDE_INLINE void tide_cell_push(const tide_buffers *buffers, tide_cell *cell, uint32_t slot)
{
    unsigned held = tide_cell_held(cell);
    tide_assert(held < tide_cell_credit(cell) && slot < TIDE_BUFFER_MAX);
    tide_cell_own(buffers, cell, tide_handle_at(buffers, slot));
    cell->slots[held] = slot;
    tide_cell_hold(cell, held + 1);
}

/* A cell's room begins with FIRST bytes, and doubles with each refill up to MAX bytes. So a thread
 * that only releases what others acquire keeps next to nothing from them. */
enum { TIDE_CELL_BYTES_FIRST = 16 << 10, TIDE_CELL_BYTES_MAX = 2 << 20 };

_Static_assert(TIDE_CELL_SLOTS < 1 << 6, "a cell's room is of 6 bits");

/* Buffers of so many bytes in `all` bytes, as many as a cell may hold. */
static inline unsigned tide_cell_room_in(size_t all, size_t bytes)
{
    tide_assert(bytes >= TIDE_BUCKET_MIN);
    return all / bytes < TIDE_CELL_SLOTS ? (unsigned)(all / bytes) : TIDE_CELL_SLOTS;
}

/* The room of a new cell; 0: the buffers are large, none is kept before the thread acquires one. */
static inline void tide_cell_set_up(tide_cell *cell, size_t bytes)
{
    if (cell->room == 0)
        cell->room = tide_cell_room_in(TIDE_CELL_BYTES_FIRST, bytes);
}

/* Its thread acquires, and the cell was too small. */
static inline void tide_cell_grow(tide_cell *cell, size_t bytes)
{
    unsigned most = tide_cell_room_in(TIDE_CELL_BYTES_MAX, bytes);
    unsigned twice = cell->room == 0 ? 1 : 2u * cell->room;
    most = most == 0 ? 1 : most;
    cell->room = twice < most ? twice : most;
    tide_assert(cell->room > 0 && cell->room <= TIDE_CELL_SLOTS);
}

/* Takes the entry out, and closes the gap. Its credit stays, idle. */
TIDE_INLINE uint32_t tide_cell_take(tide_cell *cell, unsigned at)
{
    tide_assert(at < tide_cell_held(cell));
    uint32_t slot = cell->slots[at];
    unsigned held = tide_cell_held(cell) - 1;
    for (; at < held; at++)
        cell->slots[at] = cell->slots[at + 1];
    tide_cell_hold(cell, held);
    return slot;
}

/* ---- permits and lists of the depot ---- */

/* NULL: no buffer of the key was ever acquired. */
static inline tide_depot_bucket *tide_depot_at(const tide_buffers *buffers, unsigned key,
                                               unsigned bucket)
{
    tide_assert(key < TIDE_BUFFER_KEYS && bucket < TIDE_BUCKETS);
    return buffers->depot[key] != NULL ? &buffers->depot[key][bucket] : NULL;
}

static inline void tide_permits_give(tide_buffers *buffers, tide_depot_bucket *depot,
                                     unsigned count, size_t bytes)
{
    tide_assert(depot->permits >= count && buffers->bytes_permitted >= count * bytes);
    depot->permits -= count;
    buffers->bytes_permitted -= count * bytes;
}

/* The oldest entries of a cell go, without their credits. */
static inline void tide_cell_forget_oldest(tide_cell *cell, unsigned count)
{
    unsigned held = tide_cell_held(cell);
    tide_assert(count <= held);
    memmove(cell->slots, cell->slots + count, (held - count) * sizeof cell->slots[0]);
    tide_cell_hold(cell, held - count);
}

/* The list has a permit for it. */
static inline void tide_depot_push(tide_buffers *buffers, tide_depot_bucket *depot, uint32_t slot)
{
    tide_assert(!tide_handle_live(tide_handle_at(buffers, slot)));
    tide_runs_add(buffers, depot, slot);
    depot->cached++;
    tide_assert(depot->cached <= depot->permits);
}

/* Of what the depot had cached, so many are gone. */
static inline void tide_depot_took(tide_depot_bucket *depot, uint32_t count)
{
    tide_assert(count <= depot->cached);
    depot->cached -= count;
    if (depot->cached < depot->spare)
        depot->spare = depot->cached;
}

/* What the link leads to; its permit stays taken. */
static inline uint32_t tide_depot_take(tide_buffers *buffers, tide_depot_bucket *depot,
                                       uint32_t *link)
{
    uint32_t slot = *link;
    tide_assert(slot != TIDE_NO_RECORD && depot->cached > 0);
    tide_runs_remove(buffers, depot, link);
    tide_depot_took(depot, 1);
    return slot;
}

/* ---- from cells to the depot ---- */

/* A cell's credits that stand for no buffer are given up. True if there were any. */
static inline bool tide_cell_settle(tide_buffers *buffers, tide_cell *cell, unsigned key,
                                    unsigned bucket)
{
    unsigned held = tide_cell_held(cell), idle = tide_cell_credit(cell) - held;
    tide_assert(held <= tide_cell_credit(cell));
    if (idle == 0)
        return false;
    tide_cell_trust(cell, held);
    tide_permits_give(buffers, tide_depot_at(buffers, key, bucket), idle,
                      tide_bucket_bytes(buffers->policy, bucket));
    return true;
}

/* All of it, permits included. */
static inline void tide_cell_empty(tide_buffers *buffers, tide_cell *cell, unsigned key,
                                   unsigned bucket)
{
    tide_depot_bucket *depot = tide_depot_at(buffers, key, bucket);
    tide_cell_settle(buffers, cell, key, bucket);
    unsigned held = tide_cell_held(cell);
    for (unsigned i = 0; i < held; i++) /* the oldest first */
        tide_depot_push(buffers, depot, cell->slots[i]);
    tide_cell_hold(cell, 0);
    tide_cell_trust(cell, 0);
}

#endif

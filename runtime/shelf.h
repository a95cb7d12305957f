/* SPDX-License-Identifier: MIT */
/* Shelves and their slots: set up, grown, exchanged, given back. All cold. */
#ifndef TIDEPOOL_RUNTIME_SHELF_H
#define TIDEPOOL_RUNTIME_SHELF_H

#include "runtime/pool.h"
#include "runtime/type.h"

/* What cold code knows of a slot. What fast paths see of its capacity is less: the largest
 * request since the last compact, so that a request larger than any before it comes by here
 * and peaks are known without a counter on the fast path; and 0 in a careful pool. */
typedef struct tide_slot_record {
    size_t capacity; /* elements there is memory for                        */
    size_t bytes;    /* of that memory                                      */
    size_t peak;     /* largest request since the last compact, in elements */
    size_t length;   /* elements asked for; careful pools only              */
    bool live;       /* careful pools only                                  */
} tide_slot_record;

/* The pool's shelf of a type, set up if this is its first use. NULL with a message. */
tide_shelf *tide_shelf_ready(tide_pool *pool, tide_type type, const char *call);

/* Makes the slot at `next` large enough for n elements: takes a fitting one from further along,
 * or grows it, or appends one. NULL with a message, nothing changed, when that fails. */
tide_slot *tide_shelf_fit(tide_pool *pool, tide_shelf *shelf, size_t n, const char *call);

/* Moves `next` past the slot and hands its memory out for n elements. */
void *tide_shelf_take(tide_pool *pool, tide_shelf *shelf, tide_slot *slot, size_t n);

/* Gives a slot's memory back to the device. The slot stays, hollow, in its place. */
void tide_slot_hollow(tide_pool *pool, tide_shelf *shelf, tide_slot *slot);

/* Careful pools: the live slots from `first` to `next` are so no longer; poisons or frees them. */
void tide_shelf_retire(tide_pool *pool, tide_shelf *shelf, tide_slot *first);

/* Puts two exchanged slots back; `entry` is the log's. */
void tide_shelf_exchange_undo(tide_pool *pool, const tide_entry *entry);

static inline uint32_t tide_shelf_live(const tide_shelf *shelf)
{
    return (uint32_t)(shelf->next - shelf->row);
}

static inline tide_slot_record *tide_slot_record_of(const tide_shelf *shelf, const tide_slot *slot)
{
    return &shelf->records[slot - shelf->row];
}

#endif

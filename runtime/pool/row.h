/* SPDX-License-Identifier: MIT */
/* Rows of slots: set up, grown, exchanged, given back. All cold. */
#ifndef TIDEPOOL_RUNTIME_POOL_ROW_H
#define TIDEPOOL_RUNTIME_POOL_ROW_H

#include "runtime/pool/pool.h"
#include "runtime/base/type.h"

/* What cold code knows of a slot. What fast paths see, its limit, is less: one more than the
 * largest request since the last compact, so that a request larger than any before it comes by
 * here and peaks are known without a counter on the fast path; and 0 in a careful pool. */
typedef struct tide_slot_record {
    size_t capacity; /* elements there is memory for                        */
    size_t bytes;    /* of that memory                                      */
    size_t peak;     /* largest request since the last compact, in elements */
    tide_buffer buffer; /* whose memory it is, where the pool draws from buffers: else none */
    struct tide_pin *pin; /* exported memory that may come back, or NULL: runtime/pool/pin.h */

    /* Careful pools only: */
    size_t length;   /* elements asked for                                    */
    uint64_t tag;    /* of the level it was acquired in                       */
    tide_place place; /* where, if known                               */
    struct tide_guard *guard; /* whose memory it is, or NULL: runtime/check/guard.h */
    bool live;
} tide_slot_record;

/* The pool's row of a type, set up if this is its first use. NULL with a message. */
tide_row *tide_row_ready(tide_pool *pool, tide_type type, const char *call);

/* Makes the slot at `next` large enough for n elements: takes a fitting one from further along,
 * or grows it, or appends one. NULL with a message, nothing changed, when that fails. */
tide_slot *tide_row_fit(tide_pool *pool, tide_row *row, size_t n, tide_place place,
                        const char *call);

/* Moves `next` past the slot and hands its memory out for n elements. */
void *tide_row_take(tide_pool *pool, tide_row *row, tide_slot *slot, size_t n,
                      tide_place place);

/* Gives a slot's memory back to the device. The slot stays, hollow, in its place. */
void tide_slot_hollow(tide_pool *pool, tide_row *row, tide_slot *slot);

/* Careful pools: the live slots from `first` to `next` are so no longer; poisons or frees them. */
void tide_row_retire(tide_pool *pool, tide_row *row, tide_slot *first);

/* Puts two exchanged slots back; `entry` is the log's. */
void tide_row_exchange_undo(tide_pool *pool, const tide_entry *entry);

static inline uint32_t tide_row_live(const tide_row *row)
{
    return (uint32_t)(row->shelf->next - row->slots);
}

static inline tide_slot_record *tide_slot_record_of(const tide_row *row, const tide_slot *slot)
{
    return &row->records[slot - row->slots];
}

#endif

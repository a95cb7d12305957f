/* SPDX-License-Identifier: MIT */
/* Rows of slots: set up, grown, exchanged, given back. All cold. */
#ifndef TIDEPOOL_RUNTIME_POOL_ROW_H
#define TIDEPOOL_RUNTIME_POOL_ROW_H

#include "runtime/base/type.h"
#include "runtime/pool/core.h"

/* The pool's row of a type, set up if this is its first use. NULL with a message. */
tide_row *tide_row_ready(tide_pool *pool, tide_type type, const char *call);

/* Gives back the addresses of a row's slots, which hold nothing. */
void tide_row_unreserve_slots(tide_slot *slots);

/* Makes the slot at `next` large enough for n elements: takes a fitting one from further along,
 * or grows it, or appends one. NULL with a message, nothing changed, when that fails. */
tide_slot *tide_row_fit(tide_pool *pool, tide_row *row, size_t n, tide_place place,
                        const char *call);

/* Moves `next` past the slot and hands its memory out for n elements. */
void *tide_row_take(tide_pool *pool, tide_row *row, tide_slot *slot, size_t n, tide_place place);

/* Makes the live array in a slot n elements long, if it is shorter. It keeps its content. Where the
 * slot has no room it moves: then slot->data is another. An error changes nothing. */
tide_status tide_row_grow(tide_pool *pool, tide_row *row, tide_slot *slot, size_t n,
                          tide_place place, const char *call);

/* A new peak begins: the one so far counts for what the slot was used for lately (pool/trim.c). */
void tide_slot_note_peak(tide_slot_record *record);

/* Gives a slot's memory back to the device. The slot stays, hollow, in its place. */
void tide_slot_hollow(tide_pool *pool, tide_row *row, tide_slot *slot);

/* Careful pools: the live slots from `first` to `next` are so no longer; poisons or frees them. */
void tide_row_retire(tide_pool *pool, tide_row *row, tide_slot *first);

/* Puts two exchanged slots back; `entry` is the log's. */
void tide_row_exchange_undo(tide_pool *pool, const tide_entry *entry);

/* What tide_acquire_slow does, for callers that come here often: it is compiled for speed. */
void *tide_acquire_touch(tide_pool *pool, tide_type type, size_t n, TIDE_PLACE);

#endif

/* SPDX-License-Identifier: MIT */
/* The undo log: what a level saves when it opens or when a type is first touched, and the one
 * loop that puts it back.
 *
 * Entries of one level stand together, older levels below. Putting back from the top down
 * restores each shelf to its oldest state above the base, whoever saved it and however many
 * levels were left open in between: that is why a leaked scope needs no special case. */
#ifndef TIDEPOOL_RUNTIME_POOL_LOG_H
#define TIDEPOOL_RUNTIME_POOL_LOG_H

#include "runtime/pool/pool.h"

/* Room for so many more entries? Sets the message if not. */
bool tide_log_room(tide_pool *pool, uint32_t entries, const char *call);

/* Pushes an entry; there must be room. */
void tide_log_push(tide_pool *pool, tide_shelf *shelf, tide_slot *next, uint64_t saved_at);

/* Saves the shelf for the open level, unless that has been done. False, with a message and
 * nothing changed, when the log is full. */
bool tide_log_touch(tide_pool *pool, tide_shelf *shelf, const char *call);

/* Undoes what an entry of a kind stands for; the entry has been taken from the log. */
typedef void tide_undo(tide_pool *pool, const tide_entry *entry);

/* Says what undoes a kind that a room above has. While the hooks are attached, before any pool. */
void tide_log_set_undo(tide_undo_kind kind, tide_undo *undo);

/* Pops down to `base`, restoring. Does not change the level. */
void tide_log_rewind(tide_pool *pool, tide_entry *base);

/* Opens a level and returns its tag: all that a fast path does. */
static inline uint64_t tide_level_open(tide_pool *pool)
{
    return pool->tag = tide_tag_inner(pool);
}

/* What every cold way into a level does first: refuses NULL and foreign pools, and at the root
 * serves what was requested of the pool. */
tide_status tide_level_admit(tide_pool *pool, const char *call);

/* Opens a level and, in a careful pool, remembers where. */
uint64_t tide_level_open_at(tide_pool *pool, tide_place place);

/* Ends the level `tag` that began at `base` inside `outer`, with every level left open in it.
 * False, having done nothing, if the level was abandoned. What every leave comes down to. */
bool tide_level_close(tide_pool *pool, tide_entry *base, uint64_t tag, uint64_t outer);

#endif

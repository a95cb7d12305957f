/* SPDX-License-Identifier: MIT */
/* How levels open and close, and the one loop that puts back what the undo log holds.
 *
 * Entries of one level stand together, older levels below. Putting back from the top down
 * restores each shelf to its oldest state above the base, whoever saved it and however many
 * levels were left open in between: that is why a leaked scope needs no special case. */
#ifndef TIDEPOOL_RUNTIME_POOL_LEVEL_H
#define TIDEPOOL_RUNTIME_POOL_LEVEL_H

#include "runtime/pool/core.h"

/* Undoes what an entry of a kind stands for; the entry has been taken from the log. */
typedef void tide_undo(tide_pool *pool, const tide_entry *entry);

/* Says what undoes a kind that a room above has. While the hooks are attached, before any pool. */
void tide_level_set_undo(tide_undo_kind kind, tide_undo *undo);

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

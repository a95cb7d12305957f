/* SPDX-License-Identifier: MIT */
/* The undo log: what a level saves when it opens or when a type is first touched, and whether fast
 * paths may write to it. What puts it back: runtime/pool/level.h. */
#ifndef TIDEPOOL_RUNTIME_POOL_LOG_H
#define TIDEPOOL_RUNTIME_POOL_LOG_H

#include "runtime/pool/core.h"

/* Sets the message that the log is full. */
TIDE_COLD void tide_log_refuse(const tide_pool *pool, const char *call);

/* Room for so many more entries? Sets the message if not. */
static inline bool tide_log_room(const tide_pool *pool, uint32_t entries, const char *call)
{
    tide_assert(pool->log_top >= pool->core->log.start && pool->log_top <= pool->core->log.end);
    if (TIDE_LIKELY(pool->core->log.end - pool->log_top >= (ptrdiff_t)entries))
        return true;
    tide_log_refuse(pool, call);
    return false;
}

/* An entry for a shelf's state. Nobody reads the third word of such a one. */
static inline void tide_log_write(tide_entry *entry, tide_shelf *shelf, tide_slot *next)
{
    entry->shelf = shelf;
    entry->next = next;
}

/* Pushes an entry; there must be room. */
static inline void tide_log_push(tide_pool *pool, tide_shelf *shelf, tide_slot *next, uint64_t more)
{
    tide_assert(shelf != NULL && pool->log_top < pool->core->log.end);
    *pool->log_top++ = (tide_entry){shelf, next, more};
}

/* Has the open level saved the shelf? It is set up. */
bool tide_log_saved(const tide_pool *pool, const tide_shelf *shelf);

/* Saves the shelf for the open level, unless that has been done. False, with a message and
 * nothing changed, when the log is full. */
bool tide_log_touch(tide_pool *pool, tide_shelf *shelf, const char *call);

/* Where the log ends for fast paths from now on. Owner, or who asks something of the pool. */
void tide_log_set_room(tide_pool *pool, tide_entry *room);

/* Does no fast path get into it? From any thread. */
bool tide_log_is_closed(const tide_pool *pool);

/* Where it ends for them when no request is waiting. */
tide_entry *tide_log_usual_room(const tide_pool_core *core);

/* Lets fast paths into the log again, or not, as what is requested and declared
 * allows. Owner only. */
void tide_log_reopen(tide_pool *pool);

#endif

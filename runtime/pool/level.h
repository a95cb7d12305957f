/* SPDX-License-Identifier: MIT */
/* The undo log: what a level saves when it opens or when a type is first touched, and whether fast
 * paths may write to it. How levels open and close, and the one loop that puts back what it holds.
 *
 * Entries of one level stand together, older levels below. Putting back from the top down
 * restores each shelf to its oldest state above the base, whoever saved it and however many
 * levels were left open in between: that is why a leaked scope needs no special case. */
#ifndef TIDEPOOL_RUNTIME_POOL_LEVEL_H
#define TIDEPOOL_RUNTIME_POOL_LEVEL_H

#include "runtime/pool/core.h"

/* ---- the log ---- */

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

/* ---- levels ---- */

/* Pops down to `base`, restoring. Does not change the level, nor what it has saved: that is the
 * caller's. */
void tide_log_rewind(tide_pool *pool, tide_entry *base);

/* The same as far as entries are shelves' states, which takes two loads and a store each. True:
 * that was all. False: the rest is left to tide_log_rewind. Not in an attended pool. */
static inline bool tide_log_rewind_shelves(tide_pool *pool, tide_entry *base)
{
    tide_entry *top = pool->log_top;
    while (top != base && TIDE_LIKELY(tide_shelf_real(pool, top[-1].shelf))) {
        top--;
        tide_assert(top->next <= top->shelf->next);
        top->shelf->next = top->next;
    }
    pool->log_top = top;
    return top == base;
}

/* May a level open here without more ado? This copy of the library made the pool, nobody checks it
 * or asks something of it, and the log has room. */
static inline bool tide_level_ready(const tide_pool *pool)
{
    return TIDE_LIKELY(pool != NULL && pool->copy == tide_pool_copy(false) &&
                       pool->log_top < tide_log_open(pool) && (pool->tag & TIDE_TAG_DEEP) == 0);
}

/* Opens a level that has saved nothing yet, and returns its tag. */
static inline uint64_t tide_level_open(tide_pool *pool)
{
    pool->saved = 0;
    return ++pool->tag;
}

/* What every cold way into a level does first: refuses NULL and foreign pools, and levels that are
 * too deep, and at the root serves what was requested of the pool. */
tide_status tide_level_admit(tide_pool *pool, const char *call);
tide_status tide_level_admit_or_report(tide_pool *pool, const char *call); /* no status */

/* Opens a level and, in a careful pool, remembers where. */
uint64_t tide_level_open_at(tide_pool *pool, tide_place place);

/* Ends the level `tag` that began at `base`, with every level left open in it; the one around is
 * open. `outer_saved` is what that level had saved. False, having done nothing, if the level was
 * abandoned. What every leave comes down to. */
bool tide_level_close(tide_pool *pool, tide_entry *base, uint64_t tag, uint64_t outer_saved);

/* Lets the open level save these types' shelves, as first touches would, and sets up those that are
 * not. True: the open level has saved them all, and scopes of these types may open in it without
 * the log. False: it cannot be done (a type without a bit, a full log, a pool that must see every
 * call); what was saved until then does no harm. */
bool tide_level_save(tide_pool *pool, uint32_t count, const tide_type *types);

#endif

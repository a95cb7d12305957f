/* SPDX-License-Identifier: MIT */
/* How levels open and close, and the one loop that puts back what the undo log holds.
 *
 * Entries of one level stand together, older levels below. Putting back from the top down
 * restores each shelf to its oldest state above the base, whoever saved it and however many
 * levels were left open in between: that is why a leaked scope needs no special case. */
#ifndef TIDEPOOL_RUNTIME_POOL_LEVEL_H
#define TIDEPOOL_RUNTIME_POOL_LEVEL_H

#include "runtime/pool/log.h"

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

/* SPDX-License-Identifier: MIT */
#include "runtime/log.h"

#include "runtime/assert.h"
#include "runtime/check.h"
#include "runtime/error.h"
#include "runtime/shelf.h"

bool tide_log_room(tide_pool *pool, const char *call)
{
    if (TIDE_LIKELY(pool->log_top < pool->core->log_end))
        return true;
    tide_fail(TIDE_ERROR_LIMIT, call,
              "the undo log of pool '%s' is full at depth %zu, limit %d entries: "
              "are scopes left open?",
              pool->core->name, tide_pool_depth(pool), TIDE_LOG_ENTRIES);
    return false;
}

void tide_log_push(tide_pool *pool, tide_shelf *shelf, tide_slot *next, uint64_t saved_at)
{
    tide_assert(pool->log_top < pool->core->log_end);
    *pool->log_top++ = (tide_entry){shelf, next, saved_at};
}

bool tide_log_touch(tide_pool *pool, tide_shelf *shelf, const char *call)
{
    if (shelf->saved_at == pool->tag)
        return true;
    if (!tide_log_room(pool, call))
        return false;
    tide_log_push(pool, shelf, shelf->next, shelf->saved_at);
    shelf->saved_at = pool->tag;
    return true;
}

/* In a careful pool every array that stops being live is told so first, while the slots are
 * still where they were when it was acquired. The oldest entry of a shelf covers the others. */
static void retire_above(tide_pool *pool, tide_entry *base)
{
    for (tide_entry *entry = base; entry != pool->log_top; entry++)
        if (tide_shelf_real(entry->shelf))
            tide_shelf_retire(pool, entry->shelf, entry->next);
}

void tide_log_rewind(tide_pool *pool, tide_entry *base)
{
    tide_assert(base >= pool->core->log && base <= pool->log_top);
    if (TIDE_UNLIKELY(pool->core->careful))
        retire_above(pool, base);
    tide_shelf *exchanged = &pool->core->exchanged;
    tide_entry *top = pool->log_top;
    while (top != base) {
        tide_shelf *shelf = (--top)->shelf;
        if (TIDE_UNLIKELY(shelf == exchanged))
            tide_shelf_exchange_undo(pool, top);
        shelf->next = top->next;
        shelf->saved_at = top->saved_at;
    }
    pool->log_top = base;
}

void tide_level_close(tide_pool *pool, tide_entry *base, uint64_t tag, uint64_t outer)
{
    if (TIDE_UNLIKELY(pool->tag != tag) && tide_abandoned(pool, tag))
        return;
    tide_assert(tide_level(pool->tag) >= tide_level(tag));
    tide_log_rewind(pool, base);
    pool->tag = outer;
    tide_assert_valid(pool);
}

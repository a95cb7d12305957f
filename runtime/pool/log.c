/* SPDX-License-Identifier: MIT */
/* The undo log: room, entries, saving a shelf; when the log is open to fast paths. */
#include "runtime/pool/log.h"

#include "runtime/base/assert.h"
#include "runtime/base/error.h"

/* ---- entries ---------------------------------------------------------------------------- */

bool tide_log_room(tide_pool *pool, uint32_t entries, const char *call)
{
    tide_assert(pool->log_top >= pool->core->log.start && pool->log_top <= pool->core->log.end);
    if (TIDE_LIKELY(pool->core->log.end - pool->log_top >= (ptrdiff_t)entries))
        return true;
    tide_fail(TIDE_ERROR_LIMIT, call,
              "the undo log of pool '%s' is full at depth %zu, limit %d entries: "
              "are scopes left open?",
              pool->core->name, tide_depth(pool), TIDE_LOG_ENTRIES);
    return false;
}

void tide_log_push(tide_pool *pool, tide_shelf *shelf, tide_slot *next, uint64_t saved_at)
{
    tide_assert(shelf != NULL && pool->log_top < pool->core->log.end);
    *pool->log_top++ = (tide_entry){shelf, next, saved_at};
}

bool tide_log_touch(tide_pool *pool, tide_shelf *shelf, const char *call)
{
    tide_assert(tide_shelf_real(pool, shelf) && shelf->saved_at != 0);
    tide_assert(tide_level(shelf->saved_at) <= tide_level(pool->tag));
    if (shelf->saved_at == pool->tag)
        return true;
    if (!tide_log_room(pool, 1, call))
        return false;
    tide_log_push(pool, shelf, shelf->next, shelf->saved_at);
    shelf->saved_at = pool->tag;
    return true;
}

/* ---- fast paths ------------------------------------------------------------------------- */

void tide_log_set_room(tide_pool *pool, tide_entry *room)
{
    tide_assert(room == pool->core->log.start || room == pool->core->log.end);
    __atomic_store_n(&pool->log_room, room, __ATOMIC_SEQ_CST);
}

/* Careful pools and declared streams keep it closed. */
tide_entry *tide_log_usual_room(const tide_pool_core *core)
{
    return core->careful || core->streams.foreign_count != 0 ? core->log.start : core->log.end;
}

/* Requests that are not served yet keep the log closed. One that comes between the two loads may
 * have closed it before it was opened here, so it is closed once more. */
void tide_log_reopen(tide_pool *pool)
{
    tide_pool_core *core = pool->core;
    if (__atomic_load_n(&core->requests.asked, __ATOMIC_SEQ_CST) != 0)
        return;
    tide_log_set_room(pool, tide_log_usual_room(core));
    if (__atomic_load_n(&core->requests.asked, __ATOMIC_SEQ_CST) != 0)
        tide_log_set_room(pool, core->log.start);
}

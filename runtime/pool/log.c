/* SPDX-License-Identifier: MIT */
/* The undo log: room, entries, saving a shelf; when the log is open to fast paths. */
#include "runtime/pool/log.h"

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/pool/request.h"

/* ---- entries ---------------------------------------------------------------------------- */

void tide_log_refuse(const tide_pool *pool, const char *call)
{
    tide_fail(TIDE_ERROR_LIMIT, call,
              "the undo log of pool '%s' is full at depth %zu, limit %d entries: "
              "are scopes left open?",
              pool->core->name, tide_depth(pool), TIDE_LOG_ENTRIES);
}

/* ---- saving a shelf --------------------------------------------------------------------- */

bool tide_log_saved(const tide_pool *pool, const tide_shelf *shelf)
{
    tide_assert(shelf->next != NULL);
    return (pool->saved & shelf->bit) != 0 || tide_at_root(pool);
}

/* The root need not save anything: nothing is older than it. A type without a bit is saved anew by each
 * acquire. */
bool tide_log_touch(tide_pool *pool, tide_shelf *shelf, const char *call)
{
    tide_assert(tide_shelf_real(pool, shelf));
    if (tide_log_saved(pool, shelf)) {
        pool->saved |= shelf->bit;
        return true;
    }
    if (!tide_log_room(pool, 1, call))
        return false;
    tide_log_push(pool, shelf, shelf->next, 0);
    pool->saved |= shelf->bit;
    return true;
}

/* ---- fast paths ------------------------------------------------------------------------- */

void tide_log_set_room(tide_pool *pool, tide_entry *room)
{
    tide_assert(room == pool->core->log.start || room == pool->core->log.end);
    __atomic_store_n(&pool->log_room, room, __ATOMIC_SEQ_CST);
}

bool tide_log_is_closed(const tide_pool *pool)
{
    return __atomic_load_n(&pool->log_room, __ATOMIC_SEQ_CST) == pool->core->log.start;
}

/* Careful pools and declared streams keep it closed. */
tide_entry *tide_log_usual_room(const tide_pool_core *core)
{
    return core->careful || core->streams.foreign_count != 0 ? core->log.start : core->log.end;
}

/* Is something asked that keeps the log closed? What waits for the root does not. */
static bool log_is_wanted(const tide_pool_core *core)
{
    uint32_t asked = __atomic_load_n(&core->requests.asked, __ATOMIC_SEQ_CST);
    return !core->requests.deferred && asked != 0;
}

/* Requests that are not served yet keep the log closed. Who asks sets a bit before closing it, so
 * it is closed here, too. A request that comes between the two looks may have closed it before it
 * was opened here, so it is closed once more. */
void tide_log_reopen(tide_pool *pool)
{
    tide_pool_core *core = pool->core;
    tide_log_set_room(pool, log_is_wanted(core) ? core->log.start : tide_log_usual_room(core));
    if (log_is_wanted(core))
        tide_log_set_room(pool, core->log.start);
}

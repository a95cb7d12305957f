/* SPDX-License-Identifier: MIT */
/* The undo log: room, entries, saving a shelf; when the log is open to fast paths. */
#include "runtime/pool/log.h"

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/pool/request.h"

/* ---- entries ---------------------------------------------------------------------------- */

void tide_log_refuse(const tide_pool *pool, const char *call)
{
    const tide_log *log = &pool->core->log;
    if (log->end - log->start < TIDE_LOG_ENTRIES) {
        tide_fail(TIDE_ERROR_MEMORY, call,
                  "no memory for more than %td entries in the undo log of pool '%s'",
                  log->end - log->start, pool->core->name);
        return;
    }
    tide_fail(TIDE_ERROR_LIMIT, call,
              "the undo log of pool '%s' is full at depth %zu, limit %d entries: "
              "are scopes left open?",
              pool->core->name, tide_depth(pool), TIDE_LOG_ENTRIES);
}

/* Another thread may close the log meanwhile: then it stays closed. */
bool tide_log_grow(tide_pool *pool)
{
    tide_log *log = &pool->core->log;
    size_t had = (size_t)(log->end - log->start);
    size_t more = had * 2 < TIDE_LOG_ENTRIES ? had : TIDE_LOG_ENTRIES - had;
    if (more == 0 ||
        !tide_os_open(log->start, had * sizeof *log->start, (had + more) * sizeof *log->start))
        return false;
    tide_entry *before = log->end;
    log->end += more;
    (void)__atomic_compare_exchange_n(&pool->log_room, &before, log->end, false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST);
    return true;
}

/* ---- saving a shelf --------------------------------------------------------------------- */

bool tide_log_saved(const tide_pool *pool, const tide_shelf *shelf)
{
    tide_assert(shelf->next != NULL);
    return (pool->saved & shelf->bit) != 0 || tide_at_root(pool) ||
           (shelf->bit == 0 && tide_row_of(pool, shelf)->saved_at == pool->tag);
}

/* A type without a bit remembers the level that saved it in its row. */
static bool log_touch_without_bit(tide_pool *pool, tide_shelf *shelf, const char *call)
{
    tide_row *row = tide_row_of(pool, shelf);
    tide_assert(shelf->bit == 0 && row->saved_at != pool->tag);
    if (!tide_log_room(pool, 2, call))
        return false;
    tide_log_push(pool, shelf, shelf->next, 0);
    tide_log_push(pool, &pool->core->log.undo[TIDE_UNDO_SAVED_AT], (tide_slot *)(void *)row,
                  row->saved_at);
    row->saved_at = pool->tag;
    return true;
}

void tide_log_touch_undo(tide_pool *pool, const tide_entry *entry)
{
    tide_row *row = (tide_row *)(void *)entry->next;
    tide_assert(row->shelf != NULL && row->shelf->bit == 0 && tide_row_of(pool, row->shelf) == row);
    (void)pool;
    row->saved_at = entry->more;
}

/* The root need not save anything: nothing is older than it. */
bool tide_log_touch(tide_pool *pool, tide_shelf *shelf, const char *call)
{
    tide_assert(tide_shelf_real(pool, shelf));
    if (tide_log_saved(pool, shelf)) {
        pool->saved |= shelf->bit;
        return true;
    }
    if (shelf->bit == 0)
        return log_touch_without_bit(pool, shelf, call);
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

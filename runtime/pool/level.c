/* SPDX-License-Identifier: MIT */
/* The undo log: room, entries, saving a shelf; when it is open to fast paths. Levels open and close here by
 * their cold paths; one loop puts back what the log holds. Events that take levels away under their blocks
 * are remembered: runtime/pool/abandon.h says which of them, and why these are enough. */
#include "runtime/pool/level.h"

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/ring.h"
#include "runtime/pool/abandon.h"
#include "runtime/pool/request.h"
#include "runtime/pool/row.h"
#include "runtime/pool/streams.h"

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

static void log_touch_undo(tide_pool *pool, const tide_entry *entry)
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

/* ---- putting back ------------------------------------------------------------------------ */

/* In a careful pool every array that stops being live is told so first, while the slots are
 * still where they were when it was acquired. The oldest entry of a shelf covers the others. */
static void level_retire_above(tide_pool *pool, tide_entry *base)
{
    for (tide_entry *entry = base; entry != pool->log_top; entry++)
        if (tide_shelf_real(pool, entry->shelf))
            tide_row_retire(pool, tide_row_of(pool, entry->shelf), entry->next);
}

/* What is to be done for an entry that is no shelf's state; a mark stands for nothing. */
static void level_undo_by_ring(tide_pool *pool, const tide_entry *entry)
{
    TIDE_RINGS_CALL(undo, pool, entry);
}

static void (*const level_undo_of[TIDE_UNDO_COUNT])(tide_pool *, const tide_entry *) = {
    [TIDE_UNDO_SAVED_AT] = log_touch_undo,         [TIDE_UNDO_REQUEST] = tide_request_undo,
    [TIDE_UNDO_EXCHANGE] = tide_row_exchange_undo, [TIDE_UNDO_IMPORT] = level_undo_by_ring,
    [TIDE_UNDO_STREAM] = tide_streams_undo,
};

/* The entry's shelf tells its kind. */
static void level_undo(tide_pool *pool, const tide_entry *entry)
{
    ptrdiff_t kind = entry->shelf - pool->core->log.undo;
    tide_assert(kind >= 0 && kind < TIDE_UNDO_COUNT);
    if (level_undo_of[kind] != NULL)
        level_undo_of[kind](pool, entry);
}

/* From the youngest entry down to `base`. An undo finds its own entry gone, the older ones there.
 * The store after it goes to the shelf that stands for the entry's kind (runtime/pool/core.h):
 * nobody reads what is in it. */
static void level_put_back(tide_pool *pool, const tide_entry *base)
{
    while (pool->log_top != base) {
        const tide_entry *top = --pool->log_top;
        if (TIDE_UNLIKELY(!tide_shelf_real(pool, top->shelf)))
            level_undo(pool, top);
        top->shelf->next = top->next;
    }
}

/* Streams are joined first: what a careful pool does to the arrays is then queued
 * like other work. */
static TIDE_COLD void level_put_back_attended(tide_pool *pool, tide_entry *base)
{
    bool joined = tide_streams_join(pool, base);
    if (pool->core->careful)
        level_retire_above(pool, base);
    level_put_back(pool, base);
    if (joined)
        tide_streams_part(pool);
}

void tide_log_rewind(tide_pool *pool, tide_entry *base)
{
    tide_assert(base >= pool->core->log.start && base <= pool->log_top);
    tide_assert(pool->log_top <= pool->core->log.end);
    if (TIDE_UNLIKELY(pool->core->attended))
        level_put_back_attended(pool, base);
    else
        level_put_back(pool, base);
    tide_assert(pool->log_top == base);
}

/* ---- levels ----------------------------------------------------------------------------- */

tide_status tide_level_admit(tide_pool *pool, const char *call)
{
    TIDE_FORWARD(tide_pool_use(pool, call));
    if ((pool->tag & TIDE_TAG_DEEP) != 0)
        return tide_fail(TIDE_ERROR_LIMIT, call,
                         "pool '%s' has %zu open levels, limit %zu: are scopes left by longjmp?",
                         pool->core->name, tide_depth(pool), (size_t)TIDE_TAG_DEEP - 1);
    tide_request_serve(pool);
    return TIDE_OK;
}

tide_status tide_level_admit_or_report(tide_pool *pool, const char *call)
{
    TIDE_FORWARD(tide_pool_use_or_report(pool, call));
    tide_status status = tide_level_admit(pool, call);
    return status != TIDE_OK ? tide_misuse(pool, status) : TIDE_OK;
}

uint64_t tide_level_open_at(tide_pool *pool, tide_place place)
{
    uint64_t tag = tide_level_open(pool);
    tide_assert(pool->tag == tag && tide_level(tag) > TIDE_LEVEL_ROOT);
    if (pool->core->careful)
        tide_levels_push(&pool->core->levels, tag, place);
    return tag;
}

bool tide_level_close(tide_pool *pool, tide_entry *base, uint64_t tag, uint64_t outer_saved)
{
    if (TIDE_UNLIKELY(pool->tag != tag) && tide_abandoned(pool, tag))
        return false;
    tide_assert(tide_level(pool->tag) >= tide_level(tag)); /* younger ones may be open still */
    tide_assert(tide_level(tag) > TIDE_LEVEL_ROOT);
    if (pool->core->careful)
        pool->core->levels.closing = tide_levels_pop(&pool->core->levels, tag);
    tide_log_rewind(pool, base);
    pool->tag = tide_tag_at(pool, tide_level(tag) - 1);
    pool->saved = outer_saved;
    return true;
}

/* ---- what the open level has saved ------------------------------------------------------ */

static TIDE_COLD bool level_set_up(tide_pool *pool, tide_type type)
{
    if (tide_pool_use(pool, "a typed scope") != TIDE_OK || tide_type_facts_of(type) == NULL)
        return false;
    return tide_row_ready(pool, type, "a typed scope") != NULL;
}

/* One type of tide_level_save, for which the log has room. */
static bool level_save_type(tide_pool *pool, tide_type type)
{
    tide_shelf *shelf = &pool->shelves[type];
    if (TIDE_LIKELY((pool->saved & shelf->bit) != 0))
        return true;
    if (shelf->next == NULL && !level_set_up(pool, type))
        return false;
    if (shelf->bit == 0)
        return false;
    if (!tide_at_root(pool))
        tide_log_push(pool, shelf, shelf->next, 0);
    pool->saved |= shelf->bit;
    return true;
}

/* tide_level_save for the usual case: the log has room, the level is not the root, and all shelves are set
 * up and have bits. An entry is written for each, and stays if the level has not saved that shelf
 * yet. False: nothing has changed. */
static bool level_save_ready(tide_pool *pool, uint32_t count, const tide_type *types)
{
    tide_entry *top = pool->log_top;
    uint64_t saved = pool->saved;
    if (TIDE_UNLIKELY(tide_at_root(pool)))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (TIDE_UNLIKELY(types[i] >= TIDE_TYPE_LIMIT))
            return false;
        tide_shelf *shelf = &pool->shelves[types[i]];
        uint64_t bit = shelf->bit;
        if (TIDE_UNLIKELY(bit == 0))
            return false;
        tide_assert(shelf->next != NULL && top < pool->core->log.end);
        tide_log_write(top, shelf, shelf->next);
        top += (saved & bit) == 0;
        saved |= bit;
    }
    pool->log_top = top;
    pool->saved = saved;
    return true;
}

bool tide_level_save(tide_pool *pool, uint32_t count, const tide_type *types)
{
    if (tide_log_open(pool) <= pool->log_top + count || /* guards ask for one place more */
        (pool->tag & TIDE_TAG_DEEP) != 0)
        return false;
    if (TIDE_LIKELY(level_save_ready(pool, count, types)))
        return true;
    for (uint32_t i = 0; i < count; i++)
        if (types[i] == TIDE_NO_TYPE || types[i] >= TIDE_TYPE_LIMIT ||
            !level_save_type(pool, types[i]))
            return false;
    return true;
}

/* ---- levels that were taken away under their blocks --------------------------------------- */

#define ABANDON_LAST_EPOCH (~TIDE_TAG_DEPTH)

_Static_assert((TIDE_TAG_DEPTH & (TIDE_TAG_DEPTH + 1)) == 0, "epochs lie above the depth");
_Static_assert(2 * TIDE_TAG_DEEP == TIDE_TAG_DEPTH + 1, "the depth does not reach the epoch");

/* How many of the remembered events stay worth it after one that keeps this level. */
static uint32_t abandon_lower(const tide_abandonments *all, uint32_t kept)
{
    uint32_t count = all->count;
    while (count > 0 && tide_level(all->events[count - 1]) >= kept)
        count--;
    return count;
}

tide_status tide_abandon_admit(tide_pool *pool, uint32_t kept, const char *call)
{
    if (tide_tag_epoch(pool->tag) == ABANDON_LAST_EPOCH ||
        abandon_lower(&pool->core->abandoned, kept) == TIDE_ABANDON_MAX)
        return tide_fail(
            TIDE_ERROR_LIMIT, call,
            "pool '%s' was rewound under open scopes more often than can be told apart",
            pool->core->name);
    return TIDE_OK;
}

void tide_abandon(tide_pool *pool)
{
    tide_abandonments *all = &pool->core->abandoned;
    uint32_t kept = tide_level(pool->tag);
    tide_assert(kept >= TIDE_LEVEL_ROOT); /* nothing takes the root away */
    tide_assert(tide_tag_epoch(pool->tag) != ABANDON_LAST_EPOCH);
    pool->tag = (pool->tag | TIDE_TAG_DEPTH) + 1 + kept;
    all->count = abandon_lower(all, kept);
    tide_assert(all->count < TIDE_ABANDON_MAX);
    all->events[all->count++] = pool->tag;
}

bool tide_abandoned(const tide_pool *pool, uint64_t tag)
{
    const tide_abandonments *all = &pool->core->abandoned;
    for (uint32_t i = all->count; i-- > 0;) {
        if (tide_tag_epoch(all->events[i]) <= tide_tag_epoch(tag))
            return false;
        if (tide_level(all->events[i]) < tide_level(tag))
            return true;
    }
    return false;
}

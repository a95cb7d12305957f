/* SPDX-License-Identifier: MIT */
/* Marks: levels that are opened and rewound by a value, and how they prove that they are open. */
#include "runtime/scope/mark.h"

#include <tidepool/mark.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/check/levels.h"
#include "runtime/check/report.h"
#include "runtime/pool/invariants.h"
#include "runtime/pool/level.h"
#include "runtime/pool/log.h"
#include "runtime/pool/row.h"
#include "runtime/scope/nesting.h"

/* Serials are the process's, or a mark of a pool that is gone would fit another pool that lies in its
 * place. A pool takes them in blocks of 2^32: block b has the serials from b * 2^32 + 1 to
 * (b + 1) * 2^32, so no two pools ever give the same one. */
static uint64_t mark_next_serial(tide_log *log)
{
    static uint64_t blocks; /* atomic */
    if (TIDE_UNLIKELY((uint32_t)log->mark_serial == 0))
        log->mark_serial = __atomic_fetch_add(&blocks, 1, __ATOMIC_RELAXED) << 32;
    return ++log->mark_serial;
}

uint64_t tide_mark_push(tide_pool *pool, const char *call)
{
    if (!tide_log_room(pool, 1, call))
        return 0;
    uint64_t serial = mark_next_serial(&pool->core->log);
    tide_assert(serial != 0); /* which stands for "refused" */
    tide_log_push(pool, &pool->core->log.undo[TIDE_UNDO_MARK], (tide_slot *)(uintptr_t)serial,
                  pool->tag);
    tide_assert(tide_mark_open(pool, (size_t)(pool->log_top - pool->core->log.start) - 1, serial));
    return serial;
}

bool tide_mark_open(const tide_pool *pool, size_t position, uint64_t serial)
{
    const tide_pool_core *core = pool->core;
    tide_assert(tide_log_has(pool, pool->log_top));
    if (serial == 0 || position >= (size_t)(pool->log_top - core->log.start))
        return false;
    const tide_entry *entry = &core->log.start[position];
    return entry->shelf == &core->log.undo[TIDE_UNDO_MARK] && (uintptr_t)entry->next == serial;
}

void tide_mark_close(tide_pool *pool, size_t position, tide_place caller)
{
    tide_entry *entry = &pool->core->log.start[position];
    uint64_t outer = entry->saved_at;
    tide_assert(entry < pool->log_top && entry->shelf == &pool->core->log.undo[TIDE_UNDO_MARK]);
    tide_assert(outer != 0 && tide_level(pool->tag) >= tide_level(outer));
    bool younger = tide_level(pool->tag) > tide_level(outer) + 1;
    if (pool->core->careful) {
        (void)tide_levels_pop(&pool->core->levels, outer + 1);
        pool->core->levels.closing = caller;
    }
    tide_log_rewind(pool, entry);
    tide_assert(pool->log_top == entry);
    if (younger)
        tide_abandon(pool, tide_level(outer));
    pool->tag = outer;
    tide_assert_valid(pool);
}

/* What a failed checkpoint returns: of no pool, so that it is never rewound. */
static const tide_mark mark_refused;

static tide_mark mark_open_level(tide_pool *pool, const char *call, tide_place caller)
{
    if (tide_level_admit(pool, call) != TIDE_OK)
        return mark_refused;
    tide_mark mark = {.pool = pool, .position = (size_t)(pool->log_top - pool->core->log.start)};
    mark.serial = tide_mark_push(pool, call);
    if (mark.serial == 0)
        return mark_refused;
    tide_level_open_at(pool, caller);
    tide_assert(tide_tag_nests(pool->tag, pool->core->log.start[mark.position].saved_at));
    return mark;
}

tide_mark tide_checkpoint(tide_pool *pool)
{
    return mark_open_level(pool, "tide_checkpoint", (tide_place){TIDE_CALLER});
}

tide_mark tide_checkpoint_types(tide_pool *pool, const tide_type *types, size_t count)
{
    const char *call = "tide_checkpoint_types";
    if (types == NULL && count != 0) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "types is NULL, count is %zu", count);
        return mark_refused;
    }
    for (size_t i = 0; i < count; i++)
        if (tide_type_find(types[i]) == NULL) {
            tide_fail(TIDE_ERROR_TYPE, call, "no type %u, there are %u", types[i],
                      tide_type_count());
            return mark_refused;
        }
    tide_mark mark = mark_open_level(pool, call, (tide_place){TIDE_CALLER});
    for (size_t i = 0; mark.pool != NULL && i < count; i++) {
        tide_shelf *shelf = &pool->shelves[types[i]];
        /* A shelf not yet set up has nothing to save; its first acquire will. */
        if (shelf->saved_at != 0 && !tide_log_touch(pool, shelf, call)) {
            tide_mark_close(pool, mark.position, (tide_place){TIDE_CALLER});
            return mark_refused;
        }
        tide_assert(shelf->saved_at == 0 || shelf->saved_at == pool->tag);
    }
    return mark;
}

tide_status tide_rewind(tide_pool *pool, tide_mark mark)
{
    const char *call = "tide_rewind";
    TIDE_FORWARD(tide_pool_use(pool, call));
    if (mark.pool != pool)
        return tide_misuse(pool, TIDE_ERROR_ARGUMENT, call, "the mark %s, not of pool '%s'",
                           mark.pool == NULL ? "is of a refused checkpoint" : "is of another pool",
                           pool->core->name);
    if (!tide_mark_open(pool, mark.position, mark.serial))
        return tide_misuse(pool, TIDE_ERROR_STALE, call,
                           "mark %llu of pool '%s' has been rewound already",
                           (unsigned long long)mark.serial, pool->core->name);
    tide_mark_close(pool, mark.position, (tide_place){TIDE_CALLER});
    return TIDE_OK;
}

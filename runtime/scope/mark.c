/* SPDX-License-Identifier: MIT */
/* Marks: levels that are opened and rewound by a value, and how they prove that they are open. */
#include "runtime/scope/mark.h"

#include <string.h>

#include <tidepool/dynamic.h>
#include <tidepool/mark.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/check/levels.h"
#include "runtime/check/report.h"
#include "runtime/pool/level.h"
#include "runtime/pool/row.h"
#include "runtime/scope/nesting.h"

/* Block b has the serials from b * 2^32 + 1 to (b + 1) * 2^32. */
uint64_t tide_mark_next_block(void)
{
    static uint64_t blocks; /* atomic */
    return __atomic_fetch_add(&blocks, 1, __ATOMIC_RELAXED) << 32;
}

/* Levels inside its own that are still open: their blocks may yet end. */
static bool mark_has_younger(const tide_pool *pool, const tide_entry *mark)
{
    return tide_level(pool->tag) > tide_level(mark->more) + 1;
}

/* Closes the level that the mark at `position` opened, and all younger ones. Younger levels that
 * were still open count as abandoned then, since their blocks may yet end. `outer_saved` is what
 * the level around had saved when the mark was pushed. */
static void mark_close(tide_pool *pool, size_t position, uint64_t outer_saved, tide_place caller)
{
    tide_entry *entry = tide_mark_entry(pool, position);
    uint64_t outer = entry->more;
    tide_assert(entry < pool->log_top && entry->shelf == &pool->core->log.undo[TIDE_UNDO_MARK]);
    tide_assert(outer != 0 && tide_level(pool->tag) >= tide_level(outer));
    bool younger = mark_has_younger(pool, entry);
    if (pool->core->careful) {
        (void)tide_levels_pop(&pool->core->levels, outer + 1);
        pool->core->levels.closing = caller;
    }
    tide_log_rewind(pool, entry);
    tide_assert(pool->log_top == entry);
    pool->tag = tide_tag_at(pool, tide_level(outer));
    if (younger)
        tide_abandon(pool);
    pool->saved = outer_saved;
    tide_assert_valid(pool);
}

/* What a failed checkpoint returns: of no pool, so that it is never rewound. */
static const tide_mark mark_refused;

typedef uint64_t mark_words __attribute__((vector_size(16)));

_Static_assert(sizeof(tide_mark) == 2 * sizeof(mark_words), "two stores make a mark");

/* Written by two stores of 16 bytes: programs hand marks over by copies of 16 bytes, and such a
 * load waits for two stores of 8 bytes until they are in the cache. */
static inline tide_mark mark_push(tide_pool *pool)
{
    tide_mark mark;
    uint64_t position = tide_mark_next_position(pool), saved = pool->saved;
    mark_words words[2] = {{(uintptr_t)pool, tide_mark_push(pool)}, {position, saved}};
    memcpy(&mark, words, sizeof mark);
    tide_assert(mark.pool == pool && mark.position == position && mark.saved == saved);
    return mark;
}

/* For any pool. */
static TIDE_COLD tide_mark mark_open_slow(tide_pool *pool, TIDE_PLACE)
{
    const char *call = "tide_checkpoint";
    if (tide_level_admit_or_report(pool, call) != TIDE_OK || !tide_log_room(pool, 1, call))
        return mark_refused;
    tide_mark mark = mark_push(pool);
    tide_level_open_at(pool, (tide_place){TIDE_PASS_PLACE});
    return mark;
}

tide_mark tide_checkpoint(tide_pool *pool)
{
    if (TIDE_UNLIKELY(!tide_level_ready(pool)))
        return mark_open_slow(pool, TIDE_CALLER);
    tide_mark mark = mark_push(pool);
    tide_level_open(pool);
    return mark;
}

static TIDE_COLD tide_status mark_rewind_slow(tide_pool *pool, const tide_mark *mark, TIDE_PLACE)
{
    const char *call = "tide_rewind";
    TIDE_FORWARD(tide_pool_use(pool, call));
    if (mark->pool != pool)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the mark %s, not of pool '%s'",
                         mark->pool == NULL ? "is of a refused checkpoint" : "is of another pool",
                         pool->core->name);
    if (!tide_mark_open(pool, mark->position, mark->serial))
        return tide_fail(TIDE_ERROR_STALE, call, "mark %llu of pool '%s' has been rewound already",
                         (unsigned long long)mark->serial, pool->core->name);
    const tide_entry *entry = tide_mark_entry(pool, mark->position);
    if (mark_has_younger(pool, entry))
        TIDE_FORWARD(tide_abandon_admit(pool, tide_level(entry->more), call));
    mark_close(pool, mark->position, mark->saved, (tide_place){TIDE_PASS_PLACE});
    return TIDE_OK;
}

/* The fast path is for a mark whose level is the open one, with nothing but shelves above it. */
tide_status tide_rewind(tide_pool *pool, tide_mark mark)
{
    if (TIDE_LIKELY(pool != NULL && mark.pool == pool && pool->copy == tide_pool_copy(false) &&
                    tide_mark_open(pool, mark.position, mark.serial))) {
        tide_entry *entry = tide_mark_entry(pool, mark.position);
        if (TIDE_LIKELY(entry < tide_log_open(pool) &&
                        tide_level(pool->tag) == tide_level(entry->more) + 1 &&
                        tide_log_rewind_shelves(pool, entry + 1))) {
            pool->log_top = entry;
            pool->tag--;
            pool->saved = mark.saved;
            return TIDE_OK;
        }
    }
    return mark_rewind_slow(pool, &mark, TIDE_CALLER);
}

tide_status tide_rewind_after(tide_pool *pool, tide_mark mark, tide_status status)
{
    tide_assert(mark.pool == pool);
    if (TIDE_LIKELY(status == TIDE_OK))
        return tide_rewind(pool, mark);
    tide_failure first;
    tide_failure_keep(&first);
    (void)tide_rewind(pool, mark);
    tide_failure_restore(&first);
    return status;
}

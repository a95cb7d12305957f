/* SPDX-License-Identifier: MIT */
/* The cold side of typed scopes, frames and loop scopes: what the inlined code calls when
 * its guard fails. */
#include <tidepool/scope.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/check/levels.h"
#include "runtime/pool/level.h"
#include "runtime/pool/row.h"
#include "runtime/scope/nesting.h"

bool tide_typed_prepare(tide_pool *pool, uint32_t count, const tide_type *types)
{
    tide_assert(count <= TIDE_TYPED_MAX && (count == 0 || types != NULL));
    return pool != NULL && tide_level_save(pool, count, types);
}

/* Saves what can be saved now, in the log. The first touch sees to the rest: a shelf that is not
 * set up, or one for which the log has no room (which it reports). */
tide_typed_scope tide_typed_enter_slow(tide_pool *pool, uint32_t count, const tide_type *types,
                                       TIDE_PLACE)
{
    if (tide_level_admit_or_report(pool, "TIDE_SCOPE_TYPES or TIDE_FRAME") != TIDE_OK)
        return (tide_typed_scope){.pool = tide_pool_refusing(), .tag = TIDE_TAG_REFUSED};
    tide_typed_scope scope = {.pool = pool, .outer_saved = pool->saved, .count = count};
    scope.next[0] = (tide_slot *)(void *)pool->log_top;
    scope.tag = tide_level_open_at(pool, (tide_place){TIDE_PASS_PLACE});
    tide_assert(tide_log_has(pool, pool->log_top));
    for (uint32_t i = 0; i < count; i++) {
        tide_shelf *shelf = &pool->shelves[types[i]];
        if (shelf->next != NULL && pool->core->log.end - pool->log_top > (shelf->bit == 0))
            tide_log_touch(pool, shelf, "TIDE_SCOPE_TYPES");
    }
    tide_assert(pool->tag == scope.tag && scope.base == NULL);
    return scope;
}

/* A scope whose level was opened without the log keeps its shelves' states itself: they are put
 * back after what stands in the log, which is younger. */
uint64_t tide_typed_rewind(tide_pool *pool, tide_entry *base, uint64_t tag, uint64_t outer_saved,
                           tide_slot *log)
{
    if (TIDE_LIKELY(base != NULL && pool->tag == tag)) {
        tide_assert(tide_log_has(pool, base) && !pool->core->careful);
        if (pool->core->attended || !tide_log_rewind_shelves(pool, base))
            tide_log_rewind(pool, base);
        return tag - 1;
    }
    if (pool == tide_pool_refusing())
        return 0;
    bool logged = base == NULL;
    base = logged ? (tide_entry *)(void *)log : base;
    tide_assert(tide_log_has(pool, base) && tide_tag_nests(pool, tag));
    return tide_level_close(pool, base, tag, outer_saved) && !logged ? pool->tag : 0;
}

/* All or none: if one fails the caller sees NULL for each, so a test of any one is enough. What was
 * taken before goes back with the scope. */
void tide_frame_acquire_slow(tide_pool *pool, uint32_t count, const tide_type *types,
                             const size_t *counts, void **data, TIDE_PLACE)
{
    bool complete = pool != tide_pool_refusing(); /* whose scope was refused: with a message */
    for (uint32_t i = 0; i < count; i++) {
        data[i] = complete ? tide_acquire_slow(pool, types[i], counts[i], TIDE_PASS_PLACE) : NULL;
        complete = data[i] != NULL;
    }
    if (!complete)
        for (uint32_t i = 0; i < count; i++)
            data[i] = NULL;
}

/* ---- loops ------------------------------------------------------------------------------ */

tide_loop tide_loop_enter_slow(tide_pool *pool, TIDE_PLACE)
{
    tide_loop loop = {.pool = tide_pool_refusing(), .tag = TIDE_TAG_REFUSED};
    if (tide_level_admit_or_report(pool, "TIDE_LOOP") != TIDE_OK)
        return loop;
    loop.pool = pool;
    loop.base = pool->log_top;
    loop.outer_saved = pool->saved;
    loop.tag = tide_level_open_at(pool, (tide_place){TIDE_PASS_PLACE});
    tide_assert(tide_log_has(pool, loop.base) && tide_tag_nests(pool, loop.tag));
    tide_assert(loop.top == NULL); /* so the first iteration ends by cold code */
    return loop;
}

/* Did this iteration only touch new types? Then they stay saved, and the next one is fast. */
static bool typed_loop_only_touched(const tide_loop *loop)
{
    const tide_pool *pool = loop->pool;
    if (pool->tag != loop->tag || pool->core->careful || pool->core->streams.foreign_count != 0)
        return false; /* streams must be ordered each time: runtime/pool/streams.h */
    tide_assert(loop->base <= pool->log_top);
    const tide_shelf *request = &pool->core->log.undo[TIDE_UNDO_REQUEST]; /* may stay, too */
    for (const tide_entry *entry = loop->base; entry != pool->log_top; entry++)
        if (!tide_shelf_real(pool, entry->shelf) && entry->shelf != request)
            return false;
    return true;
}

/* Remembers what the next iterations put back: the log's entries, the first two in the loop. Where
 * there are fewer, the shelf of no type stands in. */
static tide_loop typed_loop_learn(tide_loop loop)
{
    tide_pool *pool = loop.pool;
    tide_assert(pool->tag == loop.tag && !pool->core->attended);
    tide_assert(pool->shelves[TIDE_NO_TYPE].bit == 0); /* nobody's: it may be written */
    loop.top = pool->log_top;
    loop.rest = loop.base;
    for (int i = 0; i < 2; i++) {
        bool there = loop.rest != loop.top;
        loop.shelf[i] = there ? loop.rest->shelf : &pool->shelves[TIDE_NO_TYPE];
        loop.next[i] = there ? loop.rest->next : NULL;
        loop.rest += there;
    }
    tide_assert(loop.rest >= loop.base && loop.rest <= loop.top);
    return loop;
}

/* Undoes everything since the loop's base: levels left open, exchanges, touches of shelves (the
 * next iteration touches them anew). */
static tide_loop typed_loop_undo(tide_loop loop)
{
    tide_pool *pool = loop.pool;
    tide_place place = {TIDE_NOWHERE};
    tide_assert(tide_level(pool->tag) >= tide_level(loop.tag));
    if (pool->core->careful)
        place = pool->core->levels.closing = tide_levels_pop(&pool->core->levels, loop.tag);
    tide_log_rewind(pool, loop.base);
    tide_assert(pool->log_top == loop.base);
    pool->tag = loop.tag = tide_tag_at(pool, tide_level(loop.tag)); /* of this epoch */
    pool->saved = 0;
    if (pool->core->careful)
        tide_levels_push(&pool->core->levels, loop.tag, place);
    loop.top = NULL;
    return loop;
}

tide_loop tide_loop_next_slow(tide_loop loop)
{
    tide_pool *pool = loop.pool;
    if (pool == tide_pool_refusing() || (pool->tag != loop.tag && tide_abandoned(pool, loop.tag)))
        return loop;
    tide_assert(tide_log_has(pool, loop.base) && tide_tag_nests(pool, loop.tag));
    if (!typed_loop_only_touched(&loop))
        return typed_loop_undo(loop);
    for (tide_entry *entry = loop.base; entry != pool->log_top; entry++) {
        /* So each shelf stands there once. */
        tide_assert(!tide_shelf_real(pool, entry->shelf) || tide_log_saved(pool, entry->shelf));
        tide_assert(!tide_shelf_real(pool, entry->shelf) || entry->next <= entry->shelf->next);
        entry->shelf->next = entry->next;
    }
    return typed_loop_learn(loop);
}

void tide_loop_leave_slow(tide_loop loop)
{
    if (loop.pool == tide_pool_refusing())
        return;
    tide_assert(tide_log_has(loop.pool, loop.base) && tide_tag_nests(loop.pool, loop.tag));
    tide_level_close(loop.pool, loop.base, loop.tag, loop.outer_saved);
}

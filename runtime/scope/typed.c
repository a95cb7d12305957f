/* SPDX-License-Identifier: MIT */
/* The cold side of typed scopes, frames and loop scopes: what the inlined code calls when
 * its guard fails. */
#include <tidepool/scope.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/check/levels.h"
#include "runtime/pool/level.h"
#include "runtime/pool/log.h"
#include "runtime/pool/row.h"
#include "runtime/scope/nesting.h"

/* Saves what can be saved now. The first touch sees to the rest: a shelf that is not set up, or one
 * for which the log has no room (which it reports). */
tide_typed_scope tide_typed_enter_slow(tide_pool *pool, uint32_t count, const tide_type *types,
                                       TIDE_PLACE)
{
    if (tide_level_admit(pool, "TIDE_SCOPE_TYPES") != TIDE_OK)
        return (tide_typed_scope){.pool = tide_pool_refusing(), .tag = TIDE_TAG_ROOT};
    tide_typed_scope scope = {.pool = pool, .outer = pool->tag, .count = count};
    scope.next[0] = (tide_slot *)(void *)pool->log_top;
    scope.tag = tide_level_open_at(pool, (tide_place){TIDE_PASS_PLACE});
    tide_assert(tide_log_has(pool, pool->log_top) && tide_tag_nests(scope.tag, scope.outer));
    for (uint32_t i = 0; i < count; i++) {
        tide_shelf *shelf = &pool->shelves[types[i]];
        if (shelf->saved_at != 0 && pool->log_top < pool->core->log.end) {
            tide_log_touch(pool, shelf, "TIDE_SCOPE_TYPES");
            tide_assert(shelf->saved_at == scope.tag);
        }
    }
    tide_assert(pool->tag == scope.tag && scope.base == NULL);
    return scope;
}

/* First puts back what stands in the log, then what the scope kept itself, unless that is
 * in the log too. */
void tide_typed_leave_slow(const tide_typed_scope *scope)
{
    tide_pool *pool = scope->pool;
    bool logged = scope->base == NULL;
    tide_entry *base = logged ? (tide_entry *)(void *)scope->next[0] : scope->base;
    tide_assert(pool == tide_pool_refusing() ||
                (tide_log_has(pool, base) && tide_tag_nests(scope->tag, scope->outer)));
    if (pool == tide_pool_refusing() || !tide_level_close(pool, base, scope->tag, scope->outer) ||
        logged)
        return;
    tide_assert(pool->log_top == base && pool->tag == scope->outer);
    tide_assert(scope->count <= TIDE_TYPED_MAX);
    for (uint32_t i = 0; i < scope->count; i++) {
        tide_assert(
            tide_shelf_moved_on(&pool->shelves[scope->types[i]], scope->next[i], scope->outer));
        pool->shelves[scope->types[i]] =
            (tide_shelf){.next = scope->next[i], .saved_at = scope->outer};
    }
}

/* All or none: if one fails the caller sees NULL for each, so a test of any one is enough. What was
 * taken before goes back with the scope. */
void tide_frame_acquire_slow(tide_pool *pool, uint32_t count, const tide_type *types,
                             const size_t *counts, void **data, TIDE_PLACE)
{
    bool complete = true;
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
    tide_loop loop = {.pool = tide_pool_refusing(), .tag = TIDE_TAG_ROOT};
    if (tide_level_admit(pool, "TIDE_LOOP") != TIDE_OK)
        return loop;
    loop.pool = pool;
    loop.base = pool->log_top;
    loop.outer = pool->tag;
    loop.tag = tide_level_open_at(pool, (tide_place){TIDE_PASS_PLACE});
    tide_assert(tide_log_has(pool, loop.base) && tide_tag_nests(loop.tag, loop.outer));
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
    for (const tide_entry *entry = loop->base; entry != pool->log_top; entry++)
        if (!tide_shelf_real(pool, entry->shelf))
            return false;
    return true;
}

/* Remembers what the next iterations put back: the log's entries, the first two in the loop. Where
 * there are fewer, the shelf of no type stands in. */
static tide_loop typed_loop_learn(tide_loop loop)
{
    tide_pool *pool = loop.pool;
    tide_assert(pool->tag == loop.tag && !pool->core->attended);
    tide_assert(pool->shelves[TIDE_NO_TYPE].saved_at == 0); /* nobody's: it may be written */
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
    pool->tag = loop.tag;
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
    tide_assert(tide_log_has(pool, loop.base) && tide_tag_nests(loop.tag, loop.outer));
    if (!typed_loop_only_touched(&loop))
        return typed_loop_undo(loop);
    for (tide_entry *entry = loop.base; entry != pool->log_top; entry++) {
        tide_assert(entry->shelf->saved_at == loop.tag); /* so each shelf stands there once */
        tide_assert(entry->next <= entry->shelf->next);
        entry->shelf->next = entry->next;
    }
    return typed_loop_learn(loop);
}

void tide_loop_leave_slow(tide_loop loop)
{
    if (loop.pool == tide_pool_refusing())
        return;
    tide_assert(tide_log_has(loop.pool, loop.base) && tide_tag_nests(loop.tag, loop.outer));
    tide_level_close(loop.pool, loop.base, loop.tag, loop.outer);
}

/* SPDX-License-Identifier: MIT */
/* The exported twins of typed scopes, frames and loop scopes. */
#include <tidepool/scope.h>

#include "runtime/assert.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/shelf.h"

/* Saves what can be saved now. A shelf not set up, or a full log, is left to the first touch,
 * which reports it if it matters. */
void tide_typed_enter_slow(tide_typed_scope *scope, tide_pool *pool, uint32_t count,
                           const tide_type *types)
{
    *scope = (tide_typed_scope){.count = count};
    if (tide_pool_use(pool, "TIDE_SCOPE_TYPES") != TIDE_OK)
        return;
    scope->pool = pool;
    scope->base = pool->log_top;
    scope->outer = pool->tag;
    scope->tag = tide_level_open(pool);
    for (uint32_t i = 0; i < count; i++) {
        tide_shelf *shelf = &pool->shelves[types[i]];
        if (shelf->saved_at != 0 && pool->log_top < pool->core->log_end)
            tide_log_touch(pool, shelf, "TIDE_SCOPE_TYPES");
    }
}

void tide_typed_leave_slow(tide_pool *pool, tide_entry *base, uint64_t tag, uint64_t outer)
{
    tide_level_close(pool, base, tag, outer);
}

/* All or none: what was taken before one fails goes back with the scope, but the caller sees
 * NULL for each, so that testing any one is enough. */
void tide_frame_acquire_slow(tide_pool *pool, uint32_t count, const tide_type *types,
                             const size_t *counts, void **data)
{
    bool complete = true;
    for (uint32_t i = 0; i < count; i++) {
        data[i] = complete ? tide_acquire_type(pool, types[i], counts[i]) : NULL;
        complete = data[i] != NULL;
    }
    if (!complete)
        for (uint32_t i = 0; i < count; i++)
            data[i] = NULL;
}

/* ---- loops ------------------------------------------------------------------------------ */

tide_loop tide_loop_begin(tide_pool *pool)
{
    tide_loop loop = {0};
    if (tide_pool_use(pool, "TIDE_LOOP") != TIDE_OK)
        return loop;
    loop.pool = pool;
    loop.base = pool->log_top;
    loop.outer = pool->tag;
    loop.tag = tide_level_open(pool);
    return loop;
}

/* Did this iteration only touch new types? Then they stay saved, and the next one is fast. */
static bool only_touched(const tide_loop *loop)
{
    const tide_pool *pool = loop->pool;
    if (pool->tag != loop->tag || pool->core->careful)
        return false;
    for (const tide_entry *entry = loop->base; entry != pool->log_top; entry++)
        if (!tide_shelf_real(entry->shelf))
            return false;
    return true;
}

/* Otherwise everything since the loop's base is undone: levels left open, exchanges, the saved
 * shelves, which the next iteration touches anew. */
void tide_loop_next_slow(tide_loop *loop)
{
    tide_pool *pool = loop->pool;
    if (pool == NULL || (pool->tag != loop->tag && tide_abandoned(pool, loop->tag)))
        return;
    if (only_touched(loop)) {
        loop->top = pool->log_top;
        for (tide_entry *entry = loop->base; entry != loop->top; entry++)
            entry->shelf->next = entry->next;
        return;
    }
    loop->top = NULL;
    tide_log_rewind(pool, loop->base);
    pool->tag = loop->tag;
}

void tide_loop_end(tide_loop *loop)
{
    if (loop->pool != NULL)
        tide_level_close(loop->pool, loop->base, loop->tag, loop->outer);
}

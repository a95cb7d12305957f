/* SPDX-License-Identifier: MIT */
/* How levels nest, as conditions for asserts: what holds of a level from when it opens until its
 * block ends, even if it was abandoned meanwhile. */
#ifndef TIDEPOOL_RUNTIME_SCOPE_NESTING_H
#define TIDEPOOL_RUNTIME_SCOPE_NESTING_H

#include <tidepool/site.h>

#include "runtime/pool/core.h"
#include "runtime/scope/plan.h"

/* Is this a place in the pool's log: of an entry, or of one that may be written? */
static inline bool tide_log_has(const tide_pool *pool, const tide_entry *place)
{
    const tide_log *log = &pool->core->log;
    return place >= log->start && place <= log->end &&
           ((uintptr_t)place - (uintptr_t)log->start) % sizeof(tide_entry) == 0;
}

/* Of a level that a block knows by this tag: it is not the root, its epoch has begun, and if no
 * other has begun since, it is open. */
static inline bool tide_tag_nests(const tide_pool *pool, uint64_t tag)
{
    uint64_t then = tide_tag_epoch(tag), now = tide_tag_epoch(pool->tag);
    return tide_level(tag) > TIDE_LEVEL_ROOT &&
           (then < now || (then == now && tide_level(tag) <= tide_level(pool->tag)));
}

/* Of a scope that was not refused. */
static inline bool tide_scope_nests(const tide_scope *scope)
{
    return tide_log_has(scope->pool, tide_scope_base(scope)) &&
           tide_tag_nests(scope->pool, scope->tag);
}

#endif

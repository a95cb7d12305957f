/* SPDX-License-Identifier: MIT */
/* How levels nest, as conditions for asserts: what holds of a level from when it opens until its
 * block ends, even if it was abandoned meanwhile. */
#ifndef TIDEPOOL_RUNTIME_SCOPE_NESTING_H
#define TIDEPOOL_RUNTIME_SCOPE_NESTING_H

#include <tidepool/site.h>

#include "runtime/pool/core.h"

_Static_assert(_Alignof(tide_entry) > 1, "the lowest bit of a base is free to mark it");

/* Is this a place in the pool's log: of an entry, or of one that may be written? */
static inline bool tide_log_has(const tide_pool *pool, const tide_entry *place)
{
    const tide_log *log = &pool->core->log;
    return place >= log->start && place <= log->end &&
           ((uintptr_t)place - (uintptr_t)log->start) % sizeof(tide_entry) == 0;
}

/* Was the level `tag` opened right inside the level `outer`? Then it is one deeper, and its epoch
 * is not older. */
static inline bool tide_tag_nests(uint64_t tag, uint64_t outer)
{
    return tide_level(tag) == tide_level(outer) + 1 &&
           (tag & ~TIDE_TAG_DEPTH) >= (outer & ~TIDE_TAG_DEPTH);
}

/* Both, for a scope that was not refused. */
static inline bool tide_scope_nests(const tide_scope *scope)
{
    return tide_log_has(scope->pool, tide_scope_base(scope)) &&
           tide_tag_nests(scope->tag, scope->outer);
}

/* May a scope put this shelf back to `next` and to the level around it? Nothing that ran inside can
 * have left the shelf before `next`, or saved by a level further out. */
static inline bool tide_shelf_moved_on(const tide_shelf *shelf, const tide_slot *next,
                                       uint64_t outer)
{
    return shelf->next >= next && tide_level(shelf->saved_at) >= tide_level(outer);
}

#endif

/* SPDX-License-Identifier: MIT */
/* Mark entries: how a mark, or a scope entered through a function, proves that it is still open.
 *
 * A mark stands in the undo log as an entry of its own, with a serial that is never used again.
 * While that entry is below the log's top, the level is open. Once anything has rewound past it, no
 * later entry in its place can carry the same serial. */
#ifndef TIDEPOOL_RUNTIME_SCOPE_MARK_H
#define TIDEPOOL_RUNTIME_SCOPE_MARK_H

#include <tidepool/mark.h>
#include <tidepool/site.h>

#include "runtime/pool/level.h"

/* The first serial of a block of 2^32, which no other pool ever gets: serials are the process's, or
 * a mark of a pool that is gone would fit another pool that lies in its place. */
uint64_t tide_mark_next_block(void);

/* Pushes a mark entry, for which there is room, and returns its serial. */
static inline uint64_t tide_mark_push(tide_pool *pool)
{
    tide_log *log = &pool->core->log;
    tide_assert(pool->log_top < log->end);
    if (TIDE_UNLIKELY((uint32_t)log->mark_serial == 0))
        log->mark_serial = tide_mark_next_block();
    tide_entry *entry = pool->log_top++;
    *entry = (tide_entry){&log->undo[TIDE_UNDO_MARK], (tide_slot *)(uintptr_t)++log->mark_serial,
                          pool->tag};
    return log->mark_serial;
}

/* Positions are bytes from the log's start: no division to make one. */
static inline size_t tide_mark_next_position(const tide_pool *pool)
{
    return (size_t)((char *)pool->log_top - (char *)pool->core->log.start);
}

static inline tide_entry *tide_mark_entry(const tide_pool *pool, size_t position)
{
    return (tide_entry *)(void *)((char *)pool->core->log.start + position);
}

/* Is this mark entry still in the log? */
static inline bool tide_mark_open(const tide_pool *pool, size_t position, uint64_t serial)
{
    const tide_log *log = &pool->core->log;
    if (serial == 0 || position >= tide_mark_next_position(pool) ||
        position % _Alignof(tide_entry) != 0) /* it is the program's word */
        return false;
    const tide_entry *entry = tide_mark_entry(pool, position);
    return entry->shelf == &log->undo[TIDE_UNDO_MARK] && (uintptr_t)entry->next == serial;
}

/* Rewinds to the mark after what went as `status` says. The first failure is returned, with its
 * message. */
tide_status tide_rewind_after(tide_pool *pool, tide_mark mark, tide_status status);

/* Leaves a scope whose mark the log has no room for: TIDE_ERROR_LIMIT. */
TIDE_COLD tide_status tide_scope_leave_unmarked(tide_scope *scope, const char *call);

/* Gives a scope that was entered a mark, so that a function may leave it. It comes last, into the
 * scope's own level. So entering is what it is for a block's scope, and what is saved for the level
 * around stays saved when the mark goes. */
static inline tide_status tide_scope_mark(tide_scope *scope, const char *call)
{
    tide_pool *pool = scope->pool;
    tide_assert(pool != tide_pool_refusing() && tide_level(scope->tag) > TIDE_LEVEL_ROOT);
    if (TIDE_UNLIKELY(pool->log_top == pool->core->log.end))
        return tide_scope_leave_unmarked(scope, call);
    scope->position = tide_mark_next_position(pool);
    scope->serial = tide_mark_push(pool);
    tide_assert(tide_mark_open(pool, scope->position, scope->serial));
    return TIDE_OK;
}

#endif

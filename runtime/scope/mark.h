/* SPDX-License-Identifier: MIT */
/* Mark entries: how a mark, or a scope entered through a function, proves that it is still open.
 *
 * A mark stands in the undo log as an entry of its own, with a serial that is never used again.
 * While that entry is below the log's top, the level is open. Once anything has rewound past it, no
 * later entry in its place can carry the same serial. */
#ifndef TIDEPOOL_RUNTIME_SCOPE_MARK_H
#define TIDEPOOL_RUNTIME_SCOPE_MARK_H

#include <tidepool/site.h>

#include "runtime/pool/core.h"

/* Pushes a mark entry and returns its serial; 0 with a message when the log is full. */
uint64_t tide_mark_push(tide_pool *pool, const char *call);

/* Is this mark entry still in the log? */
bool tide_mark_open(const tide_pool *pool, size_t position, uint64_t serial);

/* Where the mark of a scope that was entered through a function stands: right below its base. */
static inline size_t tide_mark_below(const tide_scope *scope)
{
    return (size_t)(tide_scope_base(scope) - scope->pool->core->log.start) - 1;
}

/* Closes the level that the mark at `position` opened, and all younger ones. Younger levels that
 * were still open count as abandoned then, since their blocks may yet end. */
void tide_mark_close(tide_pool *pool, size_t position, tide_place caller);

#endif

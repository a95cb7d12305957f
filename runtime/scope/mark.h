/* SPDX-License-Identifier: MIT */
/* Mark entries: how a mark, or a scope entered through a function, proves that it is still open.
 *
 * A mark stands in the undo log as an entry of its own, with a serial that is never used again.
 * While that entry is below the log's top the level is open; once anything rewinds past it, no
 * later entry in its place can carry the same serial. */
#ifndef TIDEPOOL_RUNTIME_SCOPE_MARK_H
#define TIDEPOOL_RUNTIME_SCOPE_MARK_H

#include "runtime/pool/core.h"

/* Pushes a mark entry and returns its serial; 0 with a message when the log is full. */
uint64_t tide_mark_push(tide_pool *pool, const char *call);

/* Is this mark entry still in the log? */
bool tide_mark_open(const tide_pool *pool, size_t position, uint64_t serial);

/* Closes the level that the mark at `position` opened, and all younger ones; levels that were
 * still open then count as abandoned, since their blocks may yet end. */
void tide_mark_close(tide_pool *pool, size_t position, tide_place caller);

#endif

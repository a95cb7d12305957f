/* SPDX-License-Identifier: MIT */
/* The undo log: what a level saves when it opens or when a type is first touched, and whether fast
 * paths may write to it. What puts it back: runtime/pool/level.h. */
#ifndef TIDEPOOL_RUNTIME_POOL_LOG_H
#define TIDEPOOL_RUNTIME_POOL_LOG_H

#include "runtime/pool/core.h"

/* Room for so many more entries? Sets the message if not. */
bool tide_log_room(tide_pool *pool, uint32_t entries, const char *call);

/* Pushes an entry; there must be room. */
void tide_log_push(tide_pool *pool, tide_shelf *shelf, tide_slot *next, uint64_t saved_at);

/* Saves the shelf for the open level, unless that has been done. False, with a message and
 * nothing changed, when the log is full. */
bool tide_log_touch(tide_pool *pool, tide_shelf *shelf, const char *call);

/* Where the log ends for fast paths from now on. Owner, or who asks something of the pool. */
void tide_log_set_room(tide_pool *pool, tide_entry *room);

/* Where it ends for them when no request is waiting. */
tide_entry *tide_log_usual_room(const tide_pool_core *core);

/* Lets fast paths into the log again, or not, as what is requested and declared
 * allows. Owner only. */
void tide_log_reopen(tide_pool *pool);

#endif

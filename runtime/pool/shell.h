/* SPDX-License-Identifier: MIT */
/* The memory that a pool itself lies in: laid out, and kept for the next pool.
 *
 * To reserve a shell, touch its first pages and give it back takes the system longer than
 * everything else that the life of a short pool consists of. So a few empty shells are kept for all
 * threads. A shell that is taken again is as new: whoever gives it wipes what its pool has written
 * where a new pool reads before it writes. (It does not read old entries of the log, nor old
 * events.)
 *
 * A kept shell costs the pages that its pool has touched. So only a small one is kept: one with few
 * types, few slots of each, a log and events that never grew past their first pages. Nor is that of
 * a pool that checks: there the next use of a destroyed pool shall fault. */
#ifndef TIDEPOOL_RUNTIME_POOL_SHELL_H
#define TIDEPOOL_RUNTIME_POOL_SHELL_H

#include "runtime/pool/core.h"

/* A pool with all its parts in place, everything else zero. NULL: no address space. */
tide_pool *tide_shell_take(void);

/* The pool is over, delisted, and has given up what it held, its records too. */
void tide_shell_give(tide_pool *pool);

/* Gives kept shells back to the system. Any thread. */
void tide_shells_trim(void);

#endif

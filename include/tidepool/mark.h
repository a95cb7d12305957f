/* SPDX-License-Identifier: MIT */
/* Marks: a checkpoint as a value, for code that cannot use a scope.
 *
 * A mark opens a level, as a scope does. A rewind to the mark closes that level and every younger one,
 * also the levels of scopes that a longjmp skipped. Prefer scopes: nobody can forget to close them. */
#ifndef TIDEPOOL_MARK_H
#define TIDEPOOL_MARK_H

#include <tidepool/pool.h>

TIDE_BEGIN_DECLS

typedef struct tide_mark {
    tide_pool *pool; /* NULL: the checkpoint failed, and a rewind is refused */
    uint64_t serial; /* never used twice in one process                      */
    size_t position; /* of its entry in the undo log, in bytes               */
    uint64_t saved;  /* what the level around it had saved: the pool's own   */
} tide_mark;

/* Opens a level. On failure (NULL, another thread's pool, log full) the mark's `pool` is NULL and the
 * message says why. */
TIDE_API tide_mark tide_checkpoint(tide_pool *pool);

/* Puts the pool back to its state at the checkpoint; the memory stays in the pool. Nothing changed:
 * TIDE_ERROR_STALE if the mark has been rewound before, by itself, an older mark, an enclosing scope
 * or a reset; TIDE_ERROR_ARGUMENT for a mark of another pool or a failed checkpoint; TIDE_ERROR_LIMIT
 * as tide_pool_reset says. */
TIDE_API tide_status tide_rewind(tide_pool *pool, tide_mark mark);

TIDE_END_DECLS

#endif

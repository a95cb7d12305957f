/* SPDX-License-Identifier: MIT */
/* Marks: a checkpoint as a value, for code that cannot use a scope.
 *
 * A mark opens a level like a scope does; rewinding it closes that level and every younger one,
 * scopes skipped by longjmp included. Prefer scopes: they cannot be forgotten. */
#ifndef TIDEPOOL_MARK_H
#define TIDEPOOL_MARK_H

#include <tidepool/pool.h>

TIDE_BEGIN_DECLS

typedef struct tide_mark {
    tide_pool *pool; /* NULL: the checkpoint failed; rewinding it is refused */
    uint64_t serial; /* never used twice in one pool                         */
    size_t position; /* of its entry in the undo log                         */
} tide_mark;

/* Opens a level. Each shelf's state is saved by the first acquire that touches it, so the cost
 * does not grow with the number of types. On failure (NULL or foreign pool, log full) the mark
 * has pool == NULL and the message says why. */
TIDE_API tide_mark tide_checkpoint(tide_pool *pool);

/* The same, and saves the named shelves at once, each once however often it is named. */
TIDE_API tide_mark tide_checkpoint_types(tide_pool *pool, const tide_type *types, size_t count);

/* Puts the pool back to how it was at the checkpoint. TIDE_ERROR_STALE, nothing changed, when
 * the mark has been rewound before (by itself, an older mark, an enclosing scope or a reset);
 * TIDE_ERROR_ARGUMENT when it belongs to another pool. */
TIDE_API tide_status tide_rewind(tide_pool *pool, tide_mark mark);

TIDE_END_DECLS

#endif

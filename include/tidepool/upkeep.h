/* SPDX-License-Identifier: MIT */
/* Upkeep of pools: what is done with one now and then. The rules of tidepool/pool.h hold. */
#ifndef TIDEPOOL_UPKEEP_H
#define TIDEPOOL_UPKEEP_H

#include <tidepool/pool.h>

TIDE_BEGIN_DECLS

/* Does what tide_pool_reset does, then gives all slot memory back. The pool can be used further.
 * TIDE_ERROR_STATE, nothing changed, while a graph is captured on the pool's stream. */
TIDE_API tide_status tide_pool_empty(tide_pool *pool);

/* Releases the memory of free slots that hold at least 10 × their largest request since the last
 * compact, where that frees 1 MiB or more. Live arrays stay. Errors as tide_pool_trim. */
TIDE_API tide_trim_summary tide_pool_compact(tide_pool *pool, tide_type type);

/* Asks the owner for a trim or a compact, which it does once, when it next opens a scope at the root.
 * Any thread that knows the pool to be alive. 0 takes back what has not been done yet.
 * TIDE_ERROR_ARGUMENT for any other bit. */
enum { TIDE_REQUEST_TRIM = 1, TIDE_REQUEST_COMPACT = 2 };
TIDE_API tide_status tide_pool_request(tide_pool *pool, uint32_t requests);

/* Open scopes and marks; 0 at the root. 0 with a message for NULL. */
TIDE_API size_t tide_pool_depth(const tide_pool *pool);

/* Live arrays of one type. 0 for a type never used here; 0 with a message for an unknown one. */
TIDE_API size_t tide_pool_active(const tide_pool *pool, tide_type type);

/* Checks every invariant of the pool (slots, shelves, log). TIDE_ERROR_STATE with a message that
 * names the first one that is broken; TIDE_ERROR_MEMORY if the check itself finds no memory. The
 * time grows with the pool: for tests and debugging. */
TIDE_API tide_status tide_pool_check(const tide_pool *pool);

TIDE_END_DECLS

#endif

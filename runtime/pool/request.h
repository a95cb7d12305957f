/* SPDX-License-Identifier: MIT */
/* Memory that follows the work: trims and compacts asked for from any thread, done by the owner
 * where a scope opens at the root.
 *
 *  1. Whoever asks sets a bit of `requests.asked`, then closes the log to fast paths by setting
 *     `log_room` to the log's start. The owner's next entry fails its guard and comes by cold
 *     code; no fast path tests for requests.
 *  2. The owner serves only at the root, never while it unwinds: entry is the one place where
 *     nothing is between two states. Inside a scope it defers: it writes an entry of its own into
 *     the undo log and opens the log again, so the rest of the scope is as fast as before. When
 *     the open level ends, the entry is undone, which closes the log: the next entry serves, or
 *     defers once more, for the level around.
 *  3. Serving takes the bits, works, and then reopens the log; a request that came meanwhile has
 *     set a bit, and is served next (4). So each request is served at most once and none is lost.
 *  4. `log_room` is written by both with atomic stores of one word. If the asker's store (1) is
 *     overtaken by the owner's (3), the bits were set before it, and the owner looks at them
 *     again after reopening. */
#ifndef TIDEPOOL_RUNTIME_POOL_REQUEST_H
#define TIDEPOOL_RUNTIME_POOL_REQUEST_H

#include "runtime/pool/core.h"

/* Requests of the library's own, beside those of <tidepool/pool.h>: to give back slots that were not used
 * lately, and to make slots as small as what they were lately used for. */
#define TIDE_REQUEST_TRIM_UNUSED (UINT32_C(1) << 30)
#define TIDE_REQUEST_TRIM_WASTED (UINT32_C(1) << 29)

/* A pass of what the library asks for by itself. It asks for these; 0: it takes back what it has asked
 * for. A pool whose owner has not served the last `trim_after` passes may be an idle thread's, and what
 * such a thread keeps is taken. Registry locked. */
void tide_request_lately(tide_pool *pool, uint32_t requests);

/* At the root: does what was requested, and reopens the log. Elsewhere: defers that, and reopens the
 * log. Owner only. */
void tide_request_serve(tide_pool *pool);

/* The level ends in which requests were deferred. */
void tide_request_undo(tide_pool *pool, const tide_entry *entry);

#endif

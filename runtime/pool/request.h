/* SPDX-License-Identifier: MIT */
/* Memory that follows the work: trims and compacts asked for from any thread, done by the owner
 * where a scope opens at the root.
 *
 *  1. Whoever asks sets a bit of `requests.asked`, then closes the log to fast paths by setting
 *     `log_room` to the log's start. The owner's next entry fails its guard and comes by cold
 *     code; no fast path tests for requests.
 *  2. The owner serves only at the root, never while it unwinds: entry is the one place where
 *     nothing is between two states. Inside a scope it leaves the log closed and goes on, slowly
 *     but correctly, until it is back at the root.
 *  3. Serving takes the bits, works, and then reopens the log; a request that came meanwhile has
 *     set a bit, and is served next (4). So each request is served at most once and none is lost.
 *     One request needs no root: TIDE_REQUEST_PASS asks only for a sign that the owner came by, and
 *     is answered at any depth, so that a long scope around a loop does not hold it up.
 *  4. `log_room` is written by both with atomic stores of one word. If the asker's store (1) is
 *     overtaken by the owner's (3), the bits were set before it, and the owner looks at them
 *     again after reopening. */
#ifndef TIDEPOOL_RUNTIME_POOL_REQUEST_H
#define TIDEPOOL_RUNTIME_POOL_REQUEST_H

#include "runtime/pool/core.h"

/* Besides those of <tidepool/pool.h>: count a pass. */
#define TIDE_REQUEST_PASS (UINT32_C(1) << 31)

/* At the root: does what was requested, and reopens the log. Elsewhere: only counts a pass that was
 * asked for, and reopens the log if nothing else is. Owner only. */
void tide_request_serve(tide_pool *pool);

/* Counts a pass that was asked for, and serves nothing else: for cold calls that open no level.
 * Owner only. */
void tide_request_pass_by(tide_pool *pool);

/* Asks for a pass. Any thread, the registry locked (or the pool may be gone). */
void tide_request_pass(tide_pool *pool);

#endif

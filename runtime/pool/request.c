/* SPDX-License-Identifier: MIT */
/* Trims and compacts that others ask for: how they ask, and how the owner serves them. */
#include <tidepool/upkeep.h>

#include "runtime/pool/request.h"

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/hooks.h"
#include "runtime/pool/log.h"

_Static_assert(((TIDE_REQUEST_TRIM_UNUSED | TIDE_REQUEST_TRIM_WASTED) &
                (TIDE_REQUEST_TRIM | TIDE_REQUEST_COMPACT)) == 0,
               "what the library asks for has bits of its own");

tide_status tide_pool_request(tide_pool *pool, uint32_t requests)
{
    const char *call = "tide_pool_request";
    TIDE_FORWARD(tide_pool_of_ours(pool, call));
    if ((requests & ~(uint32_t)(TIDE_REQUEST_TRIM | TIDE_REQUEST_COMPACT)) != 0)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "unknown request bits %#x", requests);
    tide_request_memory(pool, requests);
    return TIDE_OK;
}

void tide_request_memory(tide_pool *pool, uint32_t requests)
{
    if (requests == 0) {
        __atomic_store_n(&pool->core->requests.asked, 0, __ATOMIC_SEQ_CST);
        return;
    }
    __atomic_fetch_or(&pool->core->requests.asked, requests, __ATOMIC_SEQ_CST);
    tide_log_set_room(pool, pool->core->log.start);
}

/* A trim does all that a compact does, and more. */
static void request_serve_bits(tide_pool *pool, uint32_t requests)
{
    tide_assert(requests != 0 && tide_at_root(pool));
    const tide_pool_core *core = pool->core;
    if (core->capture != NULL)
        return; /* not now, and nobody waits for it */
    if ((requests & TIDE_REQUEST_TRIM) != 0)
        tide_pool_trim(pool, TIDE_ALL_TYPES);
    else
        tide_pool_trim_lately(pool, requests);
    pool->core->requests.served++;
}

/* Takes the bits, does the work, then opens the log. Does all of it again if a bit was set
 * meanwhile; but what was not used since a moment ago is not given back, since that is all. */
static void request_serve_at_root(tide_pool *pool)
{
    tide_pool_core *core = pool->core;
    uint32_t served = 0;
    do {
        uint32_t requests = __atomic_exchange_n(&core->requests.asked, 0, __ATOMIC_SEQ_CST);
        if (served != 0)
            requests &= ~(TIDE_REQUEST_TRIM_UNUSED | TIDE_REQUEST_TRIM_WASTED);
        if (requests != 0)
            request_serve_bits(pool, requests);
        served |= requests;
        tide_log_set_room(pool, tide_log_usual_room(core));
    } while (__atomic_load_n(&core->requests.asked, __ATOMIC_SEQ_CST) != 0);
}

/* Where the log is closed for other reasons, or full, nothing is gained, and the log stays
 * closed. */
static void request_defer(tide_pool *pool)
{
    tide_pool_core *core = pool->core;
    tide_assert(!tide_at_root(pool));
    if (!core->requests.deferred) {
        if (tide_log_usual_room(core) == core->log.start ||
            (pool->log_top == core->log.end && !tide_log_grow(pool)))
            return;
        tide_log_push(pool, &core->log.undo[TIDE_UNDO_REQUEST], NULL, 0);
        core->requests.deferred = true;
    }
    tide_log_reopen(pool);
}

void tide_request_undo(tide_pool *pool, const tide_entry *entry)
{
    tide_assert(pool->core->requests.deferred && entry == pool->log_top);
    (void)entry;
    pool->core->requests.deferred = false;
    tide_log_set_room(pool, pool->core->log.start);
}

/* The log may be closed although nothing is asked: a request was taken back, or was served before
 * who asked had closed the log. */
void tide_request_serve(tide_pool *pool)
{
    tide_pool_core *core = pool->core;
    enum { NEAR = 128 }; /* more entries than any fast path asks for */
    uint32_t requests = __atomic_load_n(&core->requests.asked, __ATOMIC_SEQ_CST);
    if (TIDE_UNLIKELY(core->log.end - pool->log_top < NEAR))
        (void)tide_log_grow(pool); /* or it stays closed to fast paths */
    if (!tide_at_root(pool)) {
        if (requests != 0)
            request_defer(pool);
        else if (tide_log_open(pool) != tide_log_usual_room(core))
            tide_log_reopen(pool);
    } else if (requests != 0 || tide_log_open(pool) != tide_log_usual_room(core)) {
        request_serve_at_root(pool);
    }
}

/* SPDX-License-Identifier: MIT */
/* Trims and compacts that others ask for: the proof is in runtime/pool/request.h. */
#include "runtime/pool/request.h"

#include <tidepool/upkeep.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/registry.h"
#include "runtime/base/settings.h"
#include "runtime/pool/level.h"
#include "runtime/pool/press.h"
#include "runtime/pool/trim.h"

enum { REQUEST_LATELY = TIDE_REQUEST_TRIM_UNUSED | TIDE_REQUEST_TRIM_WASTED };

_Static_assert((REQUEST_LATELY & (TIDE_REQUEST_TRIM | TIDE_REQUEST_COMPACT)) == 0,
               "what the library asks for has bits of its own");

/* Asks for these, any thread; 0: takes back those of `own` that were asked for. */
static void request_ask(tide_pool *pool, uint32_t requests, uint32_t own)
{
    tide_assert((requests & ~own) == 0);
    if (requests == 0) {
        __atomic_fetch_and(&pool->core->requests.asked, ~own, __ATOMIC_SEQ_CST);
        return;
    }
    __atomic_fetch_or(&pool->core->requests.asked, requests, __ATOMIC_SEQ_CST);
    tide_log_set_room(pool, pool->core->log.start);
}

tide_status tide_pool_request(tide_pool *pool, uint32_t requests)
{
    const char *call = "tide_pool_request";
    TIDE_FORWARD(tide_pool_of_ours(pool, call));
    if ((requests & ~(uint32_t)(TIDE_REQUEST_TRIM | TIDE_REQUEST_COMPACT)) != 0)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "unknown request bits %#x", requests);
    request_ask(pool, requests, UINT32_MAX);
    return TIDE_OK;
}

void tide_request_lately(tide_pool *pool, uint32_t requests)
{
    tide_pool_requests *own = &pool->core->requests;
    tide_assert(tide_registry_held());
    uint32_t waiting = requests & __atomic_load_n(&own->asked, __ATOMIC_RELAXED);
    own->unserved = (waiting & TIDE_REQUEST_TRIM_UNUSED) != 0 ? own->unserved + 1 : 0;
    bool due = own->unserved >= tide_setting_get(TIDE_SETTING_trim_after);
    if (due && tide_pool_is_own_and_idle(pool)) {
        /* its owner steps, and opens no scope in it */
        tide_assert(pool->core->capture == NULL); /* it is of the host */
        (void)tide_trim_each_row(pool, TIDE_ALL_TYPES, TIDE_REQUEST_TRIM_UNUSED);
    } else if (due) {
        own->unserved = 0;
        tide_pool_press_idle(pool);
    }
    request_ask(pool, requests, REQUEST_LATELY);
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
        (void)tide_trim_each_row(pool, TIDE_ALL_TYPES, requests);
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
            requests &= ~(uint32_t)REQUEST_LATELY;
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
        if (tide_log_usual_room(core) == core->log.start || pool->log_top == core->log.end)
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
    uint32_t requests = __atomic_load_n(&core->requests.asked, __ATOMIC_SEQ_CST);
    if (!tide_at_root(pool)) {
        if (requests != 0)
            request_defer(pool);
        else if (tide_log_open(pool) != tide_log_usual_room(core))
            tide_log_reopen(pool);
    } else if (requests != 0 || tide_log_open(pool) != tide_log_usual_room(core)) {
        request_serve_at_root(pool);
    }
}

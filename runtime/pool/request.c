/* SPDX-License-Identifier: MIT */
/* Trims, compacts and passes that others ask for: how they ask, and how the owner serves them. */
#include "runtime/pool/request.h"

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/pool/log.h"

_Static_assert((TIDE_REQUEST_PASS & (TIDE_REQUEST_TRIM | TIDE_REQUEST_COMPACT)) == 0,
               "a pass has a bit of its own");

tide_status tide_pool_request(tide_pool *pool, uint32_t requests)
{
    const char *call = "tide_pool_request";
    if (pool == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the pool is NULL");
    if ((requests & ~(uint32_t)(TIDE_REQUEST_TRIM | TIDE_REQUEST_COMPACT)) != 0)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "unknown request bits %#x", requests);
    if (requests == 0) {
        __atomic_fetch_and(&pool->core->requests.asked, TIDE_REQUEST_PASS, __ATOMIC_SEQ_CST);
        return TIDE_OK;
    }
    __atomic_fetch_or(&pool->core->requests.asked, requests, __ATOMIC_SEQ_CST);
    tide_log_set_room(pool, pool->core->log.start);
    return TIDE_OK;
}

/* A trim does all that a compact does, and more. */
static void request_serve_bits(tide_pool *pool, uint32_t requests)
{
    tide_assert(requests != 0 && pool->tag == TIDE_TAG_ROOT);
    if (pool->core->device->methods->capturing(pool->core->device, pool->core->streams.own))
        requests &= TIDE_REQUEST_PASS; /* not now, and nobody waits for it */
    if ((requests & TIDE_REQUEST_TRIM) != 0)
        tide_pool_trim(pool, TIDE_ALL_TYPES);
    else if ((requests & TIDE_REQUEST_COMPACT) != 0)
        tide_pool_compact(pool, TIDE_ALL_TYPES);
    if ((requests & ~TIDE_REQUEST_PASS) != 0)
        pool->core->requests.served++;
    if ((requests & TIDE_REQUEST_PASS) != 0)
        __atomic_fetch_add(&pool->core->requests.passes, 1, __ATOMIC_RELEASE);
}

/* Takes the bits, does the work, then opens the log. Does all of it again if a bit
 * was set meanwhile. */
static void request_serve_at_root(tide_pool *pool)
{
    tide_pool_core *core = pool->core;
    do {
        uint32_t requests = __atomic_exchange_n(&core->requests.asked, 0, __ATOMIC_SEQ_CST);
        if (requests != 0)
            request_serve_bits(pool, requests);
        tide_log_set_room(pool, tide_log_usual_room(core));
    } while (__atomic_load_n(&core->requests.asked, __ATOMIC_SEQ_CST) != 0);
}

/* Below the root, where nothing else can be served. */
static void request_serve_pass(tide_pool *pool)
{
    tide_pool_core *core = pool->core;
    __atomic_fetch_and(&core->requests.asked, ~TIDE_REQUEST_PASS, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&core->requests.passes, 1, __ATOMIC_RELEASE);
    tide_log_reopen(pool);
}

/* The log may be closed although nothing is asked: a request was taken back, or was served before
 * who asked had closed the log. */
void tide_request_serve(tide_pool *pool)
{
    tide_pool_core *core = pool->core;
    uint32_t requests = __atomic_load_n(&core->requests.asked, __ATOMIC_SEQ_CST);
    if (pool->tag != TIDE_TAG_ROOT) {
        if ((requests & TIDE_REQUEST_PASS) != 0)
            request_serve_pass(pool);
    } else if (requests != 0 || tide_log_open(pool) != tide_log_usual_room(core)) {
        request_serve_at_root(pool);
    }
}

void tide_request_pass_by(tide_pool *pool)
{
    if ((__atomic_load_n(&pool->core->requests.asked, __ATOMIC_SEQ_CST) & TIDE_REQUEST_PASS) != 0)
        request_serve_pass(pool);
}

void tide_request_pass(tide_pool *pool)
{
    __atomic_fetch_or(&pool->core->requests.asked, TIDE_REQUEST_PASS, __ATOMIC_SEQ_CST);
    tide_log_set_room(pool, pool->core->log.start);
}

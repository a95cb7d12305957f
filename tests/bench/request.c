/* SPDX-License-Identifier: MIT */
/* request: what does a pool of its own cost a server's request?
 *
 *   own-empty   a pool created and destroyed, nothing acquired
 *   own         the same, with a frame of two arrays in it
 *   stays       the frame in a pool that stays, and tide_pool_reset */
#include "cases.h"

#include <tidepool/tidepool.h>

enum { REQUEST_REALS = 512, REQUEST_INTEGERS = 256 };

typedef struct request_state {
    tide_pool *pool; /* that stays; NULL: each request makes its own */
    bool arrays;
    uint64_t allocations; /* of the pool that stays, after the first request */
} request_state;

static request_state *request_make(bool stays, bool arrays)
{
    request_state *s = bench_state_make(sizeof *s);
    s->arrays = arrays;
    s->pool = stays ? tide_pool_create(NULL) : NULL;
    if (stays && s->pool == NULL)
        bench_die("%s", tide_error_message());
    return s;
}

static void *own_empty_setup(const bench_case *job)
{
    (void)job;
    return request_make(false, false);
}

static void *own_setup(const bench_case *job)
{
    (void)job;
    return request_make(false, true);
}

static void *stays_setup(const bench_case *job)
{
    (void)job;
    return request_make(true, true);
}

static bool request_serve(tide_pool *pool)
{
    TIDE_FRAME(pool, (double, reals, REQUEST_REALS), (int32_t, integers, REQUEST_INTEGERS));
    if (reals == NULL || integers == NULL)
        return false;
    reals[0] = reals[REQUEST_REALS - 1] = 1;
    integers[0] = integers[REQUEST_INTEGERS - 1] = 1;
    __asm__ volatile("" : : "r"(reals), "r"(integers) : "memory");
    return true;
}

static uint64_t request_run(void *state, uint64_t operations)
{
    const request_state *s = state;
    uint64_t done = 0;
    for (; done < operations; done++) {
        tide_pool *pool = s->pool != NULL ? s->pool : tide_pool_create(NULL);
        if (pool == NULL || (s->arrays && !request_serve(pool)))
            break;
        if ((s->pool != NULL ? tide_pool_reset(pool) : tide_pool_destroy(pool)) != TIDE_OK)
            break;
    }
    return done;
}

/* Two slots for two arrays; the pool that stays allocates nothing after that. */
static void request_prove(void *state, uint64_t operations)
{
    request_state *s = state;
    tide_pool_statistics stats;
    tide_pool *pool = s->pool != NULL ? s->pool : tide_pool_create(NULL);
    if (pool == NULL || (s->arrays && !request_serve(pool)) ||
        tide_pool_stats(pool, &stats) != TIDE_OK || stats.slots != (s->arrays ? 2u : 0u))
        bench_die("a request did not run: %s", tide_error_message());
    s->allocations = stats.allocations;
    if (s->pool == NULL && tide_pool_destroy(pool) != TIDE_OK)
        bench_die("%s", tide_error_message());
    if (request_run(s, operations) != operations)
        bench_die("%s", tide_error_message());
}

static bool request_verify(void *state, uint64_t operations)
{
    const request_state *s = state;
    tide_pool_statistics stats;
    (void)operations;
    if (s->pool == NULL)
        return true;
    return tide_pool_stats(s->pool, &stats) == TIDE_OK && stats.allocations == s->allocations &&
           stats.depth == 0 && stats.slots_live == 0;
}

static void request_teardown(void *state)
{
    request_state *s = state;
    (void)tide_pool_destroy(s->pool);
    bench_state_free(s, sizeof *s);
}

#define REQUEST_VARIANT(name, words)                                  \
    static const bench_variant variant_##name = {                     \
        words,       NULL,           name##_setup,     request_prove, \
        request_run, request_verify, request_teardown, NULL};
REQUEST_VARIANT(stays, "stays")
REQUEST_VARIANT(own_empty, "own-empty")
REQUEST_VARIANT(own, "own")

const bench_variant *const bench_request_variants[] = {
    &variant_stays,
    &variant_own_empty,
    &variant_own,
    NULL,
};

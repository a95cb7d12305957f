/* SPDX-License-Identifier: MIT */
/* The program's side of the soft limit: what it gives when it is asked, and what it must find. */
#include <stdlib.h>

#include <tidepool/buffers.h>
#include <tidepool/limit.h>

#include "interpret.h"
#include "tests/hooks.h"

enum { ASKED_MAX = 16 }; /* times, before one allocation */

static uint64_t asked_ever;

uint64_t soft_asked_ever(void)
{
    return asked_ever;
}

/* The pool that wants the memory refuses it; what other pools take is not asked about. */
static void try_from_inside(struct soft *soft)
{
    struct oracle *oracle = soft->oracle;
    if (!soft->by_cache && (tide_acquire_type(oracle->pool, TIDE_F64, 1) != NULL ||
                            tide_error_status() != TIDE_ERROR_STATE))
        oracle_wrong(oracle, "the pool that asks for memory is not shut");
    if (get_memory_fault() != NULL)
        return; /* it is for the call that asks */
    tide_pool *other = tide_pool_create(NULL);
    if (other == NULL)
        oracle_wrong(oracle, "no pool inside of the soft limit's function");
    else
        (void)tide_acquire(other, char, 65536);
    if (tide_pool_destroy(other) != TIDE_OK)
        oracle_wrong(oracle, "tide_pool_destroy inside: %s", tide_error_message());
}

/* First what is cached, then what it holds itself, one after the other. */
static bool give_some(struct soft *soft)
{
    struct cache *cache = soft->cache;
    if (tide_buffers_trim(cache->buffers, 0).bytes != 0)
        return true;
    bool may_release = !soft->by_cache && !cache->of_pool;
    return may_release && cache_release_oldest(cache, soft->oracle) &&
           tide_buffers_trim(cache->buffers, 0).slots != 0;
}

static bool soft_asked(size_t held, size_t wanted, void *user)
{
    struct soft *soft = user;
    struct oracle *oracle = soft->oracle;
    tide_failure before;
    if (soft->inside)
        oracle_wrong(oracle, "asked inside of the soft limit's function");
    if (held + wanted <= soft->bytes)
        oracle_wrong(oracle, "asked about %zu bytes beside %zu, the soft limit is %zu", wanted,
                     held, soft->bytes);
    soft->inside = true;
    soft->asked++;
    asked_ever++;
    tide_failure_keep(&before);
    try_from_inside(soft);
    tide_failure_restore(&before);
    bool again = soft->stubborn || give_some(soft);
    soft->inside = false;
    return again;
}

void soft_begin(struct soft *soft, struct oracle *oracle, struct cache *cache,
                const struct pool_choice *choice)
{
    tide_limit_statistics now;
    tide_limit_options limits = {.user = soft};
    if (tide_limit_stats(&now) != TIDE_OK)
        abort();
    soft->oracle = oracle;
    soft->cache = cache;
    soft->stubborn = choice->soft_stubborn;
    soft->held = now.bytes_held;
    soft->asked_before = now.asked;
    if (choice->soft_bytes != 0) {
        limits.soft_bytes = soft->bytes = now.bytes_held + choice->soft_bytes;
        limits.function = soft_asked;
    }
    if (choice->process_bytes != 0)
        limits.hard_bytes = now.bytes_held + choice->process_bytes;
    if (tide_limit_set(&limits) != TIDE_OK)
        abort();
}

/* More is held, beyond the soft limit: so somebody was asked. Who always has more to give is asked
 * the whole number of times before each allocation. */
void soft_check(struct soft *soft)
{
    struct oracle *oracle = soft->oracle;
    tide_limit_statistics now;
    if (tide_limit_stats(&now) != TIDE_OK || now.asked != soft->asked_before + soft->asked)
        oracle_wrong(oracle, "the program was asked %u times, the library counts %llu", soft->asked,
                     (unsigned long long)(now.asked - soft->asked_before));
    if (oracle->plant == PLANT_UNASKED)
        soft->asked = 0;
    if (soft->bytes != 0 && now.bytes_held > soft->held && now.bytes_held > soft->bytes &&
        soft->asked == 0)
        oracle_wrong(oracle, "%zu bytes are held, the soft limit is %zu, and nobody was asked",
                     now.bytes_held, soft->bytes);
    if (soft->stubborn && soft->asked % ASKED_MAX != 0)
        oracle_wrong(oracle, "who has more to give was asked %u times", soft->asked);
    soft->held = now.bytes_held;
    soft->asked_before = now.asked;
    soft->asked = 0;
}

void soft_end(const struct soft *soft)
{
    if (tide_limit_set(NULL) != TIDE_OK)
        oracle_wrong(soft->oracle, "tide_limit_set: %s", tide_error_message());
}

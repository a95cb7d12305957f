/* SPDX-License-Identifier: MIT */
/* The events that took levels away under their blocks. runtime/pool/abandon.h says which of them
 * are kept, and why these are enough. */
#include "runtime/pool/abandon.h"

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/pool/core.h"

#define ABANDON_LAST_EPOCH (~TIDE_TAG_DEPTH)

_Static_assert((TIDE_TAG_DEPTH & (TIDE_TAG_DEPTH + 1)) == 0, "epochs lie above the depth");
_Static_assert(2 * TIDE_TAG_DEEP == TIDE_TAG_DEPTH + 1, "the depth does not reach the epoch");

/* How many of the remembered events stay worth it after one that keeps this level. */
static uint32_t abandon_lower(const tide_abandonments *all, uint32_t kept)
{
    uint32_t count = all->count;
    while (count > 0 && tide_level(all->events[count - 1]) >= kept)
        count--;
    return count;
}

tide_status tide_abandon_admit(tide_pool *pool, uint32_t kept, const char *call)
{
    if (tide_tag_epoch(pool->tag) == ABANDON_LAST_EPOCH ||
        abandon_lower(&pool->core->abandoned, kept) == TIDE_ABANDON_MAX)
        return tide_fail(
            TIDE_ERROR_LIMIT, call,
            "pool '%s' was rewound under open scopes more often than can be told apart",
            pool->core->name);
    return TIDE_OK;
}

void tide_abandon(tide_pool *pool)
{
    tide_abandonments *all = &pool->core->abandoned;
    uint32_t kept = tide_level(pool->tag);
    tide_assert(kept >= TIDE_LEVEL_ROOT); /* nothing takes the root away */
    tide_assert(tide_tag_epoch(pool->tag) != ABANDON_LAST_EPOCH);
    pool->tag = (pool->tag | TIDE_TAG_DEPTH) + 1 + kept;
    all->count = abandon_lower(all, kept);
    tide_assert(all->count < TIDE_ABANDON_MAX);
    all->events[all->count++] = pool->tag;
}

bool tide_abandoned(const tide_pool *pool, uint64_t tag)
{
    const tide_abandonments *all = &pool->core->abandoned;
    for (uint32_t i = all->count; i-- > 0;) {
        if (tide_tag_epoch(all->events[i]) <= tide_tag_epoch(tag))
            return false;
        if (tide_level(all->events[i]) < tide_level(tag))
            return true;
    }
    return false;
}

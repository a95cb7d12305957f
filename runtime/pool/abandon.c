/* SPDX-License-Identifier: MIT */
/* The events that took levels away under their blocks. runtime/pool/abandon.h says which of them
 * are kept, and why these are enough. */
#include "runtime/pool/abandon.h"

#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/pool/core.h"

_Static_assert((TIDE_TAG_DEPTH & (TIDE_TAG_DEPTH + 1)) == 0, "epochs lie above the depth");
_Static_assert(TIDE_ABANDON_MAX >= 2, "there are two events to merge");

/* One event as late as the second and with the first one's `kept`. */
static void abandon_merge_oldest(tide_abandonments *all)
{
    tide_assert(all->count >= 2 && all->events[0].kept < all->events[1].kept);
    all->events[1].kept = all->events[0].kept;
    memmove(&all->events[0], &all->events[1], (all->count - 1) * sizeof all->events[0]);
    all->count--;
}

void tide_abandon(tide_pool *pool, uint32_t kept)
{
    tide_abandonments *all = &pool->core->abandoned;
    tide_assert(kept >= tide_level(TIDE_TAG_ROOT)); /* nothing takes the root away */
    pool->epoch += TIDE_TAG_DEPTH + 1;
    tide_assert((pool->epoch & TIDE_TAG_DEPTH) == 0);
    while (all->count > 0 && all->events[all->count - 1].kept >= kept)
        all->count--;
    if (all->count == TIDE_ABANDON_MAX)
        abandon_merge_oldest(all);
    tide_assert(all->count < TIDE_ABANDON_MAX);
    all->events[all->count].epoch = pool->epoch;
    all->events[all->count].kept = kept;
    all->count++;
    tide_assert(all->count == 1 || all->events[all->count - 2].kept < kept);
}

/* The first event after the tag's epoch kept least: no other needs to be looked at. */
bool tide_abandoned(const tide_pool *pool, uint64_t tag)
{
    const tide_abandonments *all = &pool->core->abandoned;
    for (uint32_t i = 0; i < all->count; i++)
        if (all->events[i].epoch > (tag & ~TIDE_TAG_DEPTH))
            return all->events[i].kept < tide_level(tag);
    return false;
}

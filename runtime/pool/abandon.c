/* SPDX-License-Identifier: MIT */
#include "runtime/pool/abandon.h"

#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/pool/core.h"

static void merge_oldest(tide_abandonments *all)
{
    all->events[1].kept = all->events[0].kept;
    memmove(&all->events[0], &all->events[1], (all->count - 1) * sizeof all->events[0]);
    all->count--;
}

void tide_abandon(tide_pool *pool, uint32_t kept)
{
    tide_abandonments *all = &pool->core->abandoned;
    pool->epoch += TIDE_TAG_DEPTH + 1;
    while (all->count > 0 && all->events[all->count - 1].kept >= kept)
        all->count--;
    if (all->count == TIDE_ABANDON_MAX)
        merge_oldest(all);
    all->events[all->count].epoch = pool->epoch;
    all->events[all->count].kept = kept;
    all->count++;
    tide_assert(all->count == 1 || all->events[all->count - 2].kept < kept);
}

bool tide_abandoned(const tide_pool *pool, uint64_t tag)
{
    const tide_abandonments *all = &pool->core->abandoned;
    for (uint32_t i = 0; i < all->count; i++)
        if (all->events[i].epoch > (tag & ~TIDE_TAG_DEPTH))
            return all->events[i].kept < tide_level(tag);
    return false;
}

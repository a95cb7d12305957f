/* SPDX-License-Identifier: MIT */
/* A large request whose own size has nothing cached takes a cached buffer of a larger one, at most
 * twice as large. Else each size would keep the most that it ever needed at once, and sizes seldom
 * need their most at the same time: with 64 buffers of random sizes that is nearly three times of
 * what is live. */
#include "runtime/buffers/store/depot.h"

enum {
    BORROW_FROM = 128 << 10, /* bytes: what smaller ones would save is not worth a look */
    BORROW_TIMES = 2         /* as large as the own size, at most                       */
};

/* From the thread's own cell, else from the depot. */
static uint32_t borrow_from_bucket(tide_buffers *buffers, tide_magazine *magazine,
                                   const tide_want *want)
{
    tide_depot_bucket *depot = tide_depot_at(buffers, want->key, want->bucket);
    if (depot->permits == 0)
        return TIDE_NO_RECORD;
    uint32_t slot = TIDE_NO_RECORD;
    if (magazine != NULL && magazine->cells[want->key] != NULL)
        slot = tide_cell_find(buffers, &magazine->cells[want->key][want->bucket], want);
    return slot != TIDE_NO_RECORD ? slot : tide_depot_find(buffers, depot, want);
}

uint32_t tide_depot_borrow(tide_buffers *buffers, tide_magazine *magazine, const tide_want *want,
                           unsigned *bucket)
{
    size_t bytes = tide_bucket_bytes(buffers->policy, want->bucket);
    unsigned count = tide_bucket_count(buffers->policy);
    tide_want larger = *want;
    tide_assert(want->bucket < count);
    if (bytes < BORROW_FROM)
        return TIDE_NO_RECORD;
    while (++larger.bucket < count &&
           tide_bucket_bytes(buffers->policy, larger.bucket) <= BORROW_TIMES * bytes) {
        uint32_t slot = borrow_from_bucket(buffers, magazine, &larger);
        if (slot == TIDE_NO_RECORD)
            continue;
        tide_assert(tide_handle_at(buffers, slot)->bucket == larger.bucket);
        *bucket = larger.bucket;
        return slot;
    }
    return TIDE_NO_RECORD;
}

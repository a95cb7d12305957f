/* SPDX-License-Identifier: MIT */
/* The numbers of sites, and the uses that pools have counted under them. */
#include "runtime/pool/uses.h"

#include "runtime/base/assert.h"
#include "runtime/base/registry.h"

/* Guarded by the registry. */
static struct {
    bool taken[TIDE_SITES_COUNTED];
    uint32_t last;                     /* the largest number that was ever taken */
    uint64_t kept[TIDE_SITES_COUNTED]; /* of pools that have ended               */
} uses_counted;

uint32_t tide_uses_take_number(void)
{
    uint32_t number = 1;
    tide_assert(tide_registry_held());
    while (number <= uses_counted.last && uses_counted.taken[number])
        number++;
    if (number == TIDE_SITES_COUNTED)
        return 0;
    tide_assert(!uses_counted.taken[number]);
    uses_counted.taken[number] = true;
    uses_counted.last = number > uses_counted.last ? number : uses_counted.last;
    return number;
}

void tide_uses_give_number(uint32_t number)
{
    tide_assert(tide_registry_held());
    tide_assert(number <= uses_counted.last && uses_counted.taken[number] == (number != 0));
    uses_counted.taken[number] = false;
}

/* The owner stores with plain stores: as in runtime/inspect/stats.c the word is sampled. */
__attribute__((no_sanitize("thread"))) static uint64_t uses_sample(const tide_pool *pool,
                                                                   uint32_t number)
{
    return *(const volatile uint64_t *)&pool->uses[number];
}

void tide_uses_keep(tide_pool *pool)
{
    tide_assert(tide_registry_held());
    for (uint32_t number = 1; number <= uses_counted.last; number++) {
        uint64_t counted = uses_sample(pool, number);
        if (counted == 0)
            continue; /* so pages that were never written stay unwritten */
        uses_counted.kept[number] += counted;
        pool->uses[number] = 0;
    }
}

typedef struct uses_adding {
    uint32_t number;
    uint64_t sum;
} uses_adding;

static void uses_add(tide_pool *pool, void *user)
{
    uses_adding *adding = user;
    adding->sum += uses_sample(pool, adding->number);
}

uint64_t tide_uses_sum(uint32_t number)
{
    tide_assert(number != 0 && number < TIDE_SITES_COUNTED && tide_registry_held());
    uses_adding adding = {number, uses_counted.kept[number]};
    tide_pools_visit(uses_add, &adding);
    return adding.sum;
}

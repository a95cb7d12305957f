/* SPDX-License-Identifier: MIT */
/* No mistake: every form of array at its full length, and nothing is said. */
#include <tidepool/bits.h>

#include "diagnosed.h"

static void work(tide_pool *pool, size_t n)
{
    TIDE_SCOPE(pool);
    double *reals = tide_ones(pool, double, n);
    uint8_t *bytes = tide_acquire(pool, uint8_t, n);
    uint64_t *bits = tide_acquire_bits(pool, n);
    memset(reals, 0xA5, n * sizeof *reals);
    memset(bytes, 0, n);
    memset(bits, 0xFF, (n + 63) / 64 * 8);
}

int main(void)
{
    tide_pool *pool = pool_at(TIDE_CHECK_GUARD);
    TIDE_LOOP(pool, i, 700)
        work(pool, i);
    need(tide_pool_destroy(pool) == TIDE_OK);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* Uses an array of a pool that is gone. */
#include "diagnosed.h"

int main(void)
{
    tide_pool *pool = pool_at(TIDE_CHECK_GUARD);
    double *array = tide_ones(pool, double, 8); ACQUIRED_HERE;
    need(tide_pool_destroy(pool) == TIDE_OK);
    EXPECT("tidepool: use after rewind: byte 0 of an array of 8 f64 (64 bytes) in pool 'the pool'");
    EXPECT("  rewound   by a call at main+0x");
    return use(array) != 0;
}

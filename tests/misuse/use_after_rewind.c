/* SPDX-License-Identifier: MIT */
/* Uses an array whose scope has ended. */
#include "diagnosed.h"

static double *work(tide_pool *pool)
{
    TIDE_SCOPE(pool); OPENED_HERE(REWOUND);
    double *array = tide_acquire(pool, double, 100); ACQUIRED_HERE;
    array[99] = 1;
    return array;
}

int main(void)
{
    double *array = work(pool_at(TIDE_CHECK_GUARD));
    EXPECT("tidepool: use after rewind: byte 24 of an array of 100 f64 (800 bytes) in pool 'the pool'");
    EXPECT("  used      use+0x");
    EXPECT(" by thread 'use_after_rewin'");
    return use(array + 3) != 0;
}

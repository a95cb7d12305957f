/* SPDX-License-Identifier: MIT */
/* Writes the element after the last of an array of odd size: found at the rewind. */
#include "diagnosed.h"

static void work(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    double *array = tide_acquire(pool, double, 13); ACQUIRED_HERE;
    for (volatile size_t i = 0; i <= 13; i++)
        array[i] = 1.1;
}

int main(void)
{
    EXPECT("tidepool: written past the end: byte 104 of an array of 13 f64 (104 bytes) in pool 'the pool'");
    EXPECT("  found     when it was rewound");
    work(pool_at(TIDE_CHECK_GUARD));
    return 0;
}

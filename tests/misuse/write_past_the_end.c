/* SPDX-License-Identifier: MIT */
/* Writes the element after the last, where the array ends with a page. */
#include "diagnosed.h"

void write_to(volatile double *array, size_t i);
void write_to(volatile double *array, size_t i)
{
    array[i] = 1;
}

int main(void)
{
    tide_pool *pool = pool_at(TIDE_CHECK_GUARD);
    TIDE_SCOPE(pool);
    double *array = tide_acquire(pool, double, 64); ACQUIRED_HERE;
    EXPECT("tidepool: access past the end: byte 512 of an array of 64 f64 (512 bytes) in pool 'the pool'");
    EXPECT("  rewound   not yet: it is live");
    EXPECT("  used      write_to+0x");
    for (size_t i = 0; i <= 64; i++)
        write_to(array, i);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* Reads beyond the gap that an odd size leaves before the inaccessible page. */
#include "diagnosed.h"

int main(void)
{
    tide_pool *pool = pool_at(TIDE_CHECK_GUARD);
    TIDE_SCOPE(pool);
    double *array = tide_zeros(pool, double, 13); ACQUIRED_HERE;
    EXPECT("tidepool: access past the end: byte 160 of an array of 13 f64 (104 bytes)");
    EXPECT("  used      use+0x");
    return use(array + 20) != 0;
}

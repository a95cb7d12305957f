/* SPDX-License-Identifier: MIT */
/* Writes the element before the first: found at the rewind. */
#include "diagnosed.h"

static void work(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    int64_t *array = tide_acquire(pool, int64_t, 50); ACQUIRED_HERE;
    volatile ptrdiff_t i = -1;
    array[i] = -1;
}

int main(void)
{
    EXPECT("tidepool: written before the start: byte -1 of an array of 50 i64 (400 bytes)");
    work(pool_at(TIDE_CHECK_GUARD));
    return 0;
}

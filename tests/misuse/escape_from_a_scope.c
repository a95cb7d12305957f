/* SPDX-License-Identifier: MIT */
/* Returns an array of the scope that the return ends. */
#include <tidepool/check.h>

#include "diagnosed.h"

static double *work(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    double *array = tide_acquire(pool, double, 10); ACQUIRED_HERE;
    TIDE_RETURN(array + 4);
}

int main(void)
{
    EXPECT("tidepool: escape: a pointer to an array of 10 f64 leaves the scope that will rewind it "
           "in pool 'the pool'");
    return work(pool_at(TIDE_CHECK_POISON)) == NULL;
}

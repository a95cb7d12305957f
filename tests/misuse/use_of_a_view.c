/* SPDX-License-Identifier: MIT */
/* Keeps the data of a view into an array of a scope that has ended. */
#include <tidepool/array.h>
#include <tidepool/check.h>

#include "diagnosed.h"

double *zeros(tide_pool *pool);
double *zeros(tide_pool *pool)
{
    const int64_t shape[] = {2, 3};
    tide_array *array = tide_array_zeros(pool, TIDE_F64, 2, shape);
    need(array != NULL);
    return tide_array_data(array);
}

static double *work(tide_pool *pool)
{
    TIDE_FRAME(pool, (int32_t, other, 3)); OPENED_HERE(REWOUND);
    const int64_t shape[] = {10, 20}, start[] = {1, 2}, extent[] = {3, 4};
    tide_array *array = tide_array_acquire(pool, TIDE_F64, 2, shape); ACQUIRED_HERE;
    tide_array *view = tide_array_view(pool, array, start, extent, NULL);
    need(array != NULL && view != NULL && other != NULL);
    EXPECT("  acquired  zeros+0x"); /* functions know their caller's code, not its line */
    need(!tide_escape_check(zeros(pool)));
    return tide_array_data(view);
}

int main(void)
{
    double *data = work(pool_at(TIDE_CHECK_GUARD));
    EXPECT("tidepool: use after rewind: byte 176 of an array of 200 f64");
    EXPECT("  used      use+0x");
    return use(data) != 0;
}

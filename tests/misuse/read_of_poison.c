/* SPDX-License-Identifier: MIT */
/* Computes with an array whose scope has ended: the result is no number. */
#include "diagnosed.h"

#include "../forms.h"

static double *work(tide_pool *pool)
{
    TIDE_SCOPE(pool);
    return tide_fill(pool, double, 10, 1.0);
}

int main(void)
{
    double *array = work(pool_at(TIDE_CHECK_POISON)), value;
    EXPECT("the sum is nan");
    read_behind(array + 5, &value, sizeof value); /* sanitizers would object sooner */
    value += 1;
    fprintf(stderr, "the sum is %s\n", value != value ? "nan" : "a number");
    return 0;
}

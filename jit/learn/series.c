/* SPDX-License-Identifier: MIT */
/* Means and their errors. */
#include "jit/learn/series.h"

#include "runtime/base/assert.h"

void tide_series_add(tide_series *series, double value)
{
    double before = value - series->mean;
    series->count++;
    series->mean += before / (double)series->count;
    series->squares += before * (value - series->mean);
    tide_assert(series->squares >= 0);
}

/* For one root in cold code the library would need libm, and so would each program that links it
 * statically. */
static double series_square_root(double square)
{
    tide_assert(square >= 0);
    if (square == 0)
        return 0;
    double root = square > 1 ? square : 1; /* Heron: from above it only falls */
    for (double next = (root + square / root) / 2; next < root * (1 - 1e-9);
         next = (root + square / root) / 2)
        root = next;
    return root;
}

double tide_series_error(const tide_series *series)
{
    double count = (double)series->count;
    return series->count < 2 ? 0 : series_square_root(series->squares / (count - 1) / count);
}

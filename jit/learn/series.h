/* SPDX-License-Identifier: MIT */
/* A series of numbers: how many, their mean, and how far off that may be. Guarded by whoever owns
 * it. */
#ifndef TIDEPOOL_JIT_LEARN_SERIES_H
#define TIDEPOOL_JIT_LEARN_SERIES_H

#include <stdint.h>

/* All zero: empty. */
typedef struct tide_series {
    uint64_t count;
    double mean, squares; /* of the differences from the mean, added up */
} tide_series;

/* By Welford's method (1962), which does not take one large sum from another. */
void tide_series_add(tide_series *series, double value);

/* The standard error of the mean, to eight digits; 0 for less than two. */
double tide_series_error(const tide_series *series);

#endif

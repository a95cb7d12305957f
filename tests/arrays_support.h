/* SPDX-License-Identifier: MIT */
/* What the tests of arrays share: shapes taken and looked at, allocations counted and failed. */
#ifndef TIDEPOOL_TESTS_ARRAYS_SUPPORT_H
#define TIDEPOOL_TESTS_ARRAYS_SUPPORT_H

#include "forms.h"

#include <tidepool/array.h>

#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})
#define RANK(...)  ((int)(sizeof(SHAPE(__VA_ARGS__)) / sizeof(int64_t)))

/* An uninitialised array; fails the test unless its header says exactly what was asked for. */
tide_array *take_array(tide_pool *pool, tide_type type, tide_order order, int ndim,
                       const int64_t *shape);
#define TAKE(pool, type, ...) \
    take_array((pool), (type), TIDE_ROW_MAJOR, RANK(__VA_ARGS__), SHAPE(__VA_ARGS__))
#define TAKE_COLUMNS(pool, type, ...) \
    take_array((pool), (type), TIDE_COLUMN_MAJOR, RANK(__VA_ARGS__), SHAPE(__VA_ARGS__))

/* Fails unless this is a gapless array of that type, order and shape. */
void expect_array(const tide_array *array, tide_type type, tide_order order, int ndim,
                  const int64_t *shape);

size_t bytes_of(const tide_array *array);

/* Address of one element, by the strides. */
void *element(const tide_array *array, const int64_t *index);

/* Moves to the next index, the last running fastest; false after the last one. */
bool next_index(const tide_array *array, int64_t *index);

/* Fails unless the last failed call says so, in these words. */
void expect_error(tide_status status, const char *words);

/* Counts what is asked of the system from now on; the result so far, and no more counting. */
void count_allocations(void);
size_t allocations_counted(void);

/* From now on the n-th request (from 0) of the system fails, or it and all after it. */
void fail_allocation(size_t n, bool for_ever);
bool allocation_failed(void); /* did one? Stops failing. */

#endif

/* SPDX-License-Identifier: MIT */
/* Ways of writing a call site of each kind, in C and in C++, behind one face. */
#ifndef TIDEPOOL_TESTS_CALLSITES_H
#define TIDEPOOL_TESTS_CALLSITES_H

#include <tidepool/array.h>

#include "forms.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct acquire_way {
    const char *name; /* NULL ends a table */
    void *(*acquire)(tide_pool *pool, tide_type type, size_t n);
} acquire_way;

typedef struct array_way {
    const char *name;
    tide_array *(*acquire)(tide_pool *pool, tide_type type, int ndim, const int64_t *shape);
} array_way;

/* A frame of two doubles' arrays and one of int32_t, each of n elements: its `data` are given to
 * the body, which runs inside. */
typedef void frame_body(tide_pool *pool, void *const *data, size_t n, void *state);

typedef struct frame_way {
    const char *name;
    tide_status (*run)(tide_pool *pool, size_t n, frame_body *body, void *state);
} frame_way;

extern const acquire_way acquire_ways_cpp[];
extern const array_way array_ways_cpp[];
extern const frame_way frame_ways_cpp[];

#ifdef __cplusplus
}
#endif

#endif

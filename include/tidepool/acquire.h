/* SPDX-License-Identifier: MIT */
/* Acquire: the next slot of a type, grown if it is too small.
 *
 * What comes back is at least 64-byte aligned (more if the type asks for more), has room for n
 * elements, and stays where it is until the enclosing scope or mark is rewound; after that it
 * belongs to whoever acquires next. Its content is what the last user left (check level 0).
 * Outside any scope it stays until tide_pool_reset.
 *
 * n = 0 gives a valid pointer of its own. On failure the result is NULL, the message names the
 * call, the value and the limit, and nothing is acquired: TIDE_ERROR_SIZE (the bytes overflow:
 * what a negative count turns into), TIDE_ERROR_MEMORY, TIDE_ERROR_LIMIT, TIDE_ERROR_TYPE,
 * TIDE_ERROR_THREAD, TIDE_ERROR_ARGUMENT (NULL pool).
 *
 * Each element type has its own row of slots, so that a slot is re-used for the type it was
 * made for (the idea of AdaptiveArrayPools.jl). */
#ifndef TIDEPOOL_ACQUIRE_H
#define TIDEPOOL_ACQUIRE_H

#include <tidepool/inline/acquire.h>
#include <tidepool/pool.h>

TIDE_BEGIN_DECLS

/* The same for a type known only at run time; every type is welcome here, TIDE_BIT too (n bits,
 * in whole 64-bit words). The exported twin of tide_acquire. */
TIDE_API void *tide_acquire_type(tide_pool *pool, tide_type type, size_t n);

/* Acquire, then set every element to 0, to 1 (numeric built-in types and bits only), or to a
 * copy of *value (one element; for TIDE_BIT, a bool). */
TIDE_API void *tide_zeros_type(tide_pool *pool, tide_type type, size_t n);
TIDE_API void *tide_ones_type(tide_pool *pool, tide_type type, size_t n);
TIDE_API void *tide_fill_type(tide_pool *pool, tide_type type, size_t n, const void *value);

/* The same with the place that asks, for the macros below. */
TIDE_API void *tide_zeros_at(tide_pool *pool, tide_type type, size_t n, TIDE_PLACE);
TIDE_API void *tide_ones_at(tide_pool *pool, tide_type type, size_t n, TIDE_PLACE);
TIDE_API void *tide_fill_at(tide_pool *pool, tide_type type, size_t n, const void *value,
                            TIDE_PLACE);

TIDE_END_DECLS

/* T *tide_acquire(tide_pool *pool, T, size_t n): n elements of any complete C type T,
 * uninitialised. About ten instructions with two tests when warm. */
#define tide_acquire(pool, T, n) \
    ((T *)tide_acquire_inline((pool), tide_type_of(T), (size_t)(n), TIDE_HERE))

#define tide_zeros(pool, T, n) ((T *)tide_zeros_at((pool), tide_type_of(T), (size_t)(n), TIDE_HERE))
#define tide_ones(pool, T, n)  ((T *)tide_ones_at((pool), tide_type_of(T), (size_t)(n), TIDE_HERE))

/* T *tide_fill(pool, T, n, value): every element a copy of value, converted to T. */
#define tide_fill(pool, T, n, value)                                                      \
    __extension__({                                                                       \
        T tide_value_ = (value);                                                          \
        (T *)tide_fill_at((pool), tide_type_of(T), (size_t)(n), &tide_value_, TIDE_HERE); \
    })

#endif

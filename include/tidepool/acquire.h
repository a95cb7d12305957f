/* SPDX-License-Identifier: MIT */
/* Acquire: take the next slot of a type; the slot grows if it is too small.
 *
 * The result is a pointer to memory for n elements, aligned to 64 bytes or to the type's alignment
 * if that is larger. The pool owns the memory. It stays where it is until the enclosing scope or
 * mark is rewound; then the next acquire may get it. Outside any scope it stays until
 * tide_pool_reset. Its content is what the last user left (at check level 0).
 *
 * n = 0 gives a valid pointer of its own. On failure the result is NULL and nothing is acquired;
 * the message names the call, the value and the limit. The errors: TIDE_ERROR_SIZE (the number of
 * bytes overflows, as it does for a negative count), TIDE_ERROR_MEMORY, TIDE_ERROR_LIMIT,
 * TIDE_ERROR_TYPE, TIDE_ERROR_THREAD, TIDE_ERROR_ARGUMENT (NULL pool).
 *
 * Each element type has its own row of slots, so a slot is always used for the same type. The idea
 * is AdaptiveArrayPools.jl's. */
#ifndef TIDEPOOL_ACQUIRE_H
#define TIDEPOOL_ACQUIRE_H

#include <tidepool/inline/acquire.h>
#include <tidepool/pool.h>

TIDE_BEGIN_DECLS

/* Acquires n elements of a type that is known only at run time, uninitialised. It takes every type;
 * for TIDE_BIT, n counts bits, and the memory is whole 64-bit words. It is the exported function
 * for what the macro tide_acquire does inlined. */
TIDE_API void *tide_acquire_type(tide_pool *pool, tide_type type, size_t n);

/* Acquires, then sets every element: to 0; to 1 (numeric built-in types and bits only); or to a
 * copy of *value, which is one element (for TIDE_BIT, a bool). */
TIDE_API void *tide_zeros_type(tide_pool *pool, tide_type type, size_t n);
TIDE_API void *tide_ones_type(tide_pool *pool, tide_type type, size_t n);
TIDE_API void *tide_fill_type(tide_pool *pool, tide_type type, size_t n, const void *value);

/* The same for the macros below, with the place in the source that calls, for messages. */
TIDE_API void *tide_zeros_at(tide_pool *pool, tide_type type, size_t n, TIDE_PLACE);
TIDE_API void *tide_ones_at(tide_pool *pool, tide_type type, size_t n, TIDE_PLACE);
TIDE_API void *tide_fill_at(tide_pool *pool, tide_type type, size_t n, const void *value,
                            TIDE_PLACE);

TIDE_END_DECLS

/* T *tide_acquire(tide_pool *pool, T, size_t n): n elements of any complete C type T,
 * uninitialised. It runs about ten instructions, two of them tests, once the slot is there and
 * large enough. */
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

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

/* Makes a live array of the pool n elements long. Its elements stay as they were, the new ones are
 * uninitialised; an n that is less than its length changes nothing. The array belongs to the scope
 * that acquired it, as before.
 *
 * It stays where it is while its slot has room, which it has in a loop from the second round on;
 * else it moves to memory a quarter larger at least, and its old address is invalid: use the
 * result. The new memory is there before the old is given back. On a device the copy is queued in
 * the pool's stream, after what declared streams do. At check level 2 a guarded array always moves,
 * and its old address faults. The youngest arrays of a type are found first.
 *
 * NULL with a message, the array unchanged: TIDE_ERROR_STALE if it is no live array of this type
 * and pool (views and exported arrays are none), and all errors of an acquire. N-D arrays:
 * tide_array_grow. */
TIDE_API void *tide_grow_type(tide_pool *pool, tide_type type, void *array, size_t n);

TIDE_END_DECLS

/* T *tide_acquire(tide_pool *pool, T, size_t n): n elements of any complete C type T,
 * uninitialised. It runs about ten instructions, two of them tests, once the slot is there and
 * large enough. */
#define tide_acquire(pool, T, ...) TIDE_ACQUIRE_BY(tide_acquire_inline, pool, T, __VA_ARGS__)
#define tide_zeros(pool, T, ...)   TIDE_ACQUIRE_BY(tide_zeros_at, pool, T, __VA_ARGS__)
#define tide_ones(pool, T, ...)    TIDE_ACQUIRE_BY(tide_ones_at, pool, T, __VA_ARGS__)

/* T *tide_grow(pool, T, T *array, size_t n): the array, now n elements long; see tide_grow_type. A
 * type that is not built in is named as it was in the acquire. */
#define tide_grow(pool, T, array, ...) \
    TIDE_GROW_BY(TIDE_UNIQUE(tide_grown_), pool, T, array, __VA_ARGS__)

/* T *tide_fill(pool, T, n, value): every element a copy of value, converted to T. */
#define tide_fill(pool, T, n, ...) TIDE_FILL_BY(TIDE_UNIQUE(tide_value_), pool, T, n, __VA_ARGS__)

#endif

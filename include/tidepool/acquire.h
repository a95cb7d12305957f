/* SPDX-License-Identifier: MIT */
/* Acquire: take the next slot of a type; the slot grows if it is too small.
 *
 * The result is memory for n elements, aligned to 64 bytes or to the type's larger alignment, with
 * what its last user left (at check level 0). The pool owns it. It stays where it is until the
 * enclosing scope or mark is rewound; outside of any, until tide_pool_reset. n = 0 gives a valid
 * pointer of its own. NULL with a message that names call, value and limit, nothing acquired:
 * TIDE_ERROR_SIZE (the bytes overflow, as of a negative count), TIDE_ERROR_MEMORY, TIDE_ERROR_LIMIT,
 * TIDE_ERROR_TYPE, TIDE_ERROR_THREAD, TIDE_ERROR_ARGUMENT (NULL pool), TIDE_ERROR_DEVICE (also: memory
 * so aligned is not to be had there, as above 128 bytes of OpenCL's shared virtual memory).
 *
 * Each element type has its own row of slots: the idea is AdaptiveArrayPools.jl's. */
#ifndef TIDEPOOL_ACQUIRE_H
#define TIDEPOOL_ACQUIRE_H

#include <tidepool/inline/acquire.h>
#include <tidepool/pool.h>

TIDE_BEGIN_DECLS

/* tide_acquire as a function, for a type that is known at run time only; any type. Of TIDE_BIT n
 * counts bits, and the memory is whole 64-bit words. */
TIDE_API void *tide_acquire_type(tide_pool *pool, tide_type type, size_t n);

/* Makes a live array of the pool n elements long: its elements stay, new ones are uninitialised. An n
 * below its length changes nothing. It belongs to the scope that acquired it, as before.
 *
 * Where its slot has no room it moves to memory a quarter larger at least, and its old address is
 * invalid: use the result. On a device the copy is queued in the pool's stream, after what declared
 * streams do. At check level 2 a guarded array always moves. The youngest arrays are found first.
 *
 * NULL with a message, the array unchanged: TIDE_ERROR_STALE if it is no live array of this type and
 * pool (views and exported arrays are none), and the errors of an acquire. N-D: tide_array_grow. */
TIDE_API void *tide_grow_type(tide_pool *pool, tide_type type, void *array, size_t n);

TIDE_END_DECLS

/* T *tide_acquire(tide_pool *pool, T, size_t n): n elements of any complete C type T, uninitialised;
 * about ten instructions once the slot is there. tide_zeros, tide_ones: all 0, all 1. */
#define tide_acquire(pool, T, ...) TIDE_ACQUIRE_BY(tide_acquire_inline, pool, T, __VA_ARGS__)
#define tide_zeros(pool, T, ...)   TIDE_ACQUIRE_BY(tide_zeros_at, pool, T, __VA_ARGS__)
#define tide_ones(pool, T, ...)    TIDE_ACQUIRE_BY(tide_ones_at, pool, T, __VA_ARGS__)

/* T *tide_grow(pool, T, T *array, size_t n): tide_grow_type. T is named as it was in the acquire. */
#define tide_grow(pool, T, array, ...) \
    TIDE_GROW_BY(TIDE_UNIQUE(tide_grown_), pool, T, array, __VA_ARGS__)

/* T *tide_fill(pool, T, n, value): every element a copy of value, converted to T. */
#define tide_fill(pool, T, n, ...) TIDE_FILL_BY(TIDE_UNIQUE(tide_value_), pool, T, n, __VA_ARGS__)

#endif

/* SPDX-License-Identifier: MIT */
/* N-D temporaries: a header over a slot. The pool owns both.
 *
 * A header starts with a DLTensor, so the address of an array can be passed to any code that takes
 * a DLTensor. Header and memory live until the scope ends. Each slot keeps one header for each rank
 * it was used with, and the last few shapes (setting `array_ways`) with their strides. A shape that
 * the slot has seen before is neither allocated nor computed again. Caching N-D headers by slot is
 * an idea of AdaptiveArrayPools.jl.
 *
 * A call that fails returns NULL with a message and changes nothing. The errors: TIDE_ERROR_SIZE
 * for a negative extent, a product that overflows, or a rank not within 0 to TIDE_NDIM_MAX; and all
 * errors of an acquire (tidepool/acquire.h). */
#ifndef TIDEPOOL_ARRAY_H
#define TIDEPOOL_ARRAY_H

#include <tidepool/inline/array.h>
#include <tidepool/pool.h>

TIDE_BEGIN_DECLS

/* Acquires an array of `ndim` dimensions, row-major (the last index runs fastest), uninitialised.
 * The extents in `shape` count elements; they are read, not kept. Any type but TIDE_BIT, for which
 * see tidepool/bits.h. */
#define tide_array_acquire(pool, type, ndim, shape) \
    tide_array_acquire_inline((pool), (type), TIDE_ROW_MAJOR, (ndim), (shape), TIDE_HERE)

/* The same in a given order. In TIDE_COLUMN_MAJOR the first index runs fastest. */
#define tide_array_acquire_order(pool, type, order, ndim, shape) \
    tide_array_acquire_inline((pool), (type), (order), (ndim), (shape), TIDE_HERE)

/* Acquires a row-major array, then sets every element: to 0; to 1 (numeric built-in types only); or
 * to a copy of *value, which is one element. */
TIDE_API tide_array *tide_array_zeros(tide_pool *pool, tide_type type, int ndim,
                                      const int64_t *shape);
TIDE_API tide_array *tide_array_ones(tide_pool *pool, tide_type type, int ndim,
                                     const int64_t *shape);
TIDE_API tide_array *tide_array_fill(tide_pool *pool, tide_type type, int ndim,
                                     const int64_t *shape, const void *value);

/* Acquires an array like another one, uninitialised. `type` TIDE_NO_TYPE means the type of `like`.
 * `shape` NULL means its shape; `ndim` is then not read. The order is that of `like`, if it has
 * one. */
TIDE_API tide_array *tide_array_similar(tide_pool *pool, const tide_array *like, tide_type type,
                                        int ndim, const int64_t *shape);

/* A part of an array, which shares its memory. Along dimension d it has extent[d] elements:
 * start[d], start[d] + step[d] and so on. `step` NULL: all steps are 1. A step may be negative or
 * 0. TIDE_ERROR_SIZE if an element would lie outside the array. The header lives until the scope
 * ends. */
TIDE_API tide_array *tide_array_view(tide_pool *pool, const tide_array *array, const int64_t *start,
                                     const int64_t *extent, const int64_t *step);

/* The same elements in another shape, in the array's order. The result shares the array's memory.
 * The array must be contiguous in its order, and the number of elements must stay the same. */
TIDE_API tide_array *tide_array_reshape(tide_pool *pool, const tide_array *array, int ndim,
                                        const int64_t *shape);

/* Do the elements lie in this order, without gaps? The stride of an extent of 1 does not matter.
 * True for an array of no elements. */
TIDE_API bool tide_array_contiguous(const tide_array *array, tide_order order);

/* Address of element 0. */
TIDE_INLINE void *tide_array_data(const tide_array *array)
{
    return (char *)array->tensor.data + array->tensor.byte_offset;
}

/* Exports the array to a DLPack consumer, without a copy. The memory leaves the pool. It lives
 * until the deleter has run and the array's own scope has ended, whichever is later. If the
 * consumer is done when the slot is needed next, the pool takes the memory back; then an export
 * allocates nothing but its small descriptor.
 *
 * The consumer must call the deleter exactly once. It may do this on any thread, even after the
 * pool is gone. On a device it must do this after the work that it queued on the array is over, or
 * is ordered before the pool's stream.
 *
 * NULL with a message for a type that DLPack cannot name (registered types), an array that is no
 * longer live (TIDE_ERROR_STALE), and an array that was imported or is guarded (check level 2;
 * TIDE_ERROR_STATE). */
TIDE_API tide_dl_managed *tide_array_export(tide_pool *pool, const tide_array *array);

/* Imports a producer's tensor for the rest of the scope, without a copy. The call owns the tensor
 * from now on, also when it fails: it then runs the deleter at once. Otherwise the deleter runs
 * when the scope ends. On a device it runs once the pool's stream has passed that point, and no
 * thread waits for it. The tensor's flags are not kept: do not write to memory that the producer
 * calls read-only. NULL with a message for another major version of DLPack, memory that is not on
 * the pool's device, and a type or rank that Tidepool does not have. */
TIDE_API tide_array *tide_array_import(tide_pool *pool, tide_dl_managed *managed);

/* Counts of a pool's array acquires. `recent`: the slot's last header had the shape. `cached`:
 * another shape that the slot keeps was right. `computed`: the shape was new to the slot. */
typedef struct tide_array_statistics {
    uint64_t recent, cached, computed;
    uint64_t headers; /* allocated since the pool was created */
} tide_array_statistics;

TIDE_API tide_status tide_array_stats(const tide_pool *pool, tide_array_statistics *out);

TIDE_END_DECLS

#endif

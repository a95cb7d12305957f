/* SPDX-License-Identifier: MIT */
/* N-D temporaries: a pool-owned header over a slot.
 *
 * A header starts with a DLTensor, so an array is handed to whatever speaks DLPack by its
 * address. Header and memory both live until the scope ends. Each slot keeps one header for each
 * rank it was used with, and the last few shapes (setting `array_ways`) with their strides, so a
 * shape seen before is neither allocated nor computed again. The idea of caching N-D headers by
 * slot is AdaptiveArrayPools.jl's.
 *
 * Failing calls return NULL with a message and change nothing: TIDE_ERROR_SIZE for a negative
 * extent, a product that overflows or a rank not within 0 to TIDE_NDIM_MAX, and everything that
 * acquire can say. */
#ifndef TIDEPOOL_ARRAY_H
#define TIDEPOOL_ARRAY_H

#include <tidepool/inline/array.h>
#include <tidepool/pool.h>

TIDE_BEGIN_DECLS

/* An array of `ndim` dimensions, row-major (the last index runs fastest), uninitialised. Every
 * type but TIDE_BIT (see tidepool/bits.h). `shape` is read, not kept. */
#define tide_array_acquire(pool, type, ndim, shape) \
    tide_array_acquire_inline((pool), (type), TIDE_ROW_MAJOR, (ndim), (shape), TIDE_HERE)

/* The same with the order named; TIDE_COLUMN_MAJOR lets the first index run fastest. */
#define tide_array_acquire_order(pool, type, order, ndim, shape) \
    tide_array_acquire_inline((pool), (type), (order), (ndim), (shape), TIDE_HERE)

/* Acquire, then every element 0, 1 (numeric built-in types only), or a copy of *value. */
TIDE_API tide_array *tide_array_zeros(tide_pool *pool, tide_type type, int ndim,
                                      const int64_t *shape);
TIDE_API tide_array *tide_array_ones(tide_pool *pool, tide_type type, int ndim,
                                     const int64_t *shape);
TIDE_API tide_array *tide_array_fill(tide_pool *pool, tide_type type, int ndim,
                                     const int64_t *shape, const void *value);

/* An uninitialised array like another one: its type unless `type` is given (not TIDE_NO_TYPE),
 * its shape unless `shape` is given (not NULL; `ndim` then counts), its order if it has one. */
TIDE_API tide_array *tide_array_similar(tide_pool *pool, const tide_array *like, tide_type type,
                                        int ndim, const int64_t *shape);

/* A part of an array, sharing its memory: along dimension d the elements start[d],
 * start[d] + step[d], …, extent[d] of them. step NULL: all 1; a step may be negative or 0.
 * TIDE_ERROR_SIZE when an element would lie outside. The header lives until the scope ends. */
TIDE_API tide_array *tide_array_view(tide_pool *pool, const tide_array *array, const int64_t *start,
                                     const int64_t *extent, const int64_t *step);

/* The same elements under another shape, sharing memory, in the array's order. The array must be
 * contiguous in its order and the number of elements the same. */
TIDE_API tide_array *tide_array_reshape(tide_pool *pool, const tide_array *array, int ndim,
                                        const int64_t *shape);

/* Do the elements lie without gaps in this order? The stride of an extent of 1 does not matter. For
 * an array of no elements the answer is yes. */
TIDE_API bool tide_array_contiguous(const tide_array *array, tide_order order);

/* Address of element 0. */
TIDE_INLINE void *tide_array_data(const tide_array *array)
{
    return (char *)array->tensor.data + array->tensor.byte_offset;
}

/* Hands the array to a DLPack consumer, without a copy. The memory is pinned: it leaves the pool
 * and lives until both the deleter has run (on any thread, even after the pool is gone) and the
 * array's own scope has ended; the pool takes it back when the slot is next needed and the
 * consumer is done, so a steady exchange allocates only its small descriptor. Call the deleter
 * exactly once; on a device, when the work that the consumer queued on the array is over, or has been
 * ordered before the pool's stream. NULL with a message for a type DLPack cannot name (registered
 * types), an array that is no longer live (TIDE_ERROR_STALE), an imported or a guarded one
 * (TIDE_ERROR_STATE). */
TIDE_API tide_dl_managed *tide_array_export(tide_pool *pool, const tide_array *array);

/* Takes a producer's tensor for the rest of the scope, without a copy. Its deleter runs when the
 * scope ends; on a device, once the pool's stream has come past that end, and nobody waits. On
 * failure it runs at once, so the tensor is consumed either way. Its flags are not kept: do not
 * write to what the producer calls read-only. NULL with a message for another major version,
 * memory that is not on the pool's device, a type or rank we do not have. */
TIDE_API tide_array *tide_array_import(tide_pool *pool, tide_dl_managed *managed);

/* How often array headers of this pool were found ready: `recent` by the inlined path and its
 * twin, `cached` among a slot's other shapes; and how often a shape had to be computed. */
typedef struct tide_array_statistics {
    uint64_t recent, cached, computed;
    uint64_t headers; /* allocated since the pool was created */
} tide_array_statistics;

TIDE_API tide_status tide_array_stats(const tide_pool *pool, tide_array_statistics *out);

TIDE_END_DECLS

#endif

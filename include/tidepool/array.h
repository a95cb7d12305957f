/* SPDX-License-Identifier: MIT */
/* N-D temporaries: a header over a slot. The pool owns both, until the scope ends.
 *
 * A header starts with a DLTensor, so the address of an array can be passed to any code that takes
 * one. Each slot keeps one header for each rank it was used with: in a loop none is allocated. That is
 * an idea of AdaptiveArrayPools.jl.
 *
 * NULL with a message, nothing changed: TIDE_ERROR_SIZE for a negative extent, a product that
 * overflows, or a rank not within 0 to TIDE_NDIM_MAX; and all errors of an acquire. */
#ifndef TIDEPOOL_ARRAY_H
#define TIDEPOOL_ARRAY_H

#include <tidepool/inline/array.h>
#include <tidepool/pool.h>

TIDE_BEGIN_DECLS

/* Acquires an array of `ndim` dimensions, row-major (the last index runs fastest), uninitialised. The
 * extents in `shape` count elements; they are read, not kept. Any type (TIDE_BIT: tidepool/bits.h). */
#define tide_array_acquire(pool, type, ndim, ...) \
    tide_array_acquire_inline((pool), (type), TIDE_ROW_MAJOR, (ndim), (__VA_ARGS__), TIDE_HERE)

/* The same in a given order. In TIDE_COLUMN_MAJOR the first index runs fastest. */
#define tide_array_acquire_order(pool, type, order, ndim, ...) \
    tide_array_acquire_inline((pool), (type), (order), (ndim), (__VA_ARGS__), TIDE_HERE)

/* The same row-major, with every element 0; 1 (numeric built-in types and bits only); or a copy of
 * *value, which is one element (for TIDE_BIT, a bool). */
TIDE_API tide_array *tide_array_zeros(tide_pool *pool, tide_type type, int ndim,
                                      const int64_t *shape);
TIDE_API tide_array *tide_array_ones(tide_pool *pool, tide_type type, int ndim,
                                     const int64_t *shape);
TIDE_API tide_array *tide_array_fill(tide_pool *pool, tide_type type, int ndim,
                                     const int64_t *shape, const void *value);

/* Makes a live array longer along its slowest dimension (row-major: the first), to `extent`. Elements
 * stay at their indices; the rest is uninitialised. The header stays. The memory may move
 * (tide_grow_type): take tide_array_data anew; views of the array are invalid then. Nothing changed:
 * TIDE_ERROR_STALE: not live; TIDE_ERROR_STATE: a view, imported or exported; TIDE_ERROR_SIZE: a rank
 * of 0 or a smaller extent; and all errors of an acquire. */
TIDE_API tide_status tide_array_grow(tide_pool *pool, tide_array *array, int64_t extent);

/* A part of an array, which shares its memory: along dimension d the elements start[d], start[d] +
 * step[d] … (extent[d] of them). `step` NULL: all 1; a step may be negative or 0. TIDE_ERROR_SIZE if one
 * lies outside the array, and for bits also if a step is negative or the first begins no word. */
TIDE_API tide_array *tide_array_view(tide_pool *pool, const tide_array *array, const int64_t *start,
                                     const int64_t *extent, const int64_t *step);

/* The same elements and memory in another shape, in the array's order, in which they lie without gaps.
 * Their number stays. */
TIDE_API tide_array *tide_array_reshape(tide_pool *pool, const tide_array *array, int ndim,
                                        const int64_t *shape);

/* Do the elements lie in this order, without gaps? (Of an extent of 1 the stride does not matter.) */
TIDE_API bool tide_array_contiguous(const tide_array *array, tide_order order);

/* Address of element 0. */
TIDE_INLINE void *tide_array_data(const tide_array *array)
{
    return (char *)array->tensor.data + array->tensor.byte_offset;
}

/* Exports the array to a DLPack consumer without a copy. The memory leaves the pool and lives until
 * both the deleter has run and the array's scope has ended. If the consumer is done when the slot is
 * needed next, the pool takes it back. The consumer calls the deleter once, on any thread, even after
 * the pool is gone; on a device when its work on the array is over, or, while the array's scope is
 * open, ordered before the pool's stream. NULL with a message: TIDE_ERROR_TYPE: registered types;
 * TIDE_ERROR_STALE: not live; TIDE_ERROR_STATE: imported, or guarded (check level 2). */
TIDE_API tide_dl_managed *tide_array_export(tide_pool *pool, const tide_array *array);

/* Imports a producer's tensor for the rest of the scope, without a copy. The call owns the tensor from
 * now on. The deleter runs when the scope ends, or at once if the call fails; on a device, once the
 * pool's stream has passed the scope's end, for which only the thread that destroys the pool waits.
 * (After two failed waits it runs anyway; once the process exits it does not, unless the device was
 * lost before.) It returns, and may use any pool but this one (TIDE_ERROR_STATE). Flags are not kept:
 * do not write to what is read-only. NULL with a message: another major version of DLPack, memory that
 * is not on the pool's device, a type or rank that Tidepool does not have. */
TIDE_API tide_array *tide_array_import(tide_pool *pool, tide_dl_managed *managed);

/* Memory from outside, without a DLPack manager. The shape and strides are copied. */
typedef struct tide_array_source {
    void *data; /* element 0, on the pool's device, aligned for the type; NULL: of no elements */
    tide_type type;
    int ndim;
    const int64_t *shape;                       /* extents, in elements                       */
    const int64_t *strides;                     /* in elements (bits for TIDE_BIT), of any sign,
                                                   for bits 0 or more;
                                                   NULL: row-major, without gaps              */
    void (*deleter)(void *data, void *context); /* NULL: nothing is to be done at the end     */
    void *context;                              /* given to the deleter                       */
    TIDE_GROWTH;
} tide_array_source;

/* Makes an array of such memory for the rest of the scope, without a copy: of a mapped file, a codec's
 * buffer. Any type. The call owns the memory, and its deleter runs once, as tide_array_import says. It
 * has views and reshapes; it does not grow and is not exported. NULL with a message:
 * TIDE_ERROR_ARGUMENT for NULLs or misaligned memory, and all errors of an acquire. */
TIDE_API tide_array *tide_array_wrap(tide_pool *pool, const tide_array_source *source);

TIDE_END_DECLS

#endif

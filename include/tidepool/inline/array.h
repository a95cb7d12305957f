/* SPDX-License-Identifier: MIT */
/* The inlined acquire of an N-D array: the slot's last header, if its shape is the one asked for. */
#ifndef TIDEPOOL_INLINE_ARRAY_H
#define TIDEPOOL_INLINE_ARRAY_H

#include <tidepool/dlpack.h>
#include <tidepool/inline/layout.h>

TIDE_BEGIN_DECLS

#define TIDE_NDIM_MOST 8

typedef enum tide_order { TIDE_ROW_MAJOR = 0, TIDE_COLUMN_MAJOR = 1 } tide_order;

typedef struct tide_array {
    tide_dl_tensor tensor; /* first: an array's address is a DLTensor's */
    tide_type type;
    uint32_t order;        /* tide_order the strides follow                       */
    size_t length;         /* elements                                            */
    uint64_t hits;         /* times the inlined path found this header ready      */
    const struct tide_array *base; /* whose memory it is; NULL: its own slot's    */
    tide_slot *slot;       /* where it lives; NULL for views and imported arrays  */
    struct tide_array_cache *cache;
} tide_array;

/* Every other case; The place is where it was asked for, if known. The exported twin. */
TIDE_API TIDE_COLD tide_array *tide_acquire_array_slow(tide_pool *pool, tide_type type,
                                                       tide_order order, int ndim,
                                                       const int64_t *shape,
                                                       TIDE_PLACE);

TIDE_INLINE bool tide_same_shape(const int64_t *left, const int64_t *right, int ndim)
{
    bool same = true;
    for (int i = 0; i < ndim; i++)
        same = same && left[i] == right[i];
    return same;
}

TIDE_INLINE tide_array *tide_acquire_array_inline(tide_pool *pool, tide_type type,
                                                  tide_order order, int ndim,
                                                  const int64_t *shape, TIDE_PLACE)
{
    if (TIDE_LIKELY(pool != NULL && type < TIDE_TYPE_LIMIT && shape != NULL)) {
        tide_shelf *shelf = &pool->shelves[type];
        if (TIDE_LIKELY(shelf->saved_at == pool->tag)) {
            tide_slot *slot = shelf->next;
            tide_array *array = slot->array;
            if (TIDE_LIKELY(array != NULL && array->tensor.ndim == ndim &&
                            array->order == (uint32_t)order &&
                            tide_same_shape(array->tensor.shape, shape, ndim) &&
                            array->length < slot->limit)) {
                shelf->next = slot + 1;
                array->tensor.data = slot->data;
                array->hits++;
                return array;
            }
        }
    }
    return tide_acquire_array_slow(pool, type, order, ndim, shape, TIDE_PASS_PLACE);
}

TIDE_END_DECLS

#endif

/* SPDX-License-Identifier: MIT */
/* The inlined acquire of an N-D array: it takes the slot's last header if its shape is right. */
#ifndef TIDEPOOL_INLINE_ARRAY_H
#define TIDEPOOL_INLINE_ARRAY_H

#include <tidepool/dlpack.h>
#include <tidepool/inline/layout.h>

TIDE_BEGIN_DECLS

#define TIDE_NDIM_MAX 8

typedef enum tide_order { TIDE_ROW_MAJOR = 0, TIDE_COLUMN_MAJOR = 1 } tide_order;

typedef struct tide_array {
    tide_dl_tensor tensor; /* comes first, so an array's address is a DLTensor's. In the header
                              that a slot used last, cold code keeps `data` equal to the slot's */
    tide_type type;
    uint32_t order;                /* the tide_order of the strides                       */
    uint64_t form;                 /* rank and order in one word: tide_array_form         */
    size_t length;                 /* elements                                            */
    const struct tide_array *base; /* a view's: the array whose memory it shares; or NULL */
    tide_slot *slot;               /* its memory's; NULL for views and imported arrays    */
    struct tide_array_cache *cache;
} tide_array;

/* Every case that the inlined path does not handle; also an exported function for all cases. The
 * place is where the source asks for the array, if that is known. */
TIDE_API TIDE_COLD tide_array *tide_array_acquire_slow(tide_pool *pool, tide_type type,
                                                       tide_order order, int ndim,
                                                       const int64_t *shape, TIDE_PLACE);

/* Compares 0 to TIDE_NDIM_MAX extents without a loop. So a constant rank costs only its own
 * comparisons, and a rank that is known only at run time needs no counter. (The warning is off
 * because GCC, where it sees a short shape, warns of comparisons that never happen.) */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Warray-bounds"
TIDE_INLINE bool tide_same_shape(const int64_t *left, const int64_t *right, int ndim)
{
#define TIDE_STEP(i)         \
    if (ndim == (i))         \
        return true;         \
    if (left[i] != right[i]) \
    return false
    TIDE_STEP(0);
    TIDE_STEP(1);
    TIDE_STEP(2);
    TIDE_STEP(3);
    TIDE_STEP(4);
    TIDE_STEP(5);
    TIDE_STEP(6);
    TIDE_STEP(7);
#undef TIDE_STEP
    return true;
}
#pragma GCC diagnostic pop

/* Rank and order in one word, which is never 0. For a constant rank it fits an instruction. */
TIDE_INLINE uint64_t tide_array_form(tide_order order, int ndim)
{
    return ((uint64_t)(uint32_t)order << 33) + ((uint64_t)(uint32_t)ndim << 1) + 1;
}

/* Does the slot's last header have this shape, and does its array fit? */
TIDE_INLINE bool tide_slot_ready(const tide_slot *slot, tide_order order, int ndim,
                                 const int64_t *shape)
{
    if (TIDE_UNLIKELY(slot->form != tide_array_form(order, ndim)))
        return false;
    TIDE_ONE_BY_ONE();
    return TIDE_LIKELY(tide_same_shape(slot->array->tensor.shape, shape, ndim));
}

TIDE_INLINE tide_array *tide_array_acquire_inline(tide_pool *pool, tide_type type, tide_order order,
                                                  int ndim, const int64_t *shape, TIDE_PLACE)
{
    if (TIDE_LIKELY(pool != NULL && type < TIDE_TYPE_LIMIT && shape != NULL)) {
        tide_shelf *shelf = &pool->shelves[type];
        if (TIDE_LIKELY(tide_type_saved(pool, type))) {
            tide_slot *slot = shelf->next;
            tide_array *array = slot->array;
            if (TIDE_LIKELY(tide_slot_ready(slot, order, ndim, shape))) {
                shelf->next = slot + 1;
                return array;
            }
        }
    }
    return tide_array_acquire_slow(pool, type, order, ndim, shape, TIDE_PASS_PLACE);
}

TIDE_END_DECLS

#endif

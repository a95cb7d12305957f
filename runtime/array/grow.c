/* SPDX-License-Identifier: MIT */
/* Arrays whose length was not known when they were acquired: made longer while they are live. */
#include <string.h>

#include <tidepool/acquire.h>

#include "runtime/array/array.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/check/report.h"
#include "runtime/pool/row.h"

/* The live slot that has this memory, or NULL. Who makes an array longer mostly works on the one
 * acquired last, so the youngest is looked at first. */
static tide_slot *grow_find_slot(const tide_row *row, const void *data)
{
    if (row->shelf == NULL || data == NULL)
        return NULL;
    tide_assert(tide_row_live(row) <= row->count);
    for (tide_slot *slot = row->shelf->next; slot-- > row->slots;)
        if (slot->data == data)
            return slot;
    return NULL;
}

/* Grows the live array of the slot, or sets the message. */
static tide_status grow_slot(tide_pool *pool, tide_row *row, tide_slot *slot, size_t n,
                             tide_place caller, const char *call)
{
    tide_status status = tide_row_grow(pool, row, slot, n, caller, call);
    tide_assert_valid(pool);
    return status;
}

/* ---- raw arrays ------------------------------------------------------------------------- */

void *tide_grow_type(tide_pool *pool, tide_type type, void *array, size_t n)
{
    const char *call = "tide_grow";
    if (tide_pool_use_or_report(pool, call) != TIDE_OK)
        return NULL;
    if (tide_type_facts_of(type) == NULL) {
        tide_type_refuse(type, call);
        return NULL;
    }
    tide_row *row = &pool->core->rows.by_type[type];
    tide_slot *slot = grow_find_slot(row, array);
    if (slot == NULL) {
        tide_misuse(pool,
                    tide_fail(TIDE_ERROR_STALE, call, "%p is no live array of %s in pool '%s'",
                              array, tide_type_facts_of(type)->name, pool->core->name));
        return NULL;
    }
    tide_status status = grow_slot(pool, row, slot, n, (tide_place){TIDE_CALLER}, call);
    tide_assert(status != TIDE_OK || slot->data != NULL);
    return status == TIDE_OK ? slot->data : NULL;
}

/* ---- N-D arrays ------------------------------------------------------------------------- */

/* The shape that the array is to have, and how many elements that is. */
static tide_status grow_shape(const tide_array *array, int64_t extent, int64_t *shape,
                              size_t *length, const char *call)
{
    int ndim = array->tensor.ndim;
    if (ndim == 0)
        return tide_fail(TIDE_ERROR_SIZE, call, "an array of no dimensions has one element");
    int slowest = array->order == TIDE_ROW_MAJOR ? 0 : ndim - 1;
    tide_assert(ndim <= TIDE_NDIM_MAX);
    memcpy(shape, array->tensor.shape, (size_t)ndim * sizeof *shape);
    if (extent < shape[slowest])
        return tide_fail(TIDE_ERROR_SIZE, call, "extent %d is %lld, not to become %lld", slowest,
                         (long long)shape[slowest], (long long)extent);
    shape[slowest] = extent;
    return tide_shape_length(ndim, shape, length, call);
}

/* The slot of an array that can grow: live, with memory of its own in the pool. */
static tide_status grow_slot_of(tide_pool *pool, const tide_array *array, tide_slot **slot,
                                const char *call)
{
    if (array == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the array is NULL");
    if (tide_loose_live(pool, array))
        return tide_fail(TIDE_ERROR_STATE, call, "a view or an imported array does not grow");
    *slot = tide_array_live_slot(pool, array);
    if (*slot == NULL)
        return tide_fail(TIDE_ERROR_STALE, call, "the array is not live in pool '%s'",
                         pool->core->name);
    if ((*slot)->data == NULL)
        return tide_fail(TIDE_ERROR_STATE, call, "an exported array does not grow");
    return TIDE_OK;
}

tide_status tide_array_grow(tide_pool *pool, tide_array *array, int64_t extent)
{
    const char *call = "tide_array_grow";
    int64_t shape[TIDE_NDIM_MAX];
    size_t length = 0;
    tide_slot *slot = NULL;
    TIDE_FORWARD(tide_pool_use(pool, call));
    TIDE_FORWARD(grow_slot_of(pool, array, &slot, call));
    TIDE_FORWARD(grow_shape(array, extent, shape, &length, call));
    tide_row *row = &pool->core->rows.by_type[array->type];
    tide_assert(slot >= row->slots && slot < row->shelf->next);
    TIDE_FORWARD(grow_slot(pool, row, slot, length, (tide_place){TIDE_CALLER}, call));
    tide_array_set_shape(slot, array, shape, length);
    return TIDE_OK;
}

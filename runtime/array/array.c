/* SPDX-License-Identifier: MIT */
/* Array headers of slots: one for each rank that a slot was used with.
 *
 *   slot.array ──► header of the last rank ──► cache ──► headers by rank
 *
 * A header keeps its address for as long as its slot exists; what changes is its shape. */
#include "runtime/array/array.h"

#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/pool/header.h"
#include "runtime/pool/level.h"
#include "runtime/pool/press.h"
#include "runtime/pool/row.h"

static const char call[] = "tide_array_acquire";

/* ---- shapes ----------------------------------------------------------------------------- */

tide_status tide_shape_length(int ndim, const int64_t *shape, size_t *length, const char *caller)
{
    if (ndim < 0 || ndim > TIDE_NDIM_MAX)
        return tide_fail(TIDE_ERROR_SIZE, caller, "%d dimensions, limit %d", ndim, TIDE_NDIM_MAX);
    if (ndim > 0 && shape == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, caller, "the shape is NULL");
    tide_assert(length != NULL);
    size_t product = 1, largest = 1;
    for (int i = 0; i < ndim; i++) {
        if (shape[i] < 0)
            return tide_fail(TIDE_ERROR_SIZE, caller, "extent %d is %lld", i, (long long)shape[i]);
        /* Zero extents must not hide an overflow of the others: strides would overflow. */
        size_t extent = shape[i] > 0 ? (size_t)shape[i] : 1;
        if (__builtin_mul_overflow(largest, extent, &largest) || largest > INT64_MAX)
            return tide_fail(TIDE_ERROR_SIZE, caller,
                             "the product of %d extents overflows at extent %d, %lld", ndim, i,
                             (long long)shape[i]);
        product *= (size_t)shape[i];
    }
    tide_assert(product <= largest && largest <= INT64_MAX);
    *length = product;
    return TIDE_OK;
}

void tide_shape_strides(int ndim, const int64_t *shape, tide_order order, int64_t *strides)
{
    int64_t stride = 1;
    tide_assert(ndim >= 0 && ndim <= TIDE_NDIM_MAX);
    for (int i = 0; i < ndim; i++) {
        int d = order == TIDE_ROW_MAJOR ? ndim - 1 - i : i;
        strides[d] = stride;
        stride *= shape[d] > 0 ? shape[d] : 1;
        tide_assert(stride > 0); /* tide_shape_length has found that it does not overflow */
    }
}

bool tide_dl_type_of(tide_type type, tide_dl_type *out)
{
    static const uint8_t codes[TIDE_BUILTIN_COUNT + 1] = {
        [TIDE_I8] = TIDE_DL_INT,      [TIDE_I16] = TIDE_DL_INT,      [TIDE_I32] = TIDE_DL_INT,
        [TIDE_I64] = TIDE_DL_INT,     [TIDE_U8] = TIDE_DL_UINT,      [TIDE_U16] = TIDE_DL_UINT,
        [TIDE_U32] = TIDE_DL_UINT,    [TIDE_U64] = TIDE_DL_UINT,     [TIDE_F16] = TIDE_DL_FLOAT,
        [TIDE_BF16] = TIDE_DL_BFLOAT, [TIDE_F32] = TIDE_DL_FLOAT,    [TIDE_F64] = TIDE_DL_FLOAT,
        [TIDE_C64] = TIDE_DL_COMPLEX, [TIDE_C128] = TIDE_DL_COMPLEX, [TIDE_BOOL] = TIDE_DL_BOOL};
    _Static_assert(TIDE_NO_TYPE == 0, "built-in types are numbered from 1 to their count");
    if (type == TIDE_BIT) {
        *out = (tide_dl_type){TIDE_DL_UINT, 1, 1}; /* but no consumer knows of packed bits */
        return false;
    }
    if (type == TIDE_NO_TYPE || type > TIDE_BUILTIN_COUNT) {
        *out = (tide_dl_type){TIDE_DL_OPAQUE, 8, 1};
        return false;
    }
    tide_assert(tide_type_facts_of(type)->size - 1 < UINT8_MAX / 8); /* which also refuses 0 */
    *out = (tide_dl_type){codes[type], (uint8_t)(tide_type_facts_of(type)->size * 8), 1};
    return true;
}

/* ---- the cache of a slot ---------------------------------------------------------------- */

void tide_header_set_up(tide_header *header, const tide_pool *pool, tide_type type, int ndim)
{
    tide_dl_tensor *tensor = &header->array.tensor;
    tide_assert(type != TIDE_NO_TYPE && ndim >= 0 && ndim <= TIDE_NDIM_MAX);
    *header = (tide_header){.array = {.type = type}};
    tensor->ndim = ndim;
    tensor->shape = header->shape;
    tensor->strides = header->strides;
    tensor->device = pool->core->device->dl;
    tide_dl_type_of(type, &tensor->dtype);
}

static struct tide_array_cache *array_make_cache(void)
{
    struct tide_array_cache *cache = tide_os_resize(NULL, sizeof *cache);
    if (cache != NULL)
        *cache = (struct tide_array_cache){0};
    return cache;
}

/* The slot's header of this rank, made if need be. NULL when memory is short; what was made
 * before that stays for the next attempt. */
static tide_header *array_header_of(tide_pool *pool, tide_slot *slot, tide_type type, int ndim)
{
    struct tide_array_cache *cache = slot->array != NULL ? slot->array->cache : array_make_cache();
    if (cache == NULL)
        return NULL;
    tide_assert(ndim >= 0 && ndim <= TIDE_NDIM_MAX);
    tide_header *header = cache->headers[ndim];
    if (header != NULL)
        return header;
    header = cache->headers[ndim] = tide_os_resize(NULL, sizeof *header);
    if (header != NULL) {
        tide_header_set_up(header, pool, type, ndim);
        header->array.cache = cache;
    } else if (slot->array == NULL) {
        tide_os_free(cache); /* nothing refers to it yet */
    }
    return header;
}

/* Makes the header that of an array of this shape in the slot. (The shape may be the header's own.) */
static void array_describe(tide_header *header, tide_slot *slot, tide_order order,
                           const int64_t *shape, size_t length)
{
    tide_array *array = &header->array;
    int ndim = array->tensor.ndim;
    tide_assert(slot->data != NULL && (slot->array == NULL || slot->array->cache == array->cache));
    tide_assert(array->base == NULL && array->cache->headers[ndim] == header);
    for (int i = 0; i < ndim; i++)
        header->shape[i] = shape[i];
    tide_shape_strides(ndim, header->shape, order, header->strides);
    array->tensor.data = slot->data;
    array->order = order;
    array->form = tide_array_form(order, ndim);
    array->length = length;
    array->slot = slot;
    slot->array = array;
    tide_slot_admit(slot, slot->limit);
}

/* ---- acquire ---------------------------------------------------------------------------- */

/* What tide_array_acquire refuses; else the number of elements. */
static tide_status array_validate(tide_pool *pool, tide_type type, tide_order order, int ndim,
                                  const int64_t *shape, size_t *length)
{
    TIDE_FORWARD(tide_pool_use_or_report(pool, call));
    if (tide_type_facts_of(type) == NULL)
        return tide_type_refuse(type, call);
    if (order != TIDE_ROW_MAJOR && order != TIDE_COLUMN_MAJOR)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "order is %d", (int)order);
    return tide_shape_length(ndim, shape, length, call);
}

/* The header is found before the slot is taken, so that a failure takes nothing. */
static tide_array *array_acquire(tide_pool *pool, tide_row *row, tide_order order, int ndim,
                                 const int64_t *shape, size_t length, tide_place place)
{
    tide_slot *slot = tide_row_fit(pool, row, length, place, call);
    if (slot == NULL)
        return NULL;
    tide_assert(slot == row->shelf->next && tide_log_saved(pool, row->shelf));
    tide_header *header = array_header_of(pool, slot, row->type, ndim);
    if (header == NULL) {
        tide_pool_worked(pool->core);
        tide_fail(TIDE_ERROR_MEMORY, call, "no memory for a header of %d dimensions", ndim);
        return NULL;
    }
    tide_row_take(pool, row, slot, length, place);
    array_describe(header, slot, order, shape, length);
    return &header->array;
}

/* Takes a slot that is ready and has a header of this rank: the least that cold code must do. NULL,
 * nothing taken, for any other. In a pool that must see every call the log has no room. */
static tide_array *array_take_ready(tide_pool *pool, tide_type type, tide_order order, int ndim,
                                    const int64_t *shape)
{
    size_t length = 0;
    if (pool == NULL || type >= TIDE_TYPE_LIMIT || ndim < 1 || ndim > TIDE_NDIM_MAX ||
        shape == NULL || pool->shelves[type].next == NULL || pool->log_top >= tide_log_open(pool))
        return NULL;
    tide_shelf *shelf = &pool->shelves[type];
    tide_slot *slot = shelf->next;
    tide_header *header = slot->array != NULL ? slot->array->cache->headers[ndim] : NULL;
    if (header == NULL || (unsigned)order > TIDE_COLUMN_MAJOR ||
        tide_shape_length(ndim, shape, &length, call) != TIDE_OK || length >= slot->limit ||
        !tide_log_touch(pool, shelf, call))
        return NULL;
    tide_assert(!pool->core->careful && shelf->next == slot && tide_log_saved(pool, shelf));
    shelf->next = slot + 1;
    array_describe(header, slot, order, shape, length);
    return &header->array;
}

tide_array *tide_array_acquire_slow(tide_pool *pool, tide_type type, tide_order order, int ndim,
                                    const int64_t *shape, TIDE_PLACE)
{
    tide_array *ready = array_take_ready(pool, type, order, ndim, shape);
    if (TIDE_LIKELY(ready != NULL))
        return ready;
    size_t length = 0;
    if (array_validate(pool, type, order, ndim, shape, &length) != TIDE_OK)
        return NULL;
    tide_row *row = tide_row_ready(pool, type, call);
    tide_array *array = NULL;
    if (row != NULL && tide_log_touch(pool, row->shelf, call))
        array = array_acquire(pool, row, order, ndim, shape, length, (tide_place){TIDE_PASS_PLACE});
    tide_assert_valid(pool);
    return array;
}

/* ---- live arrays ------------------------------------------------------------------------ */

tide_slot *tide_array_live_slot(const tide_pool *pool, const tide_array *header)
{
    for (uint32_t i = 0; i < pool->core->rows.used_count; i++) {
        const tide_row *row = pool->core->rows.used[i];
        tide_assert(row->shelf->next >= row->slots && tide_row_live(row) <= row->count);
        for (tide_slot *slot = row->shelf->next; slot-- > row->slots;)
            if (slot->array == header)
                return slot;
    }
    return NULL;
}

void tide_array_set_shape(tide_slot *slot, tide_array *array, const int64_t *shape, size_t length)
{
    tide_assert(slot->array == array);
    array_describe(array->cache->headers[array->tensor.ndim], slot, (tide_order)array->order, shape,
                   length);
}

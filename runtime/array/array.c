/* SPDX-License-Identifier: MIT */
/* Array headers of slots: one for each rank a slot was used with, and its last few shapes.
 *
 *   slot.array ──► header of the last rank ──► cache ──► headers by rank
 *                                                  └───► ways: shape, strides, order
 *
 * A header keeps its address for as long as its slot exists; what changes is which way its shape
 * and strides point into. */
#include "runtime/array/array.h"

#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/settings.h"
#include "runtime/pool/header.h"
#include "runtime/pool/invariants.h"
#include "runtime/pool/log.h"
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

tide_dl_device tide_dl_device_of(const tide_device *device)
{
    return device->dl;
}

/* ---- the cache of a slot ---------------------------------------------------------------- */

/* With all ways empty. NULL when memory is short. */
static struct tide_array_cache *array_make_cache(void)
{
    uint32_t ways = (uint32_t)tide_constant_get(TIDE_CONSTANT_array_ways);
    tide_assert(ways > 0); /* else there is none to give up: array_make_way */
    struct tide_array_cache *cache =
        tide_os_resize(NULL, sizeof *cache + ways * sizeof cache->ways[0]);
    if (cache == NULL)
        return NULL;
    memset(cache, 0, sizeof *cache);
    cache->way_count = ways;
    for (uint32_t i = 0; i < ways; i++)
        cache->ways[i].ndim = -1;
    return cache;
}

static tide_array *array_make_header(tide_pool *pool, struct tide_array_cache *cache,
                                     tide_type type, int ndim)
{
    tide_assert(ndim >= 0 && ndim <= TIDE_NDIM_MAX && cache->headers[ndim] == NULL);
    tide_array *header = tide_os_resize(NULL, sizeof *header);
    if (header == NULL)
        return NULL;
    *header = (tide_array){.type = type, .cache = cache};
    header->tensor.device = tide_dl_device_of(pool->core->device);
    header->tensor.ndim = ndim;
    tide_dl_type_of(type, &header->tensor.dtype);
    cache->headers[ndim] = header;
    pool->core->headers.made++;
    return header;
}

/* The slot's header of this rank, made if need be. NULL when memory is short; what was made
 * before that stays for the next attempt. */
static tide_array *array_header_of(tide_pool *pool, tide_slot *slot, tide_type type, int ndim)
{
    struct tide_array_cache *cache = slot->array != NULL ? slot->array->cache : array_make_cache();
    if (cache == NULL)
        return NULL;
    tide_assert(ndim >= 0 && ndim <= TIDE_NDIM_MAX);
    tide_array *header = cache->headers[ndim];
    if (header == NULL)
        header = array_make_header(pool, cache, type, ndim);
    if (header == NULL && slot->array == NULL)
        tide_os_free(cache); /* nothing refers to it yet */
    tide_assert(header == NULL || (header->type == type && header->tensor.ndim == ndim));
    return header;
}

/* The way that remembers this shape, or NULL. */
static tide_shape_way *array_find_way(struct tide_array_cache *cache, int ndim,
                                      const int64_t *shape, tide_order order)
{
    for (uint32_t i = 0; i < cache->way_count; i++) {
        tide_shape_way *way = &cache->ways[i];
        if (way->ndim == ndim && way->order == order && tide_same_shape(way->shape, shape, ndim))
            return way;
    }
    return NULL;
}

/* Ways are given up in turn. With one shape more than there are ways, each use then computes anew.
 * Any other rule has such a case too, and this one costs nothing. */
static tide_shape_way *array_make_way(struct tide_array_cache *cache, int ndim,
                                      const int64_t *shape, tide_order order, size_t length)
{
    tide_assert(cache->turn < cache->way_count && ndim >= 0 && ndim <= TIDE_NDIM_MAX);
    tide_shape_way *way = &cache->ways[cache->turn];
    cache->turn = (cache->turn + 1) % cache->way_count;
    way->ndim = ndim;
    way->order = order;
    way->length = length;
    if (ndim > 0)
        memcpy(way->shape, shape, (size_t)ndim * sizeof *shape);
    tide_shape_strides(ndim, shape, order, way->strides);
    return way;
}

/* Makes the header that of an array in this slot, of the way's shape. */
static void array_point_header(tide_array *header, tide_shape_way *way, tide_slot *slot)
{
    tide_assert(way->ndim == header->tensor.ndim && slot->data != NULL);
    tide_assert(slot->array == NULL || slot->array->cache == header->cache);
    tide_assert(header->base == NULL); /* it is its slot's own */
    header->tensor.shape = way->shape;
    header->tensor.strides = way->strides;
    header->tensor.data = slot->data;
    header->order = way->order;
    header->form = tide_array_form(way->order, way->ndim);
    header->length = way->length;
    header->slot = slot;
    slot->array = header;
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

/* Counts that the shape was known: as the slot's last one, or as another of its ways. */
static void array_count_known(tide_pool *pool, const tide_slot *slot, tide_array *header,
                              const tide_shape_way *way)
{
    if (slot->array == header && header->tensor.shape == way->shape)
        header->hits++;
    else
        pool->core->headers.cached++;
}

/* The header is found before the slot is taken, so that a failure takes nothing. */
static tide_array *array_acquire(tide_pool *pool, tide_row *row, tide_order order, int ndim,
                                 const int64_t *shape, size_t length, tide_place place)
{
    tide_slot *slot = tide_row_fit(pool, row, length, place, call);
    if (slot == NULL)
        return NULL;
    tide_assert(slot == row->shelf->next && tide_log_saved(pool, row->shelf));
    tide_array *header = array_header_of(pool, slot, row->type, ndim);
    if (header == NULL) {
        tide_pool_worked(pool->core);
        tide_fail(TIDE_ERROR_MEMORY, call, "no memory for a header of %d dimensions", ndim);
        return NULL;
    }
    tide_shape_way *way = array_find_way(header->cache, ndim, shape, order);
    if (way != NULL) {
        array_count_known(pool, slot, header, way);
    } else {
        way = array_make_way(header->cache, ndim, shape, order, length);
        pool->core->headers.computed++;
    }
    tide_assert(way->length == length);
    tide_row_take(pool, row, slot, length, place);
    array_point_header(header, way, slot);
    return header;
}

/* Takes a slot that is ready and remembers this shape: the least that cold code must do. NULL,
 * nothing taken, for any other. In a pool that must see every call the log has no room. */
static tide_array *array_take_cached(tide_pool *pool, tide_type type, tide_order order, int ndim,
                                     const int64_t *shape)
{
    if (pool == NULL || type >= TIDE_TYPE_LIMIT || ndim < 1 || ndim > TIDE_NDIM_MAX ||
        shape == NULL || pool->shelves[type].next == NULL || pool->log_top >= tide_log_open(pool))
        return NULL;
    tide_shelf *shelf = &pool->shelves[type];
    tide_slot *slot = shelf->next;
    if (slot->array == NULL)
        return NULL;
    tide_array *header = slot->array->cache->headers[ndim];
    tide_shape_way *way = header != NULL ? array_find_way(header->cache, ndim, shape, order) : NULL;
    if (way == NULL || way->length >= slot->limit || !tide_log_touch(pool, shelf, call))
        return NULL;
    tide_assert(!pool->core->careful && shelf->next == slot && tide_log_saved(pool, shelf));
    shelf->next = slot + 1;
    array_count_known(pool, slot, header, way);
    array_point_header(header, way, slot);
    return header;
}

tide_array *tide_array_acquire_slow(tide_pool *pool, tide_type type, tide_order order, int ndim,
                                    const int64_t *shape, TIDE_PLACE)
{
    tide_array *known = array_take_cached(pool, type, order, ndim, shape);
    if (TIDE_LIKELY(known != NULL))
        return known;
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

void tide_array_set_shape(tide_slot *slot, tide_array *header, const int64_t *shape, size_t length)
{
    int ndim = header->tensor.ndim;
    tide_order order = (tide_order)header->order;
    tide_assert(slot->array == header && header->cache->headers[ndim] == header);
    tide_shape_way *way = array_find_way(header->cache, ndim, shape, order);
    if (way == NULL) /* not counted: the counts are of acquires */
        way = array_make_way(header->cache, ndim, shape, order, length);
    array_point_header(header, way, slot);
}

/* ---- counts ----------------------------------------------------------------------------- */

tide_status tide_array_stats(const tide_pool *pool, tide_array_statistics *out)
{
    TIDE_FORWARD(tide_pool_use(pool, "tide_array_stats"));
    if (out == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, "tide_array_stats", "the result is NULL");
    const tide_pool_core *core = pool->core;
    *out = (tide_array_statistics){.recent = core->headers.hits_gone,
                                   .cached = core->headers.cached,
                                   .computed = core->headers.computed,
                                   .headers = core->headers.made};
    for (uint32_t i = 0; i < core->rows.used_count; i++)
        for (uint32_t j = 0; j < core->rows.used[i]->count; j++) {
            const tide_array *last = core->rows.used[i]->slots[j].array;
            for (int rank = 0; last != NULL && rank <= TIDE_NDIM_MAX; rank++)
                if (last->cache->headers[rank] != NULL)
                    out->recent += last->cache->headers[rank]->hits;
        }
    return TIDE_OK;
}

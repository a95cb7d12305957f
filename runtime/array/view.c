/* SPDX-License-Identifier: MIT */
/* Arrays made from values and from arrays: filled, viewed, reshaped. */
#include <string.h>

#include <tidepool/acquire.h>

#include "runtime/array/array.h"
#include "runtime/array/fill.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/check/report.h"
#include "runtime/pool/core.h"

/* ---- filled ----------------------------------------------------------------------------- */

/* An array whose elements are copies of *value; value NULL: zero. */
static tide_array *view_acquire_filled(tide_pool *pool, tide_type type, int ndim,
                                       const int64_t *shape, const void *value, TIDE_PLACE)
{
    tide_array *array =
        tide_array_acquire_slow(pool, type, TIDE_ROW_MAJOR, ndim, shape, TIDE_PASS_PLACE);
    bool filled = array != NULL && tide_fill_elements(pool, tide_array_data(array), type,
                                                      array->length, value) == TIDE_OK;
    return filled ? array : NULL;
}

tide_array *tide_array_zeros(tide_pool *pool, tide_type type, int ndim, const int64_t *shape)
{
    return view_acquire_filled(pool, type, ndim, shape, NULL, TIDE_CALLER);
}

tide_array *tide_array_ones(tide_pool *pool, tide_type type, int ndim, const int64_t *shape)
{
    const void *one = tide_one_of(type, "tide_array_ones");
    return one != NULL ? view_acquire_filled(pool, type, ndim, shape, one, TIDE_CALLER) : NULL;
}

tide_array *tide_array_fill(tide_pool *pool, tide_type type, int ndim, const int64_t *shape,
                            const void *value)
{
    if (value != NULL)
        return view_acquire_filled(pool, type, ndim, shape, value, TIDE_CALLER);
    tide_fail(TIDE_ERROR_ARGUMENT, "tide_array_fill", "the value is NULL");
    return NULL;
}

/* ---- loose headers ---------------------------------------------------------------------- */

tide_header *tide_loose_acquire(tide_pool *pool, tide_type type, int ndim, const char *call,
                                TIDE_PLACE)
{
    if (tide_pool_use_or_report(pool, call) != TIDE_OK)
        return NULL;
    tide_header *loose = tide_acquire_inline(pool, tide_header_type(), 1, TIDE_PASS_PLACE);
    if (loose == NULL)
        return NULL;
    tide_header_set_up(loose, pool, type, ndim);
    return loose;
}

bool tide_loose_live(const tide_pool *pool, const tide_array *array)
{
    const tide_row *row = tide_header_row(pool);
    if (row->shelf == NULL)
        return false;
    tide_assert(row->shelf->next >= row->slots && tide_header_is(row->type));
    for (const tide_slot *slot = row->shelf->next; slot-- > row->slots;)
        if (slot->data == array)
            return true;
    return false;
}

enum { VIEW_WORD_BITS = 64 }; /* a header counts in bytes, and bits are read in words */

/* Shares the memory of `array` from `offset` elements on. */
static void view_share(tide_header *loose, const tide_array *array, int64_t offset)
{
    size_t size = tide_type_facts_of(array->type)->size;
    uint64_t bytes = array->type == TIDE_BIT ? (uint64_t)offset / 8 : (uint64_t)offset * size;
    tide_assert(array->type != TIDE_BIT || (offset >= 0 && offset % VIEW_WORD_BITS == 0));
    loose->array.tensor.data = array->tensor.data;
    loose->array.tensor.byte_offset = array->tensor.byte_offset + bytes;
    loose->array.base = array->base != NULL ? array->base : array;
    loose->array.order = array->order;
}

/* ---- contiguity ------------------------------------------------------------------------- */

bool tide_array_contiguous(const tide_array *array, tide_order order)
{
    int64_t expected = 1;
    const tide_dl_tensor *tensor = &array->tensor;
    if (array->length == 0)
        return true;
    for (int i = 0; i < tensor->ndim; i++) {
        int d = order == TIDE_ROW_MAJOR ? tensor->ndim - 1 - i : i;
        if (tensor->shape[d] != 1 && tensor->strides[d] != expected)
            return false;
        expected *= tensor->shape[d];
    }
    return true;
}

/* ---- view and reshape ------------------------------------------------------------------- */

/* Are the elements start, start + step, … (extent of them) all within 0 … size - 1? */
static bool view_within(int64_t size, int64_t start, int64_t extent, int64_t step)
{
    int64_t last, span;
    if (extent == 0)
        return start >= 0 && start <= size;
    return extent > 0 && start >= 0 && start < size &&
           !__builtin_mul_overflow(extent - 1, step, &span) &&
           !__builtin_add_overflow(start, span, &last) && last >= 0 && last < size;
}

static tide_status view_check(const tide_array *array, const int64_t *start, const int64_t *extent,
                              const int64_t *step)
{
    const char *call = "tide_array_view";
    if (array == NULL || start == NULL || extent == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the %s is NULL",
                         array == NULL   ? "array"
                         : start == NULL ? "start"
                                         : "extent");
    for (int d = 0; d < array->tensor.ndim; d++) {
        int64_t by = step != NULL ? step[d] : 1;
        if (!view_within(array->tensor.shape[d], start[d], extent[d], by))
            return tide_fail(TIDE_ERROR_SIZE, call,
                             "dimension %d: %lld elements from %lld by %lld, it has %lld", d,
                             (long long)extent[d], (long long)start[d], (long long)by,
                             (long long)array->tensor.shape[d]);
    }
    size_t length; /* steps of 0 can ask for more elements than there are */
    return tide_shape_length(array->tensor.ndim, extent, &length, call);
}

/* A step that is never taken may have any value. It counts as 1, or the stride could overflow. */
static int64_t view_step_of(const int64_t *extent, const int64_t *step, int d)
{
    return step != NULL && extent[d] > 1 ? step[d] : 1;
}

/* Elements from element 0 of the array to that of the view. */
static int64_t view_offset(const tide_array *array, const int64_t *start, const int64_t *extent)
{
    int64_t offset = 0;
    for (int d = 0; d < array->tensor.ndim; d++)
        offset += extent[d] > 0 ? start[d] * array->tensor.strides[d] : 0;
    return offset;
}

/* A bit's number counts from the first word of its array, and has no sign. */
static tide_status view_check_bits(const tide_array *array, int64_t offset, const int64_t *extent,
                                   const int64_t *step)
{
    const char *call = "tide_array_view";
    if (offset % VIEW_WORD_BITS != 0)
        return tide_fail(TIDE_ERROR_SIZE, call, "a view of bits starts with a word, not %lld",
                         (long long)offset);
    for (int d = 0; d < array->tensor.ndim; d++)
        if (view_step_of(extent, step, d) < 0)
            return tide_fail(TIDE_ERROR_SIZE, call,
                             "dimension %d: a view of bits goes forward, not by %lld", d,
                             (long long)step[d]);
    return TIDE_OK;
}

tide_array *tide_array_view(tide_pool *pool, const tide_array *array, const int64_t *start,
                            const int64_t *extent, const int64_t *step)
{
    if (view_check(array, start, extent, step) != TIDE_OK)
        return NULL;
    int ndim = array->tensor.ndim;
    int64_t offset = view_offset(array, start, extent);
    if (array->type == TIDE_BIT && view_check_bits(array, offset, extent, step) != TIDE_OK)
        return NULL;
    tide_header *view = tide_loose_acquire(pool, array->type, ndim, "tide_array_view", TIDE_CALLER);
    if (view == NULL)
        return NULL;
    view->array.length = 1;
    for (int d = 0; d < ndim; d++) {
        view->shape[d] = extent[d];
        view->strides[d] = array->tensor.strides[d] * view_step_of(extent, step, d);
        view->array.length *= (size_t)extent[d];
    }
    view_share(view, array, offset);
    return &view->array;
}

tide_array *tide_array_reshape(tide_pool *pool, const tide_array *array, int ndim,
                               const int64_t *shape)
{
    const char *call = "tide_array_reshape";
    size_t length = 0;
    if (array == NULL) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the array is NULL");
        return NULL;
    }
    if (tide_shape_length(ndim, shape, &length, call) != TIDE_OK)
        return NULL;
    if (length != array->length) {
        tide_fail(TIDE_ERROR_SIZE, call, "%zu elements cannot become %zu", array->length, length);
        return NULL;
    }
    if (!tide_array_contiguous(array, (tide_order)array->order)) {
        tide_fail(TIDE_ERROR_STATE, call, "the array is not contiguous in its order");
        return NULL;
    }
    tide_header *made = tide_loose_acquire(pool, array->type, ndim, call, TIDE_CALLER);
    if (made == NULL)
        return NULL;
    if (ndim > 0)
        memcpy(made->shape, shape, (size_t)ndim * sizeof *shape);
    tide_shape_strides(ndim, shape, (tide_order)array->order, made->strides);
    made->array.length = length;
    view_share(made, array, 0);
    tide_assert(tide_array_contiguous(&made->array, (tide_order)made->array.order));
    return &made->array;
}

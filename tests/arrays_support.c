/* SPDX-License-Identifier: MIT */
#include <tidepool/array.h>
#include <tidepool/dlpack.h>
#include <tidepool/dynamic.h>

#include "arrays_support.h"
#include "hooks.h"

/* ---- headers ---- */

/* Product of the extents that lie inside dimension d, an empty one counting as one. */
static int64_t stride_of(tide_order order, int ndim, const int64_t *shape, int d)
{
    int first = order == TIDE_ROW_MAJOR ? d + 1 : 0, last = order == TIDE_ROW_MAJOR ? ndim : d;
    int64_t stride = 1;
    for (int i = first; i < last; i++)
        stride *= shape[i] == 0 ? 1 : shape[i];
    return stride;
}

void expect_array(const tide_array *array, tide_type type, tide_order order, int ndim,
                  const int64_t *shape)
{
    size_t length = 1;
    assert_non_null(array);
    assert_int_equal(array->tensor.ndim, ndim);
    for (int d = 0; d < ndim; d++) {
        assert_int_equal(array->tensor.shape[d], shape[d]);
        assert_int_equal(array->tensor.strides[d], stride_of(order, ndim, shape, d));
        length *= (size_t)shape[d];
    }
    assert_int_equal(array->type, type);
    assert_int_equal(array->order, order);
    assert_int_equal(array->length, length);
    assert_int_equal(array->tensor.device.device_type, TIDE_DL_CPU);
    assert_int_equal(array->tensor.device.device_id, 0);
    assert_int_equal(array->tensor.dtype.lanes, 1);
    if (type <= TIDE_BUILTIN_COUNT)
        assert_int_equal(array->tensor.dtype.bits, tide_type_size(type) * 8);
    else
        assert_int_equal(array->tensor.dtype.code, TIDE_DL_OPAQUE);
    assert_non_null(tide_array_data(array));
    assert_int_equal((uintptr_t)tide_array_data(array) % tide_type_align(type), 0);
}

tide_array *take_array(tide_pool *pool, tide_type type, tide_order order, int ndim,
                       const int64_t *shape)
{
    tide_array *array = tide_array_acquire_order(pool, type, order, ndim, shape);
    if (array == NULL)
        fail_msg("array of %d dimensions: %s", ndim, tide_error_message());
    expect_array(array, type, order, ndim, shape);
    assert_int_equal((uintptr_t)tide_array_data(array) % 64, 0);
    assert_int_equal(array->tensor.byte_offset, 0);
    assert_null(array->base);
    assert_ptr_equal(array->slot->array, array);
    assert_ptr_equal(array->slot->data, tide_array_data(array));
    return array;
}

size_t bytes_of(const tide_array *array)
{
    return array->length * tide_type_size(array->type);
}

void *element(const tide_array *array, const int64_t *index)
{
    int64_t offset = 0;
    for (int d = 0; d < array->tensor.ndim; d++)
        offset += index[d] * array->tensor.strides[d];
    return (char *)tide_array_data(array) + offset * (int64_t)tide_type_size(array->type);
}

bool next_index(const tide_array *array, int64_t *index)
{
    for (int d = array->tensor.ndim; d-- > 0;) {
        if (++index[d] < array->tensor.shape[d])
            return true;
        index[d] = 0;
    }
    return false;
}

void expect_error(tide_status status, const char *words)
{
    assert_string_equal(tide_status_name(tide_error_status()), tide_status_name(status));
    if (strstr(tide_error_message(), words) == NULL)
        fail_msg("'%s' does not say '%s'", tide_error_message(), words);
}

/* ---- allocations ---- */

static size_t asked, fails_at;
static bool fails_for_ever;

static bool count_one(size_t bytes)
{
    (void)bytes;
    asked++;
    return false;
}

void count_allocations(void)
{
    asked = 0;
    set_memory_fault(count_one);
}

size_t allocations_counted(void)
{
    set_memory_fault(NULL);
    return asked;
}

static bool fail_one(size_t bytes)
{
    (void)bytes;
    size_t now = asked++;
    return fails_for_ever ? now >= fails_at : now == fails_at;
}

void fail_allocation(size_t n, bool for_ever)
{
    asked = 0;
    fails_at = n;
    fails_for_ever = for_ever;
    set_memory_fault(fail_one);
}

bool allocation_failed(void)
{
    set_memory_fault(NULL);
    return asked > fails_at;
}

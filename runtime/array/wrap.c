/* SPDX-License-Identifier: MIT */
/* Memory from outside as an array: described by a header that goes with the scope, and given back
 * by the same entry of the undo log as a foreign tensor. */
#include <string.h>

#include "runtime/array/array.h"
#include "runtime/array/import.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/lock.h"
#include "runtime/check/report.h"
#include "runtime/pool/log.h"
#include "runtime/pool/streams.h"

static const char call[] = "tide_array_wrap";

/* Stands in the log for a deleter that knows no tensor. */
typedef struct wrapped_memory {
    tide_dl_managed managed;
    void *data, *context;
    void (*deleter)(void *data, void *context);
} wrapped_memory;

static void wrap_give_back(tide_dl_managed *managed)
{
    wrapped_memory *wrapped = managed->manager_ctx;
    wrapped->deleter(wrapped->data, wrapped->context);
    tide_os_free(wrapped);
}

/* Remembers the deleter until the scope ends; the log has room. */
static tide_status wrap_remember(tide_pool *pool, const tide_array_source *source)
{
    if (source->deleter == NULL)
        return TIDE_OK;
    wrapped_memory *wrapped = tide_os_resize(NULL, sizeof *wrapped);
    if (wrapped != NULL) {
        *wrapped = (wrapped_memory){.managed = {.manager_ctx = wrapped, .deleter = wrap_give_back},
                                    .data = source->data,
                                    .context = source->context,
                                    .deleter = source->deleter};
        if (tide_import_remember(pool, &wrapped->managed))
            return TIDE_OK;
        tide_os_free(wrapped);
    }
    return tide_fail(TIDE_ERROR_MEMORY, call, "no memory to remember the deleter");
}

/* As in views: a bit's number has no sign. */
static tide_status wrap_check_bits(const tide_array_source *source)
{
    for (int d = 0; source->strides != NULL && d < source->ndim; d++)
        if (source->strides[d] < 0)
            return tide_fail(TIDE_ERROR_SIZE, call, "dimension %d: bits go forward, not by %lld", d,
                             (long long)source->strides[d]);
    return TIDE_OK;
}

static tide_status wrap_check(const tide_pool *pool, const tide_array_source *source,
                              size_t *length)
{
    const tide_type_facts *facts = tide_type_facts_of(source->type);
    TIDE_FORWARD(tide_growth_check(source->growth_, call));
    if (facts == NULL)
        return tide_type_refuse(source->type, call);
    TIDE_FORWARD(tide_shape_length(source->ndim, source->shape, length, call));
    if (source->type == TIDE_BIT)
        TIDE_FORWARD(wrap_check_bits(source));
    if (source->data == NULL && *length != 0)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the memory of %zu elements is NULL", *length);
    if (pool->core->device->host && (uintptr_t)source->data % facts->align != 0)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "%p is not aligned to %zu bytes, as %s is",
                         source->data, facts->align, facts->name);
    return TIDE_OK;
}

tide_array *tide_loose_describe(tide_header *loose, const tide_dl_tensor *tensor, size_t length)
{
    size_t ndim = (size_t)tensor->ndim;
    tide_assert(ndim <= TIDE_NDIM_MAX && loose->array.base == NULL);
    loose->array.tensor.data = tensor->data;
    loose->array.tensor.byte_offset = tensor->byte_offset;
    loose->array.length = length;
    if (ndim > 0)
        memcpy(loose->shape, tensor->shape, ndim * sizeof *loose->shape);
    if (tensor->strides != NULL && ndim > 0)
        memcpy(loose->strides, tensor->strides, ndim * sizeof *loose->strides);
    else
        tide_shape_strides(tensor->ndim, tensor->shape, TIDE_ROW_MAJOR, loose->strides);
    bool row = tide_array_contiguous(&loose->array, TIDE_ROW_MAJOR);
    bool column = tide_array_contiguous(&loose->array, TIDE_COLUMN_MAJOR);
    loose->array.order = !row && column ? TIDE_COLUMN_MAJOR : TIDE_ROW_MAJOR;
    return &loose->array;
}

/* Room for the header's touch (two entries if its type has no bit), and for the deleter's entry. */
static tide_array *wrap_make(tide_pool *pool, const tide_array_source *source, size_t length,
                             TIDE_PLACE)
{
    if (!tide_log_room(pool, 3, call))
        return NULL;
    tide_header *loose =
        tide_loose_acquire(pool, source->type, source->ndim, call, TIDE_PASS_PLACE);
    if (loose == NULL || wrap_remember(pool, source) != TIDE_OK)
        return NULL;
    const tide_dl_tensor tensor = {.data = source->data,
                                   .ndim = source->ndim,
                                   .shape = (int64_t *)(uintptr_t)source->shape,
                                   .strides = (int64_t *)(uintptr_t)source->strides};
    return tide_loose_describe(loose, &tensor, length);
}

/* The deleter may itself make calls that fail: what is told is why the source was refused. */
static void wrap_refuse(const tide_array_source *source)
{
    if (source->deleter == NULL)
        return;
    tide_failure why;
    tide_failure_keep(&why);
    tide_lock_assert_none();
    source->deleter(source->data, source->context);
    tide_failure_restore(&why);
}

tide_array *tide_array_wrap(tide_pool *pool, const tide_array_source *source)
{
    if (source == NULL) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the source is NULL");
        return NULL;
    }
    size_t length = 0;
    tide_array *array = NULL;
    if (tide_pool_use_or_report(pool, call) == TIDE_OK &&
        wrap_check(pool, source, &length) == TIDE_OK &&
        tide_streams_finish(pool, TIDE_OK, call) == TIDE_OK) /* after who made it */
        array = wrap_make(pool, source, length, TIDE_CALLER);
    if (array == NULL)
        wrap_refuse(source);
    return array;
}

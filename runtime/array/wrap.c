/* SPDX-License-Identifier: MIT */
/* Memory from outside as an array: described by a header that goes with the scope, and given back
 * by the same entry of the undo log as a foreign tensor. */
#include "runtime/array/array.h"
#include "runtime/array/import.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/check/report.h"

static const char call[] = "tide_array_wrap";

/* Stands in the log for a deleter that knows no tensor. */
typedef struct wrapped_memory {
    tide_dl_managed managed;
    tide_array_source source;
    void *allocated; /* itself; NULL: it lies in a variable */
} wrapped_memory;

static void wrap_give_back(tide_dl_managed *managed)
{
    wrapped_memory *wrapped = managed->manager_ctx;
    wrapped->source.deleter(wrapped->source.data, wrapped->source.context);
    tide_os_free(wrapped->allocated);
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

tide_array *tide_array_wrap(tide_pool *pool, const tide_array_source *source)
{
    if (source == NULL) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the source is NULL");
        return NULL;
    }
    size_t length = 0;
    tide_status status = tide_pool_use_or_report(pool, call);
    if (status == TIDE_OK)
        status = wrap_check(pool, source, &length);
    wrapped_memory here, *made = NULL;
    if (status == TIDE_OK && source->deleter != NULL &&
        (made = tide_os_resize(NULL, sizeof *made)) == NULL)
        status = tide_fail(TIDE_ERROR_MEMORY, call, "no memory to remember the deleter");
    wrapped_memory *wrapped = made != NULL ? made : &here;
    *wrapped =
        (wrapped_memory){.managed = {.manager_ctx = wrapped,
                                     .deleter = source->deleter != NULL ? wrap_give_back : NULL,
                                     .tensor = {.data = source->data,
                                                .ndim = source->ndim,
                                                .shape = (int64_t *)(uintptr_t)source->shape,
                                                .strides = (int64_t *)(uintptr_t)source->strides}},
                         .source = *source,
                         .allocated = made};
    return tide_import_take(pool, &wrapped->managed, source->type, length, status, call,
                            TIDE_CALLER);
}

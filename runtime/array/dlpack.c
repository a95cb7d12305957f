/* SPDX-License-Identifier: MIT */
/* Exchange of arrays through DLPack: keeping what goes out, giving back what came in. */
#include <tidepool/dlpack.h>

#include <string.h>

#include "runtime/array/array.h"
#include "runtime/array/import.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/check/report.h"
#include "runtime/pool/export.h"
#include "runtime/pool/row.h"

/* ---- out -------------------------------------------------------------------------------- */

typedef struct exported_array {
    tide_dl_managed managed;
    tide_export *memory;
    int64_t shape[TIDE_NDIM_MAX], strides[TIDE_NDIM_MAX];
} exported_array;

/* The deleter: a consumer is done with the array. Any thread. */
static void dlpack_release_exported(tide_dl_managed *managed)
{
    exported_array *exported = managed->manager_ctx;
    tide_export_drop(exported->memory);
    tide_os_free(exported);
}

/* The slot whose memory the array is, and its row. NULL with a message unless the array is live and
 * of this pool. */
static tide_slot *dlpack_slot_of(tide_pool *pool, const tide_array *array, tide_row **row)
{
    const char *call = "tide_array_export";
    const tide_array *root = array;
    if (tide_loose_live(pool, array) && array->base != NULL)
        root = array->base;
    if (tide_loose_live(pool, root)) {
        tide_fail(TIDE_ERROR_STATE, call, "an imported array is its producer's to export");
        return NULL;
    }
    tide_slot *slot = tide_array_live_slot(pool, root);
    if (slot == NULL) {
        tide_misuse(pool, tide_fail(TIDE_ERROR_STALE, call, "the array is not live in pool '%s'",
                                    pool->core->name));
        return NULL;
    }
    *row = &pool->core->rows.by_type[root->type];
    tide_assert((*row)->shelf != NULL && slot >= (*row)->slots && slot < (*row)->shelf->next);
    tide_assert(slot->data != NULL || tide_slot_record_of(*row, slot)->exported != NULL);
    return slot;
}

static tide_status dlpack_check_export(const tide_row *row, const tide_slot *slot)
{
    const char *call = "tide_array_export";
    tide_dl_type name;
    if (!tide_dl_type_of(row->type, &name))
        return tide_fail(TIDE_ERROR_TYPE, call, "DLPack has no name for type %s",
                         tide_type_name(row->type));
    if (tide_slot_record_of(row, slot)->guard != NULL)
        return tide_fail(TIDE_ERROR_STATE, call,
                         "a guarded array (check level 2) stays with its scope");
    return TIDE_OK;
}

static void dlpack_describe_export(exported_array *exported, const tide_array *array)
{
    size_t ndim = (size_t)array->tensor.ndim;
    tide_assert(ndim <= TIDE_NDIM_MAX && exported->memory != NULL);
    memcpy(exported->shape, array->tensor.shape, ndim * sizeof *exported->shape);
    memcpy(exported->strides, array->tensor.strides, ndim * sizeof *exported->strides);
    tide_dl_managed *managed = &exported->managed;
    managed->version.major = TIDE_DL_MAJOR;
    managed->version.minor = TIDE_DL_MINOR;
    managed->manager_ctx = exported;
    managed->deleter = dlpack_release_exported;
    managed->flags = 0;
    managed->tensor = array->tensor;
    managed->tensor.shape = exported->shape;
    managed->tensor.strides = exported->strides;
    if (array->length == 0) { /* what the specification asks of empty tensors */
        managed->tensor.data = NULL;
        managed->tensor.byte_offset = 0;
    }
}

tide_dl_managed *tide_array_export(tide_pool *pool, const tide_array *array)
{
    const char *call = "tide_array_export";
    if (tide_pool_use_or_report(pool, call) != TIDE_OK)
        return NULL;
    if (array == NULL) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the array is NULL");
        return NULL;
    }
    tide_row *row = NULL;
    tide_slot *slot = dlpack_slot_of(pool, array, &row);
    if (slot == NULL || dlpack_check_export(row, slot) != TIDE_OK)
        return NULL;
    exported_array *exported = tide_os_resize(NULL, sizeof *exported);
    tide_export *memory = exported != NULL ? tide_export_slot(pool, row, slot) : NULL;
    if (memory == NULL) {
        tide_os_free(exported);
        tide_fail(TIDE_ERROR_MEMORY, call, "no memory for the exported descriptor");
        return NULL;
    }
    exported->memory = memory;
    dlpack_describe_export(exported, array);
    return &exported->managed;
}

/* ---- in --------------------------------------------------------------------------------- */

/* The built-in type that DLPack gives this name, or TIDE_NO_TYPE. */
static tide_type dlpack_type_named(tide_dl_type name)
{
    tide_dl_type known;
    for (tide_type type = 1; type <= TIDE_BUILTIN_COUNT; type++)
        if (tide_dl_type_of(type, &known) && known.code == name.code && known.bits == name.bits &&
            name.lanes == 1)
            return type;
    return TIDE_NO_TYPE;
}

static tide_status dlpack_check_import(const tide_pool *pool, const tide_dl_managed *managed,
                                       size_t *length)
{
    const char *call = "tide_array_import";
    const tide_dl_tensor *tensor = &managed->tensor;
    if (managed->version.major != TIDE_DL_MAJOR)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "DLPack %u.%u, we speak major version %d",
                         managed->version.major, managed->version.minor, TIDE_DL_MAJOR);
    tide_dl_device ours = pool->core->device->dl;
    if (tensor->device.device_type != ours.device_type ||
        tensor->device.device_id != ours.device_id)
        return tide_fail(TIDE_ERROR_DEVICE, call, "memory of device %d:%d, pool '%s' is on %s",
                         tensor->device.device_type, tensor->device.device_id, pool->core->name,
                         pool->core->device->name);
    if (dlpack_type_named(tensor->dtype) == TIDE_NO_TYPE)
        return tide_fail(TIDE_ERROR_TYPE, call, "no type for code %u, %u bits, %u lanes",
                         tensor->dtype.code, tensor->dtype.bits, tensor->dtype.lanes);
    return tide_shape_length(tensor->ndim, tensor->shape, length, call);
}

tide_array *tide_array_import(tide_pool *pool, tide_dl_managed *managed)
{
    const char *call = "tide_array_import";
    if (managed == NULL) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the tensor is NULL");
        return NULL;
    }
    size_t length = 0;
    tide_status status = tide_pool_use_or_report(pool, call);
    if (status == TIDE_OK)
        status = dlpack_check_import(pool, managed, &length);
    return tide_import_take(pool, managed, dlpack_type_named(managed->tensor.dtype), length, status,
                            call, TIDE_CALLER);
}

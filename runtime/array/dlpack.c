/* SPDX-License-Identifier: MIT */
/* Exchange of arrays through DLPack: keeping what goes out, giving back what came in. */
#include <tidepool/dlpack.h>

#include <string.h>

#include "runtime/array/array.h"
#include "runtime/array/import.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/lock.h"
#include "runtime/check/report.h"
#include "runtime/pool/export.h"
#include "runtime/pool/log.h"
#include "runtime/pool/row.h"
#include "runtime/pool/streams.h"

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

static tide_array *dlpack_make_imported(tide_pool *pool, tide_dl_managed *managed, size_t length,
                                        TIDE_PLACE)
{
    const tide_dl_tensor *tensor = &managed->tensor;
    tide_assert(dlpack_type_named(tensor->dtype) != TIDE_NO_TYPE);
    tide_header *loose = tide_loose_acquire(pool, dlpack_type_named(tensor->dtype), tensor->ndim,
                                            "tide_array_import", TIDE_PASS_PLACE);
    if (loose == NULL)
        return NULL;
    tide_array *array = tide_loose_describe(loose, tensor, length);
    tide_assert(tide_loose_live(pool, array));
    return array;
}

/* The deleter may itself make calls that fail: what is told is why the tensor was refused. */
static void dlpack_refuse(tide_dl_managed *managed)
{
    if (managed->deleter == NULL)
        return;
    tide_failure why;
    tide_failure_keep(&why);
    tide_lock_assert_none();
    managed->deleter(managed);
    tide_failure_restore(&why);
}

tide_array *tide_array_import(tide_pool *pool, tide_dl_managed *managed)
{
    const char *call = "tide_array_import";
    if (managed == NULL) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the tensor is NULL");
        return NULL;
    }
    size_t length = 0;
    tide_array *array = NULL;
    /* Room for the header's touch (two entries if its type has no bit), and for the entry that
     * gives the tensor back. What the producer queued is before the pool's stream; now declared
     * ones come after that, too. */
    if (tide_pool_use_or_report(pool, call) == TIDE_OK &&
        dlpack_check_import(pool, managed, &length) == TIDE_OK && tide_log_room(pool, 3, call) &&
        tide_streams_finish(pool, TIDE_OK, call) == TIDE_OK)
        array = dlpack_make_imported(pool, managed, length, TIDE_CALLER);
    if (array != NULL && !tide_import_remember(pool, managed)) {
        tide_fail(TIDE_ERROR_MEMORY, call, "no memory to remember the tensor");
        array = NULL;
    }
    if (array == NULL)
        dlpack_refuse(managed);
    return array;
}

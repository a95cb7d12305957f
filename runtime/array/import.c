/* SPDX-License-Identifier: MIT */
/* Foreign tensors in a scope: remembered in the undo log, given back when their scope has ended
 * and, on a device, when the pool's stream has come past that. */
#include "runtime/array/import.h"

#include <string.h>

#include "runtime/array/array.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"
#include "runtime/device/deferred.h"
#include "runtime/pool/level.h"
#include "runtime/pool/shut.h"
#include "runtime/pool/streams.h"

/* A tensor on a device. On the host the log's entry is the tensor itself. */
typedef struct tide_import {
    tide_deferred deferred; /* first */
    tide_dl_managed *managed;
} tide_import;

static void import_delete(tide_dl_managed *managed)
{
    if (managed->deleter == NULL)
        return;
    tide_lock_assert_none();
    managed->deleter(managed);
}

static void import_go(tide_device *device, tide_deferred *deferred)
{
    tide_import *import = (tide_import *)(void *)deferred;
    (void)device;
    import_delete(import->managed);
    tide_os_free(import);
}

/* What is due of all that waits for the device. */
static void import_settle(tide_pool *pool)
{
    tide_shut was = tide_pool_shut(pool);
    (void)tide_deferred_settle(pool->core->device, false);
    tide_pool_open_again(pool, was);
}

/* Remembers the tensor until its scope ends, for which the log has room. False, with a message. */
static bool import_remember(tide_pool *pool, tide_dl_managed *managed, const char *call)
{
    void *entry = managed;
    tide_assert(pool->log_top < pool->core->log.end);
    if (managed->deleter == NULL)
        return true;
    if (!pool->core->device->host) {
        import_settle(pool);
        tide_import *import = tide_os_resize(NULL, sizeof *import);
        if (import == NULL) {
            tide_fail(TIDE_ERROR_MEMORY, call, "no memory to remember the deleter");
            return false;
        }
        *import = (tide_import){.managed = managed};
        entry = import;
    }
    tide_log_push(pool, &pool->core->log.undo[TIDE_UNDO_IMPORT], entry, 0);
    return true;
}

/* The deleter may itself make calls that fail: what is told is why the tensor was refused. */
static void import_refuse(tide_dl_managed *managed)
{
    tide_failure why;
    tide_failure_keep(&why);
    import_delete(managed);
    tide_failure_restore(&why);
}

/* Makes an empty loose header the tensor's, whose strides may be NULL. */
static tide_array *import_describe(tide_header *loose, const tide_dl_tensor *tensor, size_t length)
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

/* Room for the header's touch (two entries if its type has no bit), and for the entry that gives the
 * tensor back. What its producer queued is before the pool's stream; now declared ones come after
 * that, too. */
tide_array *tide_import_take(tide_pool *pool, tide_dl_managed *managed, tide_type type,
                             size_t length, tide_status checked, const char *call, TIDE_PLACE)
{
    tide_array *array = NULL;
    if (checked == TIDE_OK && tide_log_room(pool, 3, call) &&
        tide_streams_finish(pool, TIDE_OK, call) == TIDE_OK) {
        tide_header *loose =
            tide_loose_acquire(pool, type, managed->tensor.ndim, call, TIDE_PASS_PLACE);
        if (loose != NULL && import_remember(pool, managed, call))
            array = import_describe(loose, &managed->tensor, length);
    }
    if (array == NULL)
        import_refuse(managed);
    return array;
}

void tide_import_undo(tide_pool *pool, const tide_entry *entry)
{
    tide_assert(entry->next != NULL && entry->shelf == &pool->core->log.undo[TIDE_UNDO_IMPORT]);
    tide_assert(entry == pool->log_top); /* it has been taken from the log */
    if (!pool->core->device->host) {
        tide_import *import = (tide_import *)(void *)entry->next;
        tide_deferred_put(pool->core->device, tide_streams_last(pool), &import->deferred,
                          import_go);
        import_settle(pool);
        return;
    }
    tide_shut was = tide_pool_shut(pool);
    import_delete((tide_dl_managed *)(void *)entry->next);
    tide_pool_open_again(pool, was);
}

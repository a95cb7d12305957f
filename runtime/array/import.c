/* SPDX-License-Identifier: MIT */
/* Foreign tensors in a scope: remembered in the undo log, given back when their scope has ended
 * and, on a device, when the pool's stream has come past that. */
#include "runtime/array/import.h"

#include "runtime/base/assert.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"
#include "runtime/device/deferred.h"
#include "runtime/pool/log.h"
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

bool tide_import_remember(tide_pool *pool, tide_dl_managed *managed)
{
    tide_assert(managed != NULL && pool->log_top < pool->core->log.end);
    void *entry = managed;
    if (!pool->core->device->host) {
        import_settle(pool);
        tide_import *import = tide_os_resize(NULL, sizeof *import);
        if (import == NULL)
            return false;
        *import = (tide_import){.managed = managed};
        entry = import;
    }
    tide_log_push(pool, &pool->core->log.undo[TIDE_UNDO_IMPORT], entry, 0);
    return true;
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

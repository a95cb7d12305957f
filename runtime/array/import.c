/* SPDX-License-Identifier: MIT */
/* Foreign tensors in a scope: remembered in the undo log, given back when their scope has ended
 * and, on a device, when the pool's stream has come past that. */
#include "runtime/array/import.h"

#include "runtime/base/assert.h"
#include "runtime/base/lock.h"
#include "runtime/device/later.h"
#include "runtime/pool/log.h"
#include "runtime/pool/shut.h"
#include "runtime/pool/streams.h"

/* A tensor on a device. On the host the log's entry is the tensor itself. */
typedef struct tide_import {
    tide_later later; /* first */
    struct tide_import *next;
    tide_dl_managed *managed;
    void *mark; /* NULL: none could be left so far */
} tide_import;

static void import_give_back(tide_pool *pool, tide_dl_managed *managed)
{
    if (managed->deleter == NULL)
        return;
    tide_shut was = tide_pool_shut(pool);
    tide_outside outside = tide_outside_enter();
    managed->deleter(managed);
    tide_outside_leave(outside);
    tide_pool_open_again(pool, was);
}

/* Leaves a mark in the pool's stream, unless there is one or a graph is being captured. */
static void import_leave_mark(const tide_pool *pool, tide_import *import)
{
    tide_device *device = pool->core->device;
    void *stream = NULL;
    tide_assert(!device->host);
    if (import->mark == NULL && !device->methods->capturing(device, pool->core->streams.own) &&
        tide_streams_last(pool, &stream))
        import->mark = device->methods->mark(device, stream);
}

/* Its mark has been passed, or nothing runs that could use it. It is in no list any more. */
static void import_finish(tide_pool *pool, tide_import *import)
{
    tide_assert(import->managed != NULL && pool->core->leaving != import);
    tide_device *device = pool->core->device;
    if (import->mark != NULL)
        device->methods->mark_drop(device, import->mark);
    import_give_back(pool, import->managed);
    tide_os_free(import);
}

/* Gives back those whose marks have been passed. They stand in the order of their stream, so the
 * first mark that has not been passed ends the search. */
static void import_settle(tide_pool *pool)
{
    tide_device *device = pool->core->device;
    for (tide_import *import = pool->core->leaving; import != NULL; import = pool->core->leaving) {
        import_leave_mark(pool, import);
        if (import->mark == NULL || !device->methods->mark_done(device, import->mark))
            return;
        pool->core->leaving = import->next;
        import_finish(pool, import);
    }
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
    if (pool->core->device->host) {
        import_give_back(pool, (tide_dl_managed *)(void *)entry->next);
        return;
    }
    tide_import *import = (tide_import *)(void *)entry->next, **last = &pool->core->leaving;
    tide_assert(import->next == NULL && import->mark == NULL);
    while (*last != NULL)
        last = &(*last)->next;
    *last = import;
    import_leave_mark(pool, import);
    import_settle(pool);
}

/* The pool is gone by now. */
static void import_go(tide_device *device, tide_later *later)
{
    tide_import *import = (tide_import *)(void *)later;
    if (import->mark != NULL)
        device->methods->mark_drop(device, import->mark);
    if (import->managed->deleter != NULL) {
        tide_outside outside = tide_outside_enter();
        import->managed->deleter(import->managed);
        tide_outside_leave(outside);
    }
    tide_os_free(import);
}

/* Is all over that could use it? The host waits. */
static bool import_is_over(const tide_pool *pool, tide_import *import)
{
    tide_device *device = pool->core->device;
    import_leave_mark(pool, import);
    bool over = import->mark != NULL ? tide_device_mark_over(device, import->mark)
                                     : tide_streams_all_over(pool);
    return over && !tide_device_unwatched(device);
}

void tide_import_finish(tide_pool *pool)
{
    for (tide_import *import = pool->core->leaving; import != NULL; import = pool->core->leaving) {
        pool->core->leaving = import->next;
        if (import_is_over(pool, import))
            import_finish(pool, import);
        else
            tide_later_put_off(pool->core->device, &import->later, import_go);
    }
}

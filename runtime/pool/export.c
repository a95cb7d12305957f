/* SPDX-License-Identifier: MIT */
/* Memory of a slot that is exported: taken from the pool, held, given back or taken again. */
#include "runtime/pool/export.h"

#include <tidepool/device.h>

#include "runtime/base/assert.h"
#include "runtime/base/os.h"
#include "runtime/base/shim.h"
#include "runtime/device/budget.h"
#include "runtime/device/lender.h"
#include "runtime/pool/header.h"
#include "runtime/pool/shut.h"
#include "runtime/pool/streams.h"

tide_export *tide_export_make(tide_pool *pool, const tide_row *row, void *data,
                              const tide_slot_record *record)
{
    tide_buffers *buffers = record->buffer.generation != 0 ? pool->core->buffers : NULL;
    tide_export *made = tide_os_resize(NULL, sizeof *made);
    tide_assert(data != NULL && record->guard == NULL);
    if (made == NULL)
        return NULL;
    tide_device_hold_again(row->device);
    if (buffers != NULL)
        tide_lend->hold_again(buffers);
    *made = (tide_export){.holders = 1,
                          .data = data,
                          .bytes = record->bytes,
                          .capacity = record->capacity,
                          .device = row->device,
                          .buffers = buffers,
                          .buffer = record->buffer};
    return made;
}

tide_export *tide_export_slot(tide_pool *pool, tide_row *row, tide_slot *slot)
{
    tide_pool_core *core = pool->core;
    tide_slot_record *record = tide_slot_record_of(row, slot);
    tide_export *exported = record->exported;
    tide_assert(slot < row->slots + row->count && record->guard == NULL);
    tide_assert((slot->data != NULL) == (exported == NULL)); /* the slot's own, or exported */
    if (exported != NULL) {
        __atomic_add_fetch(&exported->holders, 1, __ATOMIC_RELAXED);
        return exported;
    }
    exported = tide_export_make(pool, row, slot->data, record);
    if (exported == NULL)
        return NULL;
    exported->holders = 2;
    record->buffer = (tide_buffer){0};
    record->exported = exported;
    tide_assert(core->memory.bytes_held >= record->bytes);
    tide_figure_take(&core->memory.bytes_held, record->bytes);
    tide_figure_add(&core->memory.bytes_exported, record->bytes);
    record->bytes = record->capacity = 0;
    slot->data = NULL;
    tide_slot_admit(slot, 0);
    tide_pool_tell(pool, TIDE_POOL_EXPORTED, row, exported->bytes, 0, (tide_place){TIDE_NOWHERE});
    return exported;
}

/* The pool and its stream may be gone; all that they queued is over. */
static void export_give_back(tide_export *exported)
{
    tide_device *device = exported->device;
    tide_assert(exported->holders == 0 && exported->data != NULL);
    if (device->host) /* what a checked pool forbade beyond the array's end */
        tide_shim_release(exported->data, exported->bytes);
    if (exported->buffers != NULL) {
        tide_lend->give_back(exported->buffers, exported->buffer, device->service);
        tide_lend->drop(exported->buffers);
    } else {
        tide_budget_release(device, device->service, TIDE_MEMORY_DEVICE, exported->data,
                            exported->bytes);
    }
    tide_device_drop(device);
    tide_os_free(exported);
}

void tide_export_drop(tide_export *exported)
{
    uint32_t left = __atomic_sub_fetch(&exported->holders, 1, __ATOMIC_ACQ_REL);
    tide_assert(left != UINT32_MAX);
    if (left == 0)
        export_give_back(exported);
}

static void export_go(tide_device *device, tide_deferred *deferred)
{
    tide_export *exported = (tide_export *)(void *)deferred;
    tide_assert(exported->device == device);
    (void)device;
    tide_export_drop(exported);
}

bool tide_capture_make_room(tide_capture *capture, size_t more)
{
    size_t wanted = capture->count + more;
    if (wanted <= capture->room)
        return true;
    wanted = wanted > 2 * capture->room ? wanted : 2 * capture->room;
    tide_export **held = tide_os_resize(capture->held, wanted * sizeof(tide_export *));
    if (held == NULL)
        return false;
    capture->held = held;
    capture->room = wanted;
    return true;
}

bool tide_capture_keep(tide_capture *capture, tide_export *exported)
{
    if (!tide_capture_make_room(capture, 1))
        return false;
    tide_assert(capture->count < capture->room);
    capture->held[capture->count++] = exported;
    return true;
}

void tide_export_drop_of_pool(tide_pool *pool, tide_export *exported)
{
    tide_shut was = tide_pool_shut(pool); /* a hook may be told */
    if (exported->device->host) {
        tide_export_drop(exported);
    } else if (pool->core->capture == NULL || !tide_capture_keep(pool->core->capture, exported)) {
        tide_deferred_put(exported->device, tide_streams_last(pool), &exported->deferred,
                          export_go);
        (void)tide_deferred_settle(pool->core->device, false);
    }
    tide_pool_open_again(pool, was);
}

void tide_export_settle(tide_pool *pool, tide_row *row, tide_slot *slot)
{
    tide_pool_core *core = pool->core;
    tide_slot_record *record = tide_slot_record_of(row, slot);
    tide_export *exported = record->exported;
    tide_assert(exported != NULL && slot->data == NULL && slot >= row->shelf->next);
    tide_assert(core->memory.bytes_exported >= exported->bytes && record->bytes == 0);
    record->exported = NULL;
    tide_figure_take(&core->memory.bytes_exported, exported->bytes);
    if (exported->captured || __atomic_load_n(&exported->holders, __ATOMIC_ACQUIRE) != 1 ||
        core->memory.bytes_held + exported->bytes > core->memory.limit_bytes) {
        tide_export_drop_of_pool(pool, exported);
        *record = (tide_slot_record){0}; /* what was asked of it was asked of that memory */
        return;
    }
    slot->data = exported->data;
    record->bytes = exported->bytes;
    record->capacity = exported->capacity;
    record->buffer = exported->buffer;
    if (exported->buffers != NULL)
        tide_lend->drop(exported->buffers);
    tide_memory_hold(&core->memory, exported->bytes);
    tide_device_drop(exported->device);
    tide_os_free(exported);
    (void)tide_streams_finish(pool, TIDE_OK, "tide_acquire"); /* after the consumer's */
    tide_pool_tell(pool, TIDE_POOL_RETURNED, row, record->bytes, 0, (tide_place){TIDE_NOWHERE});
}

/* SPDX-License-Identifier: MIT */
/* Memory of a slot that is exported: taken from the pool, held, given back or taken again. */
#include "runtime/pool/export.h"

#include "runtime/base/assert.h"
#include "runtime/base/shim.h"
#include "runtime/buffers/buffer.h"
#include "runtime/buffers/buffers.h"
#include "runtime/device/budget.h"
#include "runtime/pool/header.h"
#include "runtime/pool/shut.h"
#include "runtime/pool/streams.h"
#include "runtime/pool/tell.h"

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
        tide_buffers_hold_again(buffers);
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

/* The host waits for the pool's last use only where no stream can. No mark lies in a capture, so it
 * can always be waited for. */
static void export_pass_mark(const tide_export *exported)
{
    tide_device *device = exported->device;
    tide_assert(exported->mark != NULL);
    if (device->methods->mark_follow == NULL ||
        device->methods->mark_follow(device, exported->mark, device->service) != TIDE_OK) {
        bool over = tide_device_mark_over(device, exported->mark);
        tide_assert(over);
        (void)over;
    }
    device->methods->mark_drop(device, exported->mark);
}

/* The pool and its stream may be gone. */
static void export_give_back(tide_export *exported)
{
    tide_device *device = exported->device;
    tide_assert(exported->holders == 0 && exported->data != NULL);
    if (device->host) /* what a checked pool forbade beyond the array's end */
        tide_shim_release(exported->data, exported->bytes);
    if (exported->mark != NULL)
        export_pass_mark(exported);
    if (exported->buffers != NULL) {
        tide_buffer_give_back(exported->buffers, exported->buffer, device->service);
        tide_buffers_drop(exported->buffers);
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

static void export_go(tide_device *device, tide_later *later)
{
    tide_export *exported = (tide_export *)(void *)later;
    tide_assert(exported->device == device);
    (void)device;
    tide_export_drop(exported);
}

void tide_export_put_off(tide_export *exported)
{
    tide_later_put_off(exported->device, &exported->later, export_go);
}

/* Without a mark the host waits now. False: what the pool queued has no end that is known. */
static bool export_leave_mark(const tide_pool *pool, tide_export *exported)
{
    tide_device *device = exported->device;
    void *stream = NULL;
    tide_assert(exported->mark == NULL); /* the position lets go once */
    if (!device->host && !tide_streams_last(pool, &stream))
        return false;
    exported->mark = device->methods->mark(device, stream);
    return device->host || exported->mark != NULL || tide_streams_over(pool, stream);
}

void tide_export_drop_of_pool(tide_pool *pool, tide_export *exported)
{
    tide_shut was = tide_pool_shut(pool); /* a hook may be told */
    if (export_leave_mark(pool, exported))
        tide_export_drop(exported);
    else
        tide_export_put_off(exported);
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
        return;
    }
    slot->data = exported->data;
    record->bytes = exported->bytes;
    record->capacity = exported->capacity;
    record->buffer = exported->buffer;
    if (exported->buffers != NULL)
        tide_buffers_drop(exported->buffers);
    tide_memory_hold(&core->memory, exported->bytes);
    tide_device_drop(exported->device);
    tide_os_free(exported);
    tide_streams_follow(pool); /* what the consumer did is before the pool's stream */
    tide_pool_tell(pool, TIDE_POOL_RETURNED, row, record->bytes, 0, (tide_place){TIDE_NOWHERE});
}

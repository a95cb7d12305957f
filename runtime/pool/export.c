/* SPDX-License-Identifier: MIT */
/* Memory of a slot that is exported: taken from the pool, held, given back or taken again. */
#include "runtime/pool/export.h"

#include "runtime/base/assert.h"
#include "runtime/base/shim.h"
#include "runtime/buffers/buffers.h"
#include "runtime/pool/streams.h"

tide_export *tide_export_slot(tide_pool *pool, tide_row *row, tide_slot *slot)
{
    tide_pool_core *core = pool->core;
    tide_slot_record *record = tide_slot_record_of(row, slot);
    tide_export *pin = record->pin;
    tide_assert(slot < row->shelf->next && record->guard == NULL);
    tide_assert((slot->data != NULL) == (pin == NULL)); /* its memory is the slot's or exported */
    if (pin != NULL) {
        __atomic_add_fetch(&pin->holders, 1, __ATOMIC_RELAXED);
        return pin;
    }
    pin = tide_os_resize(NULL, sizeof *pin);
    if (pin == NULL)
        return NULL;
    tide_device_hold_again(row->device);
    *pin = (tide_export){.holders = 2,
                         .data = slot->data,
                         .bytes = record->bytes,
                         .capacity = record->capacity,
                         .device = row->device};
    if (record->buffer.generation != 0) {
        tide_buffers_hold_again(core->buffers);
        pin->buffers = core->buffers;
        pin->buffer = record->buffer;
        record->buffer = (tide_buffer){0};
    }
    record->pin = pin;
    tide_assert(core->memory.bytes_held >= record->bytes);
    core->memory.bytes_held -= record->bytes;
    core->memory.bytes_exported += record->bytes;
    record->bytes = record->capacity = 0;
    slot->data = NULL;
    slot->limit = 0;
    return pin;
}

/* The pool and its stream may be gone. The host waits for the pool's last use; then nothing is in
 * flight any more, so the memory is released on any stream. */
static void export_give_back(tide_export *pin)
{
    tide_device *device = pin->device;
    tide_assert(pin->holders == 0 && pin->data != NULL);
    if (device->host) /* what a checked pool forbade beyond the array's end */
        tide_shim_release(pin->data, pin->bytes);
    if (pin->mark != NULL) {
        (void)device->methods->mark_wait(device, pin->mark);
        device->methods->mark_drop(device, pin->mark);
    }
    if (pin->buffers != NULL) {
        (void)tide_buffer_release_on(pin->buffers, pin->buffer, NULL);
        tide_buffers_drop(pin->buffers);
    } else {
        device->methods->release(device, NULL, TIDE_MEMORY_DEVICE, pin->data, pin->bytes);
    }
    tide_device_drop(device);
    tide_os_free(pin);
}

void tide_export_drop(tide_export *pin)
{
    uint32_t left = __atomic_sub_fetch(&pin->holders, 1, __ATOMIC_ACQ_REL);
    tide_assert(left != UINT32_MAX);
    if (left == 0)
        export_give_back(pin);
}

/* Without a mark the host waits now. */
void tide_export_leave(tide_export *pin, void *stream)
{
    tide_device *device = pin->device;
    tide_assert(pin->mark == NULL); /* the position lets go once */
    pin->mark = device->methods->mark(device, stream);
    if (pin->mark == NULL)
        (void)device->methods->wait(device, stream);
    tide_export_drop(pin);
}

void tide_export_settle(tide_pool *pool, tide_row *row, tide_slot *slot)
{
    tide_pool_core *core = pool->core;
    tide_slot_record *record = tide_slot_record_of(row, slot);
    tide_export *pin = record->pin;
    tide_assert(pin != NULL && slot->data == NULL && slot >= row->shelf->next);
    tide_assert(core->memory.bytes_exported >= pin->bytes && record->bytes == 0);
    record->pin = NULL;
    core->memory.bytes_exported -= pin->bytes;
    if (__atomic_load_n(&pin->holders, __ATOMIC_ACQUIRE) != 1 ||
        core->memory.bytes_held + pin->bytes > core->memory.limit_bytes) {
        tide_export_leave(pin, tide_streams_last(pool));
        return;
    }
    slot->data = pin->data;
    record->bytes = pin->bytes;
    record->capacity = pin->capacity;
    record->buffer = pin->buffer;
    if (pin->buffers != NULL)
        tide_buffers_drop(pin->buffers);
    core->memory.bytes_held += pin->bytes;
    if (core->memory.bytes_held > core->memory.bytes_peak)
        core->memory.bytes_peak = core->memory.bytes_held;
    tide_device_drop(pin->device);
    tide_os_free(pin);
    tide_streams_follow(pool); /* what the consumer did is before the pool's stream */
}

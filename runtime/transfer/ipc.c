/* SPDX-License-Identifier: MIT */
/* Memory for other processes: exported from buffers and slots, opened, closed. Who else has it open
 * nobody here knows. */
#include <tidepool/device_ipc.h>

#include <stdio.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/buffers/store/handle.h"
#include "runtime/pool/export.h"
#include "runtime/pool/row.h"

/* ---- export --------------------------------------------------------------------------------- */

/* What starts at `start` and has `whole` bytes, from `data` on. */
static tide_status ipc_describe(tide_device *device, void *start, size_t whole, const void *data,
                                const char *call, tide_ipc_memory *out)
{
    size_t offset = (size_t)((const char *)data - (const char *)start);
    tide_ipc_memory made = {.offset = offset, .bytes = whole - offset};
    tide_assert(offset < whole && device->methods->ipc_export != NULL);
    tide_status status = device->methods->ipc_export(device, start, made.handle);
    if (status != TIDE_OK)
        return tide_fail(status, call, "%s", tide_error_message());
    *out = made;
    return TIDE_OK;
}

static tide_status ipc_refuse_kind(const char *whose, const char *call)
{
    return tide_fail(TIDE_ERROR_STATE, call,
                     "the memory of '%s' is not of the kind TIDE_BUFFER_IPC: no other process can "
                     "open it",
                     whose);
}

static tide_status ipc_can_export(const tide_device *device, const char *call)
{
    return device->exports ? TIDE_OK
                           : tide_fail(TIDE_ERROR_DEVICE, call,
                                       "device %s has no memory for other processes", device->name);
}

tide_status tide_ipc_export_buffer(tide_buffers *buffers, tide_buffer buffer, tide_ipc_memory *out)
{
    const char *call = "tide_ipc_export_buffer";
    if (buffers == NULL || out == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the buffers or the result are NULL");
    TIDE_FORWARD(ipc_can_export(buffers->device, call));
    void *data = tide_buffer_pointer(buffers, buffer);
    if (data == NULL)
        return tide_error_status();
    const tide_buffer_record *record = tide_handle_of(buffers, buffer);
    if (tide_buffer_kind(record->key) != TIDE_BUFFER_IPC)
        return ipc_refuse_kind(buffers->name, call);
    return ipc_describe(buffers->device, data, tide_handle_bytes(record), data, call, out);
}

/* Memory of a slot: its own, or what a consumer outside or a graph holds, too, and that is the
 * slot's for as long as the array lives. NULL `data`: it has none. */
typedef struct ipc_place {
    char *data;
    size_t bytes;
    const tide_buffers *drawn; /* it is a buffer of these; NULL: of none */
} ipc_place;

static ipc_place ipc_place_of(const tide_pool_core *core, const tide_row *row,
                              const tide_slot *slot)
{
    const tide_slot_record *record = tide_slot_record_of(row, slot);
    const tide_export *exported = record->exported;
    tide_assert(exported == NULL || slot->data == NULL);
    if (exported != NULL)
        return (ipc_place){exported->data, exported->bytes, exported->buffers};
    return (ipc_place){slot->data, record->bytes,
                       record->buffer.generation != 0 ? core->buffers : NULL};
}

/* That of the row's live array that the address lies in; no data: of none. */
static ipc_place ipc_find_place(const tide_pool_core *core, const tide_row *row, const char *data)
{
    for (const tide_slot *slot = row->slots; slot < row->shelf->next; slot++) {
        const ipc_place place = ipc_place_of(core, row, slot);
        if (place.data != NULL && data >= place.data && data < place.data + place.bytes)
            return place;
    }
    return (ipc_place){0};
}

static tide_status ipc_export_place(const tide_pool_core *core, const ipc_place *place,
                                    const void *data, const char *call, tide_ipc_memory *out)
{
    if (place->drawn == NULL || (place->drawn->flags & 0xFF) != TIDE_BUFFER_IPC)
        return ipc_refuse_kind(core->name, call);
    return ipc_describe(core->device, place->data, place->bytes, data, call, out);
}

tide_status tide_ipc_export(tide_pool *pool, const void *data, tide_ipc_memory *out)
{
    const char *call = "tide_ipc_export";
    if (pool == NULL || data == NULL || out == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the pool, the data or the result are NULL");
    TIDE_FORWARD(tide_pool_use(pool, call));
    const tide_pool_core *core = pool->core;
    TIDE_FORWARD(ipc_can_export(core->device, call));
    if (core->capture != NULL)
        return tide_fail(TIDE_ERROR_STATE, call,
                         "pool '%s' is in a capture: its arrays become the graph's", core->name);
    for (uint32_t i = 0; i < core->rows.used_count; i++) {
        const ipc_place place = ipc_find_place(core, core->rows.used[i], data);
        if (place.data != NULL)
            return ipc_export_place(core, &place, data, call, out);
    }
    return tide_fail(TIDE_ERROR_ARGUMENT, call, "%p is in no live array of pool '%s'", data,
                     core->name);
}

/* ---- open and close ------------------------------------------------------------------------- */

static tide_status ipc_check(const tide_device *device, const tide_ipc_memory *memory,
                             const char *call)
{
    if (device == NULL || memory == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the device or the memory is NULL");
    TIDE_FORWARD(tide_growth_check(memory->growth_, call));
    return ipc_can_export(device, call);
}

void *tide_ipc_open(tide_device *device, const tide_ipc_memory *memory)
{
    const char *call = "tide_ipc_open";
    if (ipc_check(device, memory, call) != TIDE_OK || tide_device_hold(device, call) != TIDE_OK)
        return NULL;
    char *start = device->methods->ipc_open(device, memory->handle);
    if (start == NULL) {
        tide_device_drop(device);
        return NULL;
    }
    return start + memory->offset; /* its hold goes when it is closed */
}

tide_status tide_ipc_close(tide_device *device, const tide_ipc_memory *memory, void *data)
{
    const char *call = "tide_ipc_close";
    TIDE_FORWARD(ipc_check(device, memory, call));
    if ((uintptr_t)data <= memory->offset)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "%p is no opened memory", data);
    TIDE_FORWARD(tide_device_hold_open(device, call)); /* so that it has its methods */
    tide_status status = device->methods->ipc_close(device, (char *)data - memory->offset);
    if (tide_device_lost(device)) /* its driver knows nothing, and nothing has to be ended */
        status = TIDE_OK;
    if (status == TIDE_OK)
        tide_device_drop(device); /* which tide_ipc_open held */
    tide_device_drop(device);
    return status;
}

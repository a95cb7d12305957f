/* SPDX-License-Identifier: MIT */
/* Copies of arrays: between the host and a pool's device, and within the device. All on the pool's
 * stream, after what is queued on declared streams, and before what will be. */
#include <string.h>

#include <tidepool/device.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/settings.h"
#include "runtime/pool/row.h"
#include "runtime/pool/streams.h"
#include "runtime/transfer/copy.h"
#include "runtime/transfer/pinned_ring.h"

/* ---- what may be copied --------------------------------------------------------------------- */

/* In a careful pool, memory of a slot must be of a live array, and end with it. What is no slot's
 * may be an imported array or the user's own, of the pool's device. */
static tide_status copy_check_row(const tide_pool *pool, const tide_row *row, const char *data,
                                  size_t bytes, const char *call)
{
    for (uint32_t i = 0; i < row->count; i++) {
        const tide_slot *slot = &row->slots[i];
        const tide_slot_record *record = tide_slot_record_of(row, slot);
        const char *start = slot->data;
        if (start == NULL || data < start || data >= start + record->bytes)
            continue;
        size_t used = 0, at = (size_t)(data - start);
        tide_type_bytes(tide_type_facts_of(row->type), record->length, &used);
        tide_assert(at < record->bytes);
        tide_assert(!record->live || used <= record->bytes || record->exported != NULL);
        if (!record->live)
            return tide_fail(TIDE_ERROR_STALE, call, "%p is in no live array of pool '%s'",
                             (const void *)data, pool->core->name);
        if (at > used || bytes > used - at)
            return tide_fail(TIDE_ERROR_SIZE, call,
                             "%zu bytes from byte %zu on of an array of %zu bytes", bytes, at,
                             used);
    }
    return TIDE_OK;
}

/* Nothing would order a copy with the work of another device, and the host cannot read what only a device has. */
static tide_status copy_check_side(const tide_pool *pool, const void *data, bool host,
                                   const char *call)
{
    const tide_pool_core *core = pool->core;
    tide_device *device = core->device;
    if (!core->careful || device->methods->misplaced == NULL ||
        !device->methods->misplaced(device, data, host))
        return TIDE_OK;
    return tide_fail(
        TIDE_ERROR_ARGUMENT, call,
        "%p is %s, for pool '%s' of device %s: are the two pointers in the wrong order? "
        "(tide_copy_from copies between devices)",
        data, host ? "memory of a device on the side of the host" : "no memory of the device",
        core->name, device->name);
}

tide_status tide_copy_check(const tide_pool *pool, const void *data, size_t bytes, const char *call)
{
    const tide_pool_core *core = pool->core;
    tide_assert(bytes != 0 && call != NULL);
    if (data == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "a pointer to %zu bytes is NULL", bytes);
    if (bytes > SIZE_MAX / 2 || (uintptr_t)data > UINTPTR_MAX - bytes)
        return tide_fail(TIDE_ERROR_SIZE, call, "%zu bytes at %p exceed the address space", bytes,
                         data);
    if (!core->careful)
        return TIDE_OK;
    for (uint32_t i = 0; i < core->rows.used_count; i++)
        TIDE_FORWARD(copy_check_row(pool, core->rows.used[i], data, bytes, call));
    return copy_check_side(pool, data, false, call);
}

tide_status tide_copy_check_host(const tide_pool *pool, const void *host, const char *call)
{
    return copy_check_side(pool, host, true, call);
}

tide_status tide_copy_check_capture(const tide_pool *pool, const char *call)
{
    const tide_pool_core *core = pool->core;
    if (!tide_device_capturing(core->device, core->streams.own))
        return TIDE_OK;
    return tide_fail(TIDE_ERROR_STATE, call,
                     "a graph is captured on the stream of pool '%s': its replays would copy what "
                     "happens to be there then",
                     core->name);
}

/* A failure, in the call's name. */
static tide_status copy_say(tide_status status, const char *call)
{
    return status == TIDE_OK || tide_failed_last(call)
               ? status
               : tide_fail(status, call, "%s", tide_error_message());
}

/* May the call go on? What holds for all three copies; to copy nothing may be from and to NULL. */
static tide_status copy_admit(tide_pool *pool, const void *to, const void *from, size_t bytes,
                              const char *call)
{
    TIDE_FORWARD(tide_pool_use(pool, call));
    if (bytes == 0)
        return TIDE_OK;
    if (to == NULL || from == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the %s of %zu bytes is NULL",
                         to == NULL ? "target" : "source", bytes);
    return tide_streams_own(pool, call);
}

/* ---- the three copies ------------------------------------------------------------------------ */

/* Beyond it staging would wait for the device as a copy without it does, and copy once more. */
static bool copy_fits_ring(size_t bytes)
{
    return bytes <= TIDE_RING_CHUNKS * (size_t)tide_setting_get(TIDE_SETTING_staging) * 1024;
}

/* Between the host and the device: `up`, or down. The host waits, but for what is staged. */
static tide_status copy_across(tide_pool *pool, void *to, const void *from, size_t bytes, bool up,
                               const char *call)
{
    const void *host = up ? from : to;
    TIDE_FORWARD(copy_admit(pool, to, from, bytes, call));
    if (bytes == 0)
        return TIDE_OK;
    TIDE_FORWARD(tide_copy_check(pool, up ? to : from, bytes, call));
    if (pool->core->device->host) {
        memmove(to, from, bytes);
        return TIDE_OK;
    }
    TIDE_FORWARD(tide_copy_check_host(pool, host, call));
    TIDE_FORWARD(tide_streams_gather(pool, call));
    tide_device *device = pool->core->device;
    const tide_piece piece = {.host = (char *)(uintptr_t)host, .bytes = bytes};
    tide_status status = up && copy_fits_ring(bytes)
                             ? tide_ring_copy(pool, to, bytes, &piece, 1, true, call)
                             : device->methods->copy(device, pool->core->streams.own, to, from,
                                                     bytes, TIDE_COPY_WAITED);
    if (!up && status == TIDE_OK)
        return TIDE_OK;
    return tide_streams_finish(pool, copy_say(status, call), call);
}

tide_status tide_upload(tide_pool *pool, void *to, const void *from, size_t bytes)
{
    return copy_across(pool, to, from, bytes, true, "tide_upload");
}

tide_status tide_download(tide_pool *pool, void *to, const void *from, size_t bytes)
{
    return copy_across(pool, to, from, bytes, false, "tide_download");
}

/* A device copies the bytes of one copy in any order, so the two sides must not overlap. */
static tide_status copy_check_apart(const char *to, const char *from, size_t bytes,
                                    const char *call)
{
    tide_assert(to != NULL && from != NULL && bytes != 0);
    size_t apart = to > from ? (size_t)(to - from) : (size_t)(from - to);
    return apart >= bytes
               ? TIDE_OK
               : tide_fail(TIDE_ERROR_ARGUMENT, call,
                           "source and target of %zu bytes are only %zu apart", bytes, apart);
}

tide_status tide_copy(tide_pool *pool, void *to, const void *from, size_t bytes)
{
    const char *call = "tide_copy";
    TIDE_FORWARD(copy_admit(pool, to, from, bytes, call));
    if (bytes == 0)
        return TIDE_OK;
    TIDE_FORWARD(tide_copy_check(pool, to, bytes, call));
    TIDE_FORWARD(tide_copy_check(pool, from, bytes, call));
    TIDE_FORWARD(copy_check_apart(to, from, bytes, call));
    tide_device *device = pool->core->device;
    TIDE_FORWARD(tide_streams_gather(pool, call));
    tide_status status =
        device->methods->copy(device, pool->core->streams.own, to, from, bytes, TIDE_COPY_WITHIN);
    return tide_streams_finish(pool, copy_say(status, call), call);
}

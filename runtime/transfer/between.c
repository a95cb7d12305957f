/* SPDX-License-Identifier: MIT */
/* Two pools, on one device or on two: copies from one to the other. */
#include <tidepool/device.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/pool/row.h"
#include "runtime/pool/streams.h"
#include "runtime/transfer/copy.h"

static tide_status between_admit(tide_pool *pool, const void *data, size_t bytes, const char *call)
{
    TIDE_FORWARD(tide_pool_use(pool, call));
    if (bytes == 0)
        return TIDE_OK;
    TIDE_FORWARD(tide_streams_own(pool, call));
    return tide_copy_check(pool, data, bytes, call);
}

static tide_status between_check_devices(const tide_device *device, const tide_device *other,
                                         const char *call)
{
    if (device == other || (device->host && other->host) ||
        (device->methods == other->methods && device->methods->copy_between != NULL))
        return TIDE_OK;
    return tide_fail(TIDE_ERROR_ARGUMENT, call,
                     "nothing copies from device %s to %s: download and upload", other->name,
                     device->name);
}

/* The source's stream goes on behind the copy. Where no event says so the host waits, for the copy
 * is queued: with an error alone the source could be given up while it is read.
 *
 * On one device it is a copy with an order before and after; memory given to a pool is a device of
 * its own, but the host's as well. */
static tide_status between_copy(const tide_pool *pool, void *to, const tide_pool *source,
                                const void *from, size_t bytes)
{
    tide_device *device = pool->core->device, *other = source->core->device;
    void *stream = pool->core->streams.own, *before = source->core->streams.own;
    if (device != other && !device->host)
        return device->methods->copy_between(device, stream, to, other, before, from, bytes);
    TIDE_FORWARD(device->methods->order(device, before, stream));
    TIDE_FORWARD(device->methods->copy(device, stream, to, from, bytes, TIDE_COPY_WITHIN));
    return tide_device_drain_failed(device, stream, device->methods->order(device, stream, before));
}

tide_status tide_copy_from(tide_pool *pool, void *to, tide_pool *source, const void *from,
                           size_t bytes)
{
    const char *call = "tide_copy_from";
    if (pool == source)
        return tide_copy(pool, to, from, bytes);
    TIDE_FORWARD(between_admit(pool, to, bytes, call));
    TIDE_FORWARD(between_admit(source, from, bytes, call));
    TIDE_FORWARD(between_check_devices(pool->core->device, source->core->device, call));
    if (bytes == 0)
        return TIDE_OK;
    TIDE_FORWARD(tide_device_check_captures(pool->core->device, pool->core->streams.own,
                                            source->core->device, source->core->streams.own, call));
    TIDE_FORWARD(tide_streams_gather(pool, call));
    TIDE_FORWARD(tide_streams_gather(source, call));
    tide_status status = between_copy(pool, to, source, from, bytes);
    status = tide_streams_finish(pool, status, call);
    return tide_streams_finish(source, status, call);
}

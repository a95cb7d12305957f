/* SPDX-License-Identifier: MIT */
/* Waits for a device by whoever gives something up that work in flight may use: it must not go
 * before that is over. */
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/device/device.h"

static bool device_is_over(const tide_device *device, tide_status waited)
{
    return waited != TIDE_ERROR_STATE || tide_device_lost(device);
}

bool tide_device_stream_over(tide_device *device, void *stream)
{
    return device_is_over(device, device->methods->wait(device, stream));
}

tide_status tide_device_drain_failed(tide_device *device, void *stream, tide_status status)
{
    if (TIDE_LIKELY(status == TIDE_OK))
        return TIDE_OK;
    tide_failure first;
    tide_failure_keep(&first);
    (void)tide_device_stream_over(device, stream);
    tide_failure_restore(&first);
    return status;
}

bool tide_device_mark_over(tide_device *device, void *mark)
{
    tide_assert(mark != NULL);
    return device_is_over(device, device->methods->mark_wait(device, mark));
}

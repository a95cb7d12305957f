/* SPDX-License-Identifier: MIT */
/* Waits for a device by whoever gives something up that work in flight may use: it must not go
 * before that is over, and cannot stay for ever. */
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/device/device.h"

typedef enum what { ALL, STREAM, MARK } what;

static tide_status device_wait(tide_device *device, what kind, void *of)
{
    const tide_device_methods *methods = device->methods;
    return kind == ALL      ? methods->wait_all(device)
           : kind == STREAM ? methods->wait(device, of)
                            : methods->mark_wait(device, of);
}

static bool device_is_over(tide_device *device, what kind, void *of)
{
    tide_status status = device_wait(device, kind, of);
    bool again = status != TIDE_OK && status != TIDE_ERROR_STATE && !tide_device_lost(device) &&
                 !tide_device_exiting(device);
    if (again && kind == MARK && device->methods->mark_done(device, of))
        return true; /* it has been passed, or what it stands behind has failed */
    if (again)
        status = device_wait(device, kind, of);
    return status != TIDE_ERROR_STATE || tide_device_lost(device);
}

bool tide_device_all_over(tide_device *device)
{
    return device_is_over(device, ALL, NULL);
}

bool tide_device_stream_over(tide_device *device, void *stream)
{
    return device_is_over(device, STREAM, stream);
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
    return device_is_over(device, MARK, mark);
}

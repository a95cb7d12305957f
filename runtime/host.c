/* SPDX-License-Identifier: MIT */
/* The host as a device: aligned memory of the process. */
#include "runtime/device.h"
#include "runtime/os.h"

static void *host_allocate(tide_device *device, size_t bytes, size_t align)
{
    (void)device;
    return tide_os_aligned(bytes, align);
}

static void host_release(tide_device *device, void *data, size_t bytes)
{
    (void)device;
    (void)bytes;
    tide_os_free(data);
}

tide_device tide_device_host = {
    .name = "host", .allocate = host_allocate, .release = host_release, .host = true};

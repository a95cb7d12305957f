/* SPDX-License-Identifier: MIT */
/* The host as a device: aligned memory of the process. From HUGE_FROM on a slot has a mapping of
 * its own with huge pages advised: its first touch then costs a sixth to a half, random access to it
 * nine tenths at 2 MiB and six at 16 and more (the benchmark's cases `huge-…` measure both).
 * HUGE_FROM is where it begins to pay: one huge page. */
#include "runtime/device.h"
#include "runtime/os.h"

enum { HUGE_FROM = 2 << 20 };

static void *host_allocate(tide_device *device, size_t bytes, size_t align)
{
    (void)device;
    return bytes >= HUGE_FROM ? tide_os_map_huge(bytes) : tide_os_aligned(bytes, align);
}

static void host_release(tide_device *device, void *data, size_t bytes)
{
    (void)device;
    if (bytes >= HUGE_FROM)
        tide_os_unmap_huge(data, bytes);
    else
        tide_os_free(data);
}

tide_device tide_device_host = {
    .name = "host", .allocate = host_allocate, .release = host_release, .host = true};

/* SPDX-License-Identifier: MIT */
/* The host as a device: aligned memory of the process. From HUGE_FROM on a slot has a mapping of
 * its own with huge pages advised: first touch and random access of large arrays then cost a
 * fraction (measured by the benchmark case `huge`); below that the rounding to 2 MiB would waste
 * more than it gains. */
#include "runtime/device.h"
#include "runtime/os.h"

enum { HUGE_PAGE = 2 << 20, HUGE_FROM = 8 << 20 };

static size_t huge_bytes(size_t bytes)
{
    return (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

static void *host_allocate(tide_device *device, size_t bytes, size_t align)
{
    (void)device;
    return bytes >= HUGE_FROM ? tide_os_map_huge(huge_bytes(bytes)) : tide_os_aligned(bytes, align);
}

static void host_release(tide_device *device, void *data, size_t bytes)
{
    (void)device;
    if (bytes >= HUGE_FROM)
        tide_os_unmap_huge(data, huge_bytes(bytes));
    else
        tide_os_free(data);
}

tide_device tide_device_host = {
    .name = "host", .allocate = host_allocate, .release = host_release, .host = true};

/* SPDX-License-Identifier: MIT */
/* The host as a device: aligned memory of the process. From HUGE_FROM on a slot has a mapping of
 * its own with huge pages advised: its first touch then costs a sixth to a half, random access to
 * it nine tenths at 2 MiB and six at 16 and more (the benchmark's cases `huge-…` measure both).
 * HUGE_FROM is where it begins to pay: one huge page.
 *
 * Its one stream is the calling thread: what is queued is done at once, so nothing needs an order.
 */
#include <string.h>

#include "runtime/device/device.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"

enum { HUGE_FROM = 2 << 20 };

static tide_status host_allocate(tide_device *device, void *stream, int memory, size_t bytes,
                                 size_t align, void **data)
{
    (void)device, (void)stream, (void)memory;
    *data = bytes >= HUGE_FROM ? tide_os_map_huge(bytes) : tide_os_aligned(bytes, align);
    return *data != NULL ? TIDE_OK : TIDE_ERROR_MEMORY;
}

static void host_release(tide_device *device, void *stream, int memory, void *data, size_t bytes)
{
    (void)device, (void)stream, (void)memory;
    if (bytes >= HUGE_FROM)
        tide_os_unmap_huge(data, bytes);
    else
        tide_os_free(data);
}

/* Doubles what is filled already: a few large copies, whatever the size of the pattern. */
static tide_status host_fill(tide_device *device, void *stream, void *data, const void *pattern,
                             size_t pattern_bytes, size_t count)
{
    (void)device, (void)stream;
    char *to = data;
    size_t bytes = pattern_bytes * count;
    if (bytes == 0)
        return TIDE_OK;
    if (pattern_bytes == 1) {
        memset(to, *(const unsigned char *)pattern, count);
        return TIDE_OK;
    }
    memcpy(to, pattern, pattern_bytes);
    for (size_t done = pattern_bytes, next; done < bytes; done += next) {
        next = done < bytes - done ? done : bytes - done;
        memcpy(to + done, to, next);
    }
    return TIDE_OK;
}

static tide_status host_copy(tide_device *device, void *stream, void *to, const void *from,
                             size_t bytes)
{
    (void)device, (void)stream;
    memmove(to, from, bytes);
    return TIDE_OK;
}

static tide_status host_order(tide_device *device, void *before, void *after)
{
    (void)device, (void)before, (void)after;
    return TIDE_OK;
}

static tide_status host_wait(tide_device *device, void *stream)
{
    (void)device, (void)stream;
    return TIDE_OK;
}

static tide_status host_wait_all(tide_device *device)
{
    (void)device;
    return TIDE_OK;
}

/* Every place of the host's stream has been passed. */
static void *host_mark(tide_device *device, void *stream)
{
    (void)stream;
    return device;
}

static bool host_mark_done(tide_device *device, void *mark)
{
    (void)device, (void)mark;
    return true;
}

static tide_status host_mark_wait(tide_device *device, void *mark)
{
    (void)device, (void)mark;
    return TIDE_OK;
}

static void host_mark_drop(tide_device *device, void *mark)
{
    (void)device, (void)mark;
}

static tide_status host_mark_follow(tide_device *device, void *mark, void *stream)
{
    (void)device, (void)mark, (void)stream;
    return TIDE_OK;
}

static bool host_capturing(tide_device *device, void *stream)
{
    (void)device, (void)stream;
    return false;
}

static uint64_t host_stream_number(tide_device *device, void *stream)
{
    (void)device;
    return stream == NULL ? 1 : 0;
}

static void *host_buffer(tide_device *device, const void *data, size_t *offset)
{
    (void)device, (void)data, (void)offset;
    return NULL;
}

static void *host_load(tide_device *device, const void *code, size_t bytes, const char *options)
{
    (void)device, (void)code, (void)bytes, (void)options;
    tide_fail(TIDE_ERROR_DEVICE, "tide_device", "the host runs no kernels");
    return NULL;
}

static void host_unload(tide_device *device, void *module)
{
    (void)device, (void)module;
}

static void *host_kernel(tide_device *device, void *module, const char *name)
{
    (void)device, (void)module;
    tide_fail(TIDE_ERROR_DEVICE, "tide_device", "the host runs no kernel '%s'", name);
    return NULL;
}

static tide_status host_launch(tide_device *device, void *stream, void *kernel, size_t groups,
                               size_t group, const tide_argument *arguments, size_t count)
{
    (void)device, (void)stream, (void)kernel, (void)groups, (void)group, (void)arguments;
    (void)count;
    return tide_fail(TIDE_ERROR_DEVICE, "tide_device", "the host runs no kernels");
}

static void host_close(tide_device *device)
{
    (void)device;
}

static const tide_device_methods methods = {.allocate = host_allocate,
                                            .release = host_release,
                                            .fill = host_fill,
                                            .copy = host_copy,
                                            .order = host_order,
                                            .wait = host_wait,
                                            .wait_all = host_wait_all,
                                            .mark = host_mark,
                                            .mark_done = host_mark_done,
                                            .mark_wait = host_mark_wait,
                                            .mark_drop = host_mark_drop,
                                            .mark_follow = host_mark_follow,
                                            .capturing = host_capturing,
                                            .stream_number = host_stream_number,
                                            .buffer = host_buffer,
                                            .load = host_load,
                                            .unload = host_unload,
                                            .kernel = host_kernel,
                                            .launch = host_launch,
                                            .close = host_close};

tide_device tide_device_host = {.methods = &methods,
                                .name = "host",
                                .description = "the memory of this process",
                                .dl = {TIDE_DL_CPU, 0},
                                .host = true,
                                .integrated = true,
                                .opened = 1};

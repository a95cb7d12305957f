/* SPDX-License-Identifier: MIT */
/* The host as a device: aligned memory of the process. Its one stream is the calling thread: work
 * is done when it is queued, so nothing needs an order.
 *
 * From MAPPED_FROM on memory is a mapping of its own. Given back, it leaves the process, whatever
 * the C library keeps beside it.
 *
 * From HUGE_FROM on huge pages are advised, and the mapping begins at one. Then the first touch
 * takes a sixth to a half of the time, and random access nine tenths at 2 MiB, six tenths from 16
 * MiB on ('Huge pages' in tests/bench/README.md). HUGE_FROM is one huge page: there it
 * begins to pay.
 *
 * Mappings begin with a page, so arrays that began with their mappings would all begin in one set of
 * a cache: loops over several of them would find it full ('Placement' there). So each begins some
 * lines, and one of large or huge pages some times 4 KiB, into its mapping, the next of them elsewhere.
 * That costs a page at most, a huge one 60 KiB of address space in front, which nobody touches, and a
 * page. */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/base/shim.h"
#include "runtime/device/device.h"

enum {
    MAPPED_FROM = 64 << 10,
    MAPPED_PAGES = 16, /* at least: with pages of 64 KiB one more would be too much for less */
    HUGE_FROM = 2 << 20,
    LINE = 64,
    SPREAD_LINES = 64, /* a set of a first cache for each, as for the lines of 4 KiB */
    SPREAD_PAGES = 16, /* of 4 KiB: a second cache has so many times the sets */
    SPREAD_BYTES = SPREAD_LINES * LINE
};

_Static_assert((HUGE_FROM & (HUGE_FROM - 1)) == 0, "mappings are aligned to one huge page");
_Static_assert(SPREAD_PAGES *SPREAD_BYTES < HUGE_FROM, "the address tells where a mapping begins");

/* ---- mappings ------------------------------------------------------------------------------- */

bool tide_host_maps(size_t bytes)
{
    return bytes >= MAPPED_FROM && bytes >= (size_t)getpagesize() * MAPPED_PAGES;
}

/* A mapping begins at a multiple of it, and its memory before the next one. */
static uintptr_t host_unit(size_t bytes)
{
    return bytes >= HUGE_FROM ? HUGE_FROM : (uintptr_t)getpagesize();
}

/* Where the next mapping's memory begins in it. Lines follow the golden section: however many there
 * are, the next falls into the widest gap. */
static size_t host_spread(size_t bytes, size_t align)
{
    static uint32_t count;
    uint32_t n = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    size_t line = (uint32_t)(n * 0x9E3779B9u) / (UINT32_MAX / SPREAD_LINES + 1);
    size_t page = n * 5 % SPREAD_PAGES % (host_unit(bytes) / SPREAD_BYTES);
    tide_assert(line < SPREAD_LINES);
    return (page * SPREAD_BYTES + line * LINE) & ~(align - 1);
}

static void *host_map(size_t bytes, size_t align)
{
    size_t page = (size_t)getpagesize(), to = align > page ? align : page;
    size_t offset = host_spread(bytes, align);
    char *start = tide_os_map(bytes + offset, bytes >= HUGE_FROM ? HUGE_FROM : to);
    if (start == NULL)
        return NULL;
    tide_assert((uintptr_t)start % align == 0);
    tide_shim_root(start + offset, bytes);
    return start + offset;
}

/* Where the mapping begins in which the memory lies. */
static char *host_mapping(void *data, size_t bytes)
{
    return (char *)data - ((uintptr_t)data & (host_unit(bytes) - 1));
}

static void host_unmap(void *data, size_t bytes)
{
    char *start = host_mapping(data, bytes);
    tide_shim_unroot(data, bytes);
    tide_os_unmap(start, (size_t)((char *)data + bytes - start));
}

bool tide_host_renew(void *data, size_t bytes)
{
    char *start = host_mapping(data, bytes);
    tide_assert(tide_host_maps(bytes));
    return tide_os_renew(start, (size_t)((char *)data + bytes - start));
}

/* The address tells where a mapping begins, by the size: so in front of a huge one that is none any
 * more, whole pages go, too. */
void tide_host_cut(void *data, size_t had, size_t bytes)
{
    const uintptr_t page = (uintptr_t)getpagesize();
    char *start = host_mapping(data, had), *first = host_mapping(data, bytes);
    char *end = (char *)data + had, *last = (char *)data + bytes;
    tide_assert(tide_host_maps(bytes) && bytes < had);
    last += (page - (uintptr_t)last % page) % page;
    tide_shim_unroot(data, had);
    if (first != start)
        tide_os_unmap(start, (size_t)(first - start));
    if (last < end)
        tide_os_unmap(last, (size_t)(end - last));
    tide_shim_root(data, bytes);
}

/* ---- the device ----------------------------------------------------------------------------- */

static tide_status host_allocate(tide_device *device, void *stream, int memory, size_t bytes,
                                 size_t align, void **data)
{
    (void)device, (void)stream, (void)memory;
    tide_assert(bytes > 0 && align > 0 && (align & (align - 1)) == 0);
    tide_assert(align <= HUGE_FROM); /* a mapping is aligned to no more */
    *data = tide_host_maps(bytes) ? host_map(bytes, align) : tide_os_aligned(bytes, align);
    return *data != NULL ? TIDE_OK : TIDE_ERROR_MEMORY;
}

static void host_release(tide_device *device, void *stream, int memory, void *data, size_t bytes)
{
    (void)device, (void)stream, (void)memory;
    tide_assert(data != NULL);
    if (tide_host_maps(bytes))
        host_unmap(data, bytes);
    else
        tide_os_free(data);
}

/* Doubles the filled part: a few large copies, whatever the size of the pattern. */
static tide_status host_fill(tide_device *device, void *stream, void *data, const void *pattern,
                             size_t pattern_bytes, size_t count)
{
    (void)device, (void)stream;
    char *to = data;
    tide_assert(pattern_bytes > 0 && count <= SIZE_MAX / pattern_bytes);
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
        tide_assert(next > 0 && next <= done); /* source and target do not overlap */
        memcpy(to + done, to, next);
    }
    return TIDE_OK;
}

static tide_status host_copy(tide_device *device, void *stream, void *to, const void *from,
                             size_t bytes, tide_copy_kind kind)
{
    (void)device, (void)stream, (void)kind;
    tide_assert(bytes == 0 || (to != NULL && from != NULL));
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

static uint64_t host_stream_number(tide_device *device, void *stream)
{
    (void)device;
    return stream == NULL;
}

static const tide_device_methods methods = {.allocate = host_allocate,
                                            .release = host_release,
                                            .fill = host_fill,
                                            .copy = host_copy,
                                            .order = host_order,
                                            .wait = host_wait,
                                            .stream_number = host_stream_number};

tide_device tide_device_host = {.methods = &methods,
                                .name = "host",
                                .description = "the memory of this process",
                                .dl = {TIDE_DL_CPU, 0},
                                .host = true,
                                .integrated = true,
                                .opened = 1};

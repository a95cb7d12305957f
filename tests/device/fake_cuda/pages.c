/* SPDX-License-Identifier: MIT */
/* The fake's virtual memory management, by the driver's documentation: ranges of addresses, memory without an
 * address, and what is mapped where. A mapping has two views, as the arena has. What the
 * documentation calls undefined faults. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arena.h"
#include "host_code.h"
#include "model.h"

enum { HANDLES = 1024, GRANULARITY = 256 << 10 };

#define NOTHING (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

typedef struct range {
    char *device, *host; /* NULL: none */
    size_t bytes;
} range;

typedef struct physical {
    bool live, released, mapped, access; /* access: by its device */
    unsigned device;
    int file;
    size_t bytes;
    char *at; /* where it is mapped */
} physical;

static struct {
    range ranges[RANGES];
    physical handles[HANDLES];
} pages;

void *pages_see(const void *at)
{
    for (const range *one = pages.ranges; one < pages.ranges + RANGES; one++)
        if (one->device != NULL && (const char *)at >= one->device &&
            (const char *)at < one->device + one->bytes)
            return one->host + ((const char *)at - one->device);
    return NULL;
}

static physical *mapped_at(const char *at)
{
    for (physical *one = pages.handles; one < pages.handles + HANDLES; one++)
        if (one->mapped && at >= one->at && at < one->at + one->bytes)
            return one;
    return NULL;
}

/* Mappings that lie side by side are as one. */
bool pages_live(const void *data, size_t bytes)
{
    const char *at = data, *end = at + bytes;
    do {
        const physical *one = mapped_at(at);
        if (one == NULL || !one->access)
            return false;
        at = one->at + one->bytes;
    } while (at < end);
    return true;
}

const context *pages_owner(const void *data)
{
    const physical *one = mapped_at(data);
    return one != NULL ? &fake.contexts[one->device] : NULL;
}

size_t pages_extents(extent *all)
{
    size_t count = 0;
    for (const physical *one = pages.handles; one < pages.handles + HANDLES; one++)
        if (one->mapped && one->access) {
            if (all != NULL)
                all[count] = (extent){.address = (uintptr_t)one->at, .bytes = one->bytes};
            count++;
        }
    return count;
}

void pages_show_all(bool shown)
{
    for (const physical *one = pages.handles; one < pages.handles + HANDLES; one++)
        if (one->mapped)
            memory_show(one->at, one->bytes, shown);
}

/* ---- the driver's ------------------------------------------------------------------------- */

static bool is_right(const tide_cu_page_properties *properties)
{
    return properties->allocation == TIDE_CU_ALLOCATION_PINNED &&
           properties->handles == TIDE_CU_HANDLE_FILE && properties->direct == 1 &&
           properties->location.type == TIDE_CU_LOCATION_DEVICE &&
           (unsigned)properties->location.id < fake.devices;
}

/* FAKE_CUDA_GRANULARITY: less, for programs whose arrays are small. */
static size_t granularity(void)
{
    const char *asked = getenv("FAKE_CUDA_GRANULARITY");
    return asked != NULL ? strtoul(asked, NULL, 10) : GRANULARITY;
}

int pages_granularity(size_t *out, const tide_cu_page_properties *properties)
{
    *out = granularity();
    return is_right(properties) ? 0 : TIDE_CU_INVALID_VALUE;
}

int pages_reserve(unsigned long long *out, size_t bytes, size_t align, uint64_t flags)
{
    range *one = pages.ranges;
    while (one < pages.ranges + RANGES && one->device != NULL)
        one++;
    if (bytes == 0 || bytes % PAGE != 0 || (align & (align - 1)) != 0 || flags != 0)
        return TIDE_CU_INVALID_VALUE;
    if (one == pages.ranges + RANGES || bytes > RANGE_BYTES || align > ARENA_BYTES)
        return TIDE_CU_OUT_OF_MEMORY;
    *one =
        (range){.device = arena.device + ARENA_BYTES + (size_t)(one - pages.ranges) * RANGE_BYTES,
                .host = mmap(NULL, bytes, PROT_NONE, NOTHING, -1, 0),
                .bytes = bytes};
    if (one->host == MAP_FAILED)
        abort();
    *out = (uintptr_t)one->device;
    return 0;
}

static void map_nothing(void *at, size_t bytes)
{
    if (mmap(at, bytes, PROT_NONE, NOTHING | MAP_FIXED, -1, 0) == MAP_FAILED)
        abort();
}

static void end_range(range *one)
{
    map_nothing(one->device, one->bytes);
    munmap(one->host, one->bytes);
    *one = (range){.device = NULL};
}

static bool is_mapped_between(const char *from, const char *to)
{
    for (const physical *one = pages.handles; one < pages.handles + HANDLES; one++)
        if (one->mapped && one->at < to && from < one->at + one->bytes)
            return true;
    return false;
}

int pages_unreserve(uint64_t at, size_t bytes)
{
    char *from = (char *)(uintptr_t)at;
    for (range *one = pages.ranges; one < pages.ranges + RANGES; one++) {
        if (one->device == NULL || one->device != from || one->bytes != bytes)
            continue;
        if (is_mapped_between(from, from + bytes))
            return TIDE_CU_INVALID_VALUE;
        end_range(one);
        return 0;
    }
    return TIDE_CU_INVALID_VALUE;
}

int pages_create(unsigned long long *out, size_t bytes, const tide_cu_page_properties *properties,
                 uint64_t flags)
{
    if (bytes == 0 || bytes % granularity() != 0 || flags != 0 || !is_right(properties))
        return TIDE_CU_INVALID_VALUE;
    physical *one = pages.handles;
    while (one < pages.handles + HANDLES && one->live)
        one++;
    if (one == pages.handles + HANDLES || fake.live_bytes + memory_kept() + bytes > fake.limit)
        return TIDE_CU_OUT_OF_MEMORY;
    *one = (physical){.live = true,
                      .device = (unsigned)properties->location.id,
                      .bytes = bytes,
                      .file = memfd_create("fake_cuda", MFD_CLOEXEC)};
    if (one->file < 0 || ftruncate(one->file, (off_t)bytes) != 0)
        abort();
    fake.live_bytes += bytes;
    *out = (unsigned long long)(one - pages.handles) + 1;
    return 0;
}

static physical *handle_of(unsigned long long handle)
{
    if (handle == 0 || handle > HANDLES || pages.handles[handle - 1].released ||
        !pages.handles[handle - 1].live)
        control_fault("the memory", (const void *)(uintptr_t)handle);
    return &pages.handles[handle - 1];
}

/* The memory goes when neither a handle nor a mapping is left. */
static void end_unused(physical *one)
{
    if (!one->released || one->mapped)
        return;
    close(one->file);
    fake.live_bytes -= one->bytes;
    one->live = false;
}

int pages_release(unsigned long long handle)
{
    physical *one = handle_of(handle);
    one->released = true;
    end_unused(one);
    return 0;
}

/* Of all of it, at addresses that are reserved and free. What it holds is nobody's business: 0xA5. */
int pages_map(uint64_t at, size_t bytes, size_t offset, unsigned long long handle, uint64_t flags)
{
    physical *one = handle_of(handle);
    char *from = (char *)(uintptr_t)at, *host = pages_see(from);
    if (host == NULL || pages_see(from + bytes - 1) == NULL || at % granularity() != 0 ||
        bytes != one->bytes || offset != 0 || flags != 0 || one->mapped ||
        is_mapped_between(from, from + bytes))
        return TIDE_CU_INVALID_VALUE;
    const int fixed = MAP_SHARED | MAP_FIXED;
    if (mmap(host, bytes, PROT_READ | PROT_WRITE, fixed, one->file, 0) == MAP_FAILED ||
        mmap(from, bytes, PROT_NONE, fixed, one->file, 0) == MAP_FAILED)
        abort();
    memset(host, 0xA5, bytes);
    one->mapped = true;
    one->at = from;
    one->access = false;
    return 0;
}

/* Nothing orders it: what uses the memory must be over, and the host have seen that. */
int pages_unmap(uint64_t at, size_t bytes)
{
    char *from = (char *)(uintptr_t)at;
    physical *one = mapped_at(from);
    if (one == NULL || one->at != from || one->bytes != bytes)
        return TIDE_CU_INVALID_VALUE;
    const work last = {.ranges = {{from, bytes, true}}, .range_count = 1, .what = "cuMemUnmap"};
    if (one->access)
        model_check(&last, &fake.known, "the host");
    map_nothing(pages_see(from), bytes);
    map_nothing(from, bytes);
    one->mapped = false;
    end_unused(one);
    return 0;
}

/* Of whole mappings, without a hole between them, for the device that has the memory. */
int pages_set_access(uint64_t at, size_t bytes, const tide_cu_access *access, size_t count)
{
    char *from = (char *)(uintptr_t)at, *end = from + bytes;
    for (char *next = from; next < end;) {
        physical *one = mapped_at(next);
        if (one == NULL || one->at != next || one->at + one->bytes > end || count != 1 ||
            access->location.type != TIDE_CU_LOCATION_DEVICE ||
            (unsigned)access->location.id != one->device)
            return TIDE_CU_INVALID_VALUE;
        one->access = access->flags == TIDE_CU_ACCESS_READ_WRITE;
        next += one->bytes;
    }
    return 0;
}

void pages_reset(void)
{
    for (physical *one = pages.handles; one < pages.handles + HANDLES; one++)
        if (one->live)
            close(one->file);
    for (range *one = pages.ranges; one < pages.ranges + RANGES; one++)
        if (one->device != NULL)
            end_range(one);
    memset(&pages, 0, sizeof pages);
}

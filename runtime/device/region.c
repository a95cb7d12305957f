/* SPDX-License-Identifier: MIT */
/* Memory of the caller's: which pieces are free, and which of them serves. */
#include "runtime/device/region.h"

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"

enum { PIECE = 64 }; /* all pieces are multiples of it, in size and address */

/* A free piece, at its own start. */
typedef struct region_piece {
    struct region_piece *next; /* of a higher address; on the stack: released before */
    size_t bytes;
} region_piece;

typedef struct tide_region {
    tide_device device;
    tide_device_methods methods; /* the host's, with two of our own */
    region_piece *free;
    region_piece *released; /* atomic: a stack of pieces that nobody has sorted in yet */
} tide_region;

_Static_assert(sizeof(region_piece) <= PIECE, "each piece has room for its entry");
_Static_assert(offsetof(tide_region, device) == 0, "the device is the region");

static tide_region *region_of(tide_device *device)
{
    tide_assert(device->methods == &((tide_region *)(void *)device)->methods);
    return (tide_region *)(void *)device;
}

static char *region_end(region_piece *piece)
{
    return (char *)piece + piece->bytes;
}

/* ---- release ---------------------------------------------------------------------------- */

static size_t region_round_up(size_t bytes)
{
    return (bytes + PIECE - 1) / PIECE * PIECE;
}

/* Any thread: the deleter of an exported array releases, too. */
static void region_release(tide_device *device, void *stream, int memory, void *data, size_t bytes)
{
    (void)stream, (void)memory;
    tide_region *region = region_of(device);
    region_piece *piece = data;
    tide_assert((uintptr_t)data % PIECE == 0 && bytes > 0);
    piece->bytes = region_round_up(bytes);
    piece->next = __atomic_load_n(&region->released, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&region->released, &piece->next, piece, true,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
}

/* Joins the piece with the one behind it, if they touch. */
static void region_join(region_piece *piece)
{
    region_piece *next = piece->next;
    tide_assert(next == NULL || region_end(piece) <= (char *)next);
    if (next == NULL || region_end(piece) != (char *)next)
        return;
    piece->bytes += next->bytes;
    piece->next = next->next;
}

static void region_insert(tide_region *region, region_piece *piece)
{
    region_piece *before = NULL, *after = region->free;
    while (after != NULL && after < piece) {
        before = after;
        after = after->next;
    }
    tide_assert(before == NULL || region_end(before) <= (char *)piece); /* released once */
    piece->next = after;
    if (before != NULL)
        before->next = piece;
    else
        region->free = piece;
    region_join(piece);
    if (before != NULL)
        region_join(before);
}

/* What was released since the last time is free now. */
static void region_settle(tide_region *region)
{
    region_piece *piece = __atomic_exchange_n(&region->released, NULL, __ATOMIC_ACQUIRE);
    while (piece != NULL) {
        region_piece *next = piece->next;
        region_insert(region, piece);
        piece = next;
    }
}

/* ---- allocate --------------------------------------------------------------------------- */

/* What the piece has in front of its first aligned address. */
static size_t region_gap(const region_piece *piece, size_t align)
{
    return (align - (uintptr_t)piece % align) % align;
}

static bool region_fits(const region_piece *piece, size_t bytes, size_t align)
{
    size_t gap = region_gap(piece, align);
    return gap < piece->bytes && piece->bytes - gap >= bytes;
}

/* Cuts the bytes out of a piece that fits; `link` is what leads to it. */
static void *region_cut(region_piece **link, size_t bytes, size_t align)
{
    region_piece *piece = *link;
    size_t gap = region_gap(piece, align), rest = piece->bytes - gap - bytes;
    char *data = (char *)piece + gap;
    tide_assert(gap % PIECE == 0 && rest % PIECE == 0);
    region_piece *next = piece->next;
    if (rest > 0) {
        region_piece *behind = (region_piece *)(void *)(data + bytes);
        *behind = (region_piece){.next = next, .bytes = rest};
        next = behind;
    }
    if (gap > 0)
        *piece = (region_piece){.next = next, .bytes = gap};
    else
        *link = next;
    return data;
}

/* Says how much is missing. */
static tide_status region_refuse(const tide_region *region, size_t bytes, size_t align)
{
    size_t free = 0, most = 0;
    for (const region_piece *piece = region->free; piece != NULL; piece = piece->next) {
        size_t gap = region_gap(piece, align), use = gap < piece->bytes ? piece->bytes - gap : 0;
        free += piece->bytes;
        most = use > most ? use : most;
    }
    tide_assert(most < bytes && most <= free);
    return tide_fail(TIDE_ERROR_LIMIT, "the memory given",
                     "%zu bytes are missing: %zu wanted in one piece, the largest free has %zu; "
                     "%zu of %zu are free",
                     bytes - most, bytes, most, free, region->device.bytes);
}

static tide_status region_allocate(tide_device *device, void *stream, int memory, size_t bytes,
                                   size_t align, void **data)
{
    (void)stream, (void)memory;
    tide_region *region = region_of(device);
    tide_assert(bytes > 0 && bytes <= SIZE_MAX - PIECE && (align & (align - 1)) == 0);
    bytes = region_round_up(bytes);
    align = align > PIECE ? align : PIECE;
    region_settle(region);
    for (region_piece **link = &region->free; *link != NULL; link = &(*link)->next)
        if (region_fits(*link, bytes, align)) {
            *data = region_cut(link, bytes, align);
            tide_assert((uintptr_t)*data % align == 0);
            return TIDE_OK;
        }
    return region_refuse(region, bytes, align);
}

/* ---- create, end ------------------------------------------------------------------------ */

static void region_end_of_holds(tide_device *device)
{
    tide_os_free(region_of(device));
}

size_t tide_region_bytes(const tide_device *device)
{
    tide_assert(device->unheld == region_end_of_holds);
    return device->bytes;
}

tide_device *tide_region_create(void *memory, size_t bytes, const char *call)
{
    size_t gap = (PIECE - (uintptr_t)memory % PIECE) % PIECE;
    size_t usable = bytes > gap ? (bytes - gap) / PIECE * PIECE : 0;
    if (usable == 0) {
        tide_fail(TIDE_ERROR_SIZE, call, "%zu bytes of memory at %p hold no %d aligned bytes",
                  bytes, memory, PIECE);
        return NULL;
    }
    tide_region *region = tide_os_resize(NULL, sizeof *region);
    if (region == NULL) {
        tide_fail(TIDE_ERROR_MEMORY, call, "no memory to describe the memory given");
        return NULL;
    }
    region_piece *piece = (region_piece *)(void *)((char *)memory + gap);
    *piece = (region_piece){.bytes = usable};
    *region = (tide_region){.device = {.methods = &region->methods,
                                       .name = "memory",
                                       .description = "memory given to a pool",
                                       .dl = tide_device_host.dl,
                                       .host = true,
                                       .integrated = true,
                                       .bytes = usable,
                                       .holds = 1,
                                       .unheld = region_end_of_holds,
                                       .opened = 1},
                            .methods = *tide_device_host.methods,
                            .free = piece};
    region->methods.allocate = region_allocate;
    region->methods.release = region_release;
    return &region->device;
}

/* SPDX-License-Identifier: MIT */
/* Slots of OpenCL devices without shared virtual memory: sub-buffers, cut from larger buffers
 * (their parents) at the alignment that the device wants.
 *
 * A slot's pointer is a number. It lies in a range of addresses that is reserved for its parent and
 * that nobody can read, so sums and differences of pointers are right, and nothing else has them.
 *
 * Work that was queued earlier may still use a part that was given back. Such a part carries an
 * event of that stream. Until the event has passed the part serves only the same stream, whose new
 * work comes after the old by itself. */
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/os.h"
#include "runtime/device/opencl/opencl.h"

enum { PARENT_BYTES = 8 << 20 };

typedef enum part_state { PART_FREE, PART_LEAVING, PART_USED } part_state;

typedef struct part {
    size_t origin, bytes;
    part_state state;
    tide_cl_event left; /* leaving: once it has passed, the part is free; NULL: it has */
    uint64_t stream;    /* leaving: the number of the one stream that it still serves; 0: of none */
} part;

typedef struct tide_opencl_parent {
    struct tide_opencl_parent *next;
    tide_cl_mem mem;
    size_t bytes;
    char *range; /* the reserved addresses */
    char *start; /* in it, aligned: the first byte's number */
    size_t range_bytes;
    part *parts; /* by origin, without gaps; no two neighbours are free */
    size_t count, room;
} tide_opencl_parent;

_Static_assert(PART_FREE == 0, "a part that is only given its size is free");

static size_t opencl_round_up(size_t bytes, size_t to)
{
    tide_assert(to > 0 && bytes <= SIZE_MAX - to);
    return (bytes + to - 1) / to * to;
}

/* ---- parts --------------------------------------------------------------------------------- */

/* What `parts` promises, for assertions. */
__attribute__((unused)) static bool opencl_are_parts_valid(const tide_opencl_parent *parent)
{
    size_t end = 0;
    bool after_free = false;
    for (size_t i = 0; i < parent->count; i++) {
        const part *p = &parent->parts[i];
        bool is_free = p->state == PART_FREE;
        if (p->origin != end || p->bytes == 0 || (is_free && after_free))
            return false;
        end += p->bytes;
        after_free = is_free;
    }
    return end == parent->bytes;
}

/* Room for one part more. False: no memory. */
static bool opencl_reserve_part(tide_opencl_parent *parent)
{
    if (parent->count < parent->room)
        return true;
    size_t room = parent->room == 0 ? 8 : parent->room * 2;
    part *parts = tide_os_resize(parent->parts, room * sizeof *parts);
    if (parts == NULL)
        return false;
    parent->parts = parts;
    parent->room = room;
    return true;
}

/* Cuts a free part in two; the first gets so many bytes. There must be room for one part more. */
static void opencl_cut_part(tide_opencl_parent *parent, size_t at, size_t bytes)
{
    part *p = &parent->parts[at];
    tide_assert(at < parent->count && parent->count < parent->room);
    tide_assert(bytes > 0 && bytes < p->bytes && p->state == PART_FREE);
    memmove(p + 1, p, (parent->count - at) * sizeof *p);
    parent->count++;
    p[0].bytes = bytes;
    p[1].origin += bytes;
    p[1].bytes -= bytes;
    tide_assert(p[0].origin + p[0].bytes == p[1].origin && p[1].state == PART_FREE);
}

/* Joins a free part with the free parts before and after it. */
static void opencl_join_parts(tide_opencl_parent *parent, size_t at)
{
    tide_assert(at < parent->count && parent->parts[at].state == PART_FREE);
    while (at > 0 && parent->parts[at - 1].state == PART_FREE)
        at--;
    part *first = &parent->parts[at];
    size_t more = 0;
    while (at + more + 1 < parent->count && first[more + 1].state == PART_FREE)
        first->bytes += first[++more].bytes;
    memmove(first + 1, first + 1 + more, (parent->count - at - 1 - more) * sizeof *first);
    parent->count -= more;
    tide_assert(at < parent->count);
}

/* The part has left, or will never be asked for again. */
static void opencl_free_part(part *p)
{
    tide_assert(p->state != PART_USED);
    if (p->left != NULL)
        (void)tide_opencl.clReleaseEvent(p->left);
    p->left = NULL;
    p->state = PART_FREE;
}

/* An event that failed, or that the driver does not know, has passed as well. Of one that it does
 * not tell of it may tell later. */
static bool opencl_event_passed(tide_cl_event event)
{
    int32_t status = 1;
    if (event == NULL)
        return true;
    int32_t error =
        tide_opencl.clGetEventInfo(event, TIDE_CL_EVENT_STATUS, sizeof status, &status, NULL);
    return error == TIDE_CL_SUCCESS ? status <= TIDE_CL_COMPLETE : error == TIDE_CL_INVALID_EVENT;
}

/* Frees the parts whose events have passed. */
static void opencl_sweep_parts(tide_opencl_parent *parent)
{
    for (size_t i = parent->count; i-- > 0;) {
        part *p = &parent->parts[i];
        if (p->state != PART_LEAVING || !opencl_event_passed(p->left))
            continue;
        opencl_free_part(p);
        opencl_join_parts(parent, i);
        if (i > parent->count)
            i = parent->count;
    }
    tide_assert(opencl_are_parts_valid(parent));
}

/* ---- parents ------------------------------------------------------------------------------- */

static bool opencl_is_parent_empty(const tide_opencl_parent *parent)
{
    return parent->count == 1 && parent->parts[0].state == PART_FREE;
}

static void opencl_free_parent(tide_opencl_parent *parent)
{
    for (size_t i = 0; i < parent->count; i++)
        opencl_free_part(&parent->parts[i]);
    if (parent->mem != NULL)
        (void)tide_opencl.clReleaseMemObject(parent->mem);
    if (parent->range != NULL)
        tide_os_unreserve(parent->range, parent->range_bytes);
    tide_os_free(parent->parts);
    tide_os_free(parent);
}

/* One free part, the whole. False: no memory or no addresses; what there is stays in the parent. */
static bool opencl_fill_in_parent(const tide_opencl_device *device, tide_opencl_parent *parent,
                                  size_t align)
{
    parent->range_bytes = parent->bytes + align;
    parent->range = tide_os_reserve(parent->range_bytes);
    if (parent->range == NULL || !opencl_reserve_part(parent))
        return false;
    tide_os_forbid(parent->range, parent->range_bytes);
    parent->start = (char *)opencl_round_up((uintptr_t)parent->range, align);
    tide_assert(parent->start + parent->bytes <= parent->range + parent->range_bytes);
    int32_t error = TIDE_CL_SUCCESS;
    parent->mem = tide_opencl.clCreateBuffer(device->context, TIDE_CL_MEM_READ_WRITE, parent->bytes,
                                             NULL, &error);
    parent->parts[0] = (part){.bytes = parent->bytes};
    parent->count = 1;
    return parent->mem != NULL;
}

static tide_opencl_parent *opencl_make_parent(tide_opencl_device *device, size_t bytes,
                                              size_t align)
{
    tide_opencl_parent *parent = tide_os_resize(NULL, sizeof *parent);
    if (parent == NULL)
        return NULL;
    *parent = (tide_opencl_parent){.bytes = bytes > PARENT_BYTES ? bytes : PARENT_BYTES};
    if (!opencl_fill_in_parent(device, parent, align)) {
        opencl_free_parent(parent);
        return NULL;
    }
    parent->next = device->parents;
    device->parents = parent;
    return parent;
}

/* Keeps one empty parent, if it has the usual size: most likely it is wanted again. */
static void opencl_drop_empty_parents(tide_opencl_device *device)
{
    bool kept = false;
    for (tide_opencl_parent **link = &device->parents; *link != NULL;) {
        tide_opencl_parent *parent = *link;
        opencl_sweep_parts(parent);
        if (!opencl_is_parent_empty(parent) || (!kept && parent->bytes == PARENT_BYTES)) {
            kept |= opencl_is_parent_empty(parent);
            link = &parent->next;
            continue;
        }
        *link = parent->next;
        opencl_free_parent(parent);
    }
}

void tide_opencl_parents_end(tide_opencl_device *device)
{
    while (device->parents != NULL) {
        tide_opencl_parent *parent = device->parents;
        device->parents = parent->next;
        opencl_free_parent(parent);
    }
}

tide_cl_mem tide_opencl_parent_buffer(const tide_opencl_parent *parent, const void *data,
                                      size_t *offset)
{
    tide_assert((const char *)data >= parent->start &&
                (const char *)data < parent->start + parent->bytes);
    *offset = (size_t)((const char *)data - parent->start);
    return parent->mem;
}

/* ---- carving ------------------------------------------------------------------------------- */

typedef struct found {
    tide_opencl_parent *parent;
    size_t at; /* among its parts */
} found;

/* May the part serve the stream now? */
static bool opencl_part_serves(const part *p, uint64_t stream)
{
    return p->state == PART_FREE ||
           (p->state == PART_LEAVING && p->stream == stream && stream != 0);
}

/* The smallest part that fits. A part that is still leaving is taken whole, so it must not be twice
 * as large as the wanted bytes, or larger. */
static found opencl_find_part(const tide_opencl_device *device, uint64_t stream, size_t bytes)
{
    found best = {NULL, 0};
    size_t best_bytes = SIZE_MAX;
    for (tide_opencl_parent *parent = device->parents; parent != NULL; parent = parent->next) {
        for (size_t i = 0; i < parent->count; i++) {
            const part *p = &parent->parts[i];
            bool whole = p->state == PART_LEAVING;
            if (opencl_part_serves(p, stream) && p->bytes >= bytes && p->bytes < best_bytes &&
                (!whole || p->bytes / 2 < bytes)) {
                best = (found){parent, i};
                best_bytes = p->bytes;
            }
        }
    }
    return best;
}

/* Makes the part a slot: cut to size, with a buffer of its own. NULL: no
 * memory, nothing changed. */
static void *opencl_use_part(tide_opencl_device *device, found f, size_t bytes)
{
    tide_opencl_parent *parent = f.parent;
    tide_assert(f.at < parent->count && bytes > 0);
    if (!opencl_reserve_part(parent))
        return NULL;
    part *p = &parent->parts[f.at];
    tide_assert(p->state != PART_USED && bytes <= p->bytes);
    tide_cl_region region = {p->origin, p->state == PART_FREE ? bytes : p->bytes};
    int32_t error = TIDE_CL_SUCCESS;
    tide_cl_mem mem = tide_opencl.clCreateSubBuffer(parent->mem, TIDE_CL_MEM_READ_WRITE,
                                                    TIDE_CL_BUFFER_CREATE_REGION, &region, &error);
    if (mem == NULL)
        return NULL;
    tide_opencl_span span = {
        .start = parent->start + region.origin, .bytes = region.size, .mem = mem, .parent = parent};
    if (!tide_opencl_span_add(device, span)) {
        (void)tide_opencl.clReleaseMemObject(mem);
        return NULL;
    }
    if (p->state == PART_LEAVING)
        opencl_free_part(p);
    else if (p->bytes > bytes)
        opencl_cut_part(parent, f.at, bytes);
    p->state = PART_USED;
    tide_assert(p->bytes == span.bytes && opencl_are_parts_valid(parent));
    return span.start;
}

/* An alignment beyond the device's own holds for the number; for the memory behind it, as far as
 * the driver aligns parents. */
void *tide_opencl_carve(tide_opencl_device *device, void *stream, size_t bytes, size_t align)
{
    uint64_t number = tide_opencl_number_within(device, stream);
    if (align < device->alignment)
        align = device->alignment;
    tide_assert(device->memory == TIDE_OPENCL_BUFFERS && bytes > 0);
    bytes = opencl_round_up(bytes, align);
    tide_lock_take(&device->lock);
    for (tide_opencl_parent *parent = device->parents; parent != NULL; parent = parent->next)
        opencl_sweep_parts(parent);
    /* Beyond the usual alignment every slot has a parent of its own. */
    found f = {NULL, 0};
    if (align == device->alignment)
        f = opencl_find_part(device, number, bytes);
    if (f.parent == NULL)
        f.parent = opencl_make_parent(device, bytes, align);
    void *data = f.parent != NULL ? opencl_use_part(device, f, bytes) : NULL;
    if (data == NULL)
        opencl_drop_empty_parents(device); /* also one that was made for it */
    tide_lock_let_go(&device->lock);
    return data;
}

/* The part that the span is the slot of. */
static part *opencl_part_of(const tide_opencl_span *span)
{
    tide_assert(span->start >= span->parent->start);
    size_t origin = (size_t)(span->start - span->parent->start);
    part *p = span->parent->parts;
    while (p->origin != origin)
        p++;
    tide_assert(p < span->parent->parts + span->parent->count && p->state == PART_USED);
    return p;
}

/* The driver keeps the buffers of queued work alive, but only the part's state keeps other
 * streams out of the memory. If the driver refuses the event, the host waits for the stream: then
 * the part is free. */
void tide_opencl_give_back(tide_opencl_device *device, void *stream, const tide_opencl_span *span)
{
    uint64_t number = tide_opencl_number_within(device, stream);
    tide_assert(span->mem != NULL && span->parent != NULL);
    tide_cl_event left = tide_opencl_mark_within(device, stream);
    if (left == NULL)
        tide_opencl_finish_within(tide_opencl_queue(device, stream));
    (void)tide_opencl.clReleaseMemObject(span->mem);
    tide_lock_take(&device->lock);
    part *p = opencl_part_of(span);
    p->state = PART_LEAVING;
    p->left = left;
    p->stream = number;
    opencl_drop_empty_parents(device);
    tide_lock_let_go(&device->lock);
}

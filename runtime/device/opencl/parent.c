/* SPDX-License-Identifier: MIT */
/* Without shared virtual memory: slots are sub-buffers of larger buffers, cut at the alignment that
 * the device wants. A slot's pointer is an address that nothing else has and nobody can read: it
 * lies in a reserved range, one for each parent, so that sums and differences of pointers mean what
 * they say.
 *
 * A part that was given back may still be in use by work that was queued before. It carries an
 * event of that stream until this has happened, and meanwhile serves the same stream only, which
 * comes after that work by itself. */
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/device/opencl/opencl.h"
#include "runtime/base/os.h"

enum { PARENT_BYTES = 8 << 20 };

typedef enum part_state { PART_FREE, PART_LEAVING, PART_USED } part_state;

typedef struct part {
    size_t origin, bytes;
    part_state state;
    tide_cl_event left; /* leaving: when it is free ...            */
    uint64_t stream;    /* ... for streams other than this one     */
} part;

typedef struct tide_opencl_parent {
    struct tide_opencl_parent *next;
    tide_cl_mem mem;
    size_t bytes;
    char *range, *start; /* as it was reserved; of the first byte's number */
    size_t range_bytes;
    part *parts; /* by origin, without gaps */
    size_t count, room;
} tide_opencl_parent;

static size_t opencl_round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

/* ---- parts --------------------------------------------------------------------------------- */

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

/* Cuts a part so that it ends after so many bytes. There must be room. */
static void opencl_cut_part(tide_opencl_parent *parent, size_t at, size_t bytes)
{
    part *p = &parent->parts[at];
    tide_assert(bytes < p->bytes && p->state == PART_FREE && parent->count < parent->room);
    memmove(p + 1, p, (parent->count - at) * sizeof *p);
    parent->count++;
    p[0].bytes = bytes;
    p[1].origin += bytes;
    p[1].bytes -= bytes;
}

/* Joins a free part with free neighbours. */
static void opencl_join_parts(tide_opencl_parent *parent, size_t at)
{
    while (at > 0 && parent->parts[at - 1].state == PART_FREE)
        at--;
    part *first = &parent->parts[at];
    size_t more = 0;
    while (at + more + 1 < parent->count && first[more + 1].state == PART_FREE)
        first->bytes += first[++more].bytes;
    memmove(first + 1, first + 1 + more, (parent->count - at - 1 - more) * sizeof *first);
    parent->count -= more;
}

static void opencl_free_part(part *p)
{
    if (p->left != NULL)
        (void)tide_opencl.clReleaseEvent(p->left);
    p->left = NULL;
    p->state = PART_FREE;
}

static bool opencl_event_passed(tide_cl_event event)
{
    int32_t status = 1;
    return event == NULL ||
           tide_opencl.clGetEventInfo(event, TIDE_CL_EVENT_STATUS, sizeof status, &status, NULL) !=
               TIDE_CL_SUCCESS ||
           status <= TIDE_CL_COMPLETE;
}

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

static bool opencl_fill_in_parent(const tide_opencl_device *device, tide_opencl_parent *parent,
                                  size_t align)
{
    parent->range_bytes = parent->bytes + align;
    parent->range = tide_os_reserve(parent->range_bytes);
    if (parent->range == NULL || !opencl_reserve_part(parent))
        return false;
    tide_os_forbid(parent->range, parent->range_bytes);
    parent->start = (char *)opencl_round_up((uintptr_t)parent->range, align);
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

/* One empty parent is kept, if it is of the usual size: most likely it is wanted again. */
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
    return p->state == PART_FREE || (p->state == PART_LEAVING && p->stream == stream);
}

/* The smallest part that fits. A part that is still leaving is taken whole, so it must not be twice
 * as large as what is wanted. */
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

/* Makes the part a slot: cut to size, with a buffer of its own. */
static void *opencl_use_part(tide_opencl_device *device, found f, size_t bytes)
{
    tide_opencl_parent *parent = f.parent;
    if (!opencl_reserve_part(parent))
        return NULL;
    part *p = &parent->parts[f.at];
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
    return span.start;
}

/* Alignment beyond the device's own is met by the number, and by the address as far as the driver
 * aligns parents. */
void *tide_opencl_carve(tide_opencl_device *device, void *stream, size_t bytes, size_t align)
{
    uint64_t number = tide_opencl_stream_number(device->base, stream);
    if (align < device->alignment)
        align = device->alignment;
    bytes = opencl_round_up(bytes, align);
    pthread_mutex_lock(&device->lock);
    for (tide_opencl_parent *parent = device->parents; parent != NULL; parent = parent->next)
        opencl_sweep_parts(parent);
    /* Beyond the usual alignment every slot has a parent of its own. */
    found f = {NULL, 0};
    if (align == device->alignment)
        f = opencl_find_part(device, number, bytes);
    if (f.parent == NULL)
        f.parent = opencl_make_parent(device, bytes, align);
    void *data = f.parent != NULL ? opencl_use_part(device, f, bytes) : NULL;
    pthread_mutex_unlock(&device->lock);
    return data;
}

static part *opencl_part_of(const tide_opencl_span *span)
{
    size_t origin = (size_t)(span->start - span->parent->start);
    part *p = span->parent->parts;
    while (p->origin != origin)
        p++;
    tide_assert(p < span->parent->parts + span->parent->count && p->state == PART_USED);
    return p;
}

/* Work that is queued keeps the buffers it uses; what must not be is that others use them, too.
 * Should the driver refuse the event, the part is free once the stream has been waited for. */
void tide_opencl_give_back(tide_opencl_device *device, void *stream, const tide_opencl_span *span)
{
    uint64_t number = tide_opencl_stream_number(device->base, stream);
    tide_cl_event left = tide_opencl_mark(device->base, stream);
    if (left == NULL)
        (void)tide_opencl.clFinish(tide_opencl_queue(device, stream));
    (void)tide_opencl.clReleaseMemObject(span->mem);
    pthread_mutex_lock(&device->lock);
    part *p = opencl_part_of(span);
    p->state = PART_LEAVING;
    p->left = left;
    p->stream = number;
    opencl_drop_empty_parents(device);
    pthread_mutex_unlock(&device->lock);
}

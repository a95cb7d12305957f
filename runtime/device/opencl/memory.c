/* SPDX-License-Identifier: MIT */
/* Memory of OpenCL devices: allocated, released, filled and copied. It is shared virtual memory, or
 * numbers that stand for buffers. OpenCL has no call for pinned memory: that is plain memory of the host.
 *
 * A number lies in a range of addresses that is reserved for its buffer and that nobody can read, so sums
 * and differences of pointers are right, and nothing else has them. A buffer that is released stays with the
 * driver until the work that was queued before is over. */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/device/opencl/opencl.h"

enum { SVM_ALIGN_MAX = 128, FILL_MAX = 128 }; /* what every OpenCL understands        */

_Static_assert((FILL_MAX & (FILL_MAX - 1)) == 0, "patterns of fills are powers of two");

/* ---- what lies where ---------------------------------------------------------------------- */

/* The first span that starts after the address. */
static size_t opencl_span_after(const tide_opencl_device *device, const char *data)
{
    size_t low = 0, high = device->span_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (device->spans[middle].start > data)
            high = middle;
        else
            low = middle + 1;
    }
    tide_assert(low <= device->span_count);
    tide_assert(low == 0 || device->spans[low - 1].start <= data);
    return low;
}

static bool opencl_add_span_locked(tide_opencl_device *device, tide_opencl_span span)
{
    if (device->span_count == device->span_room) {
        size_t room = device->span_room == 0 ? 32 : device->span_room * 2;
        tide_opencl_span *spans = tide_os_resize(device->spans, room * sizeof *spans);
        if (spans == NULL)
            return false;
        device->spans = spans;
        device->span_room = room;
    }
    tide_assert(device->span_count < device->span_room);
    size_t at = opencl_span_after(device, span.start);
    tide_assert(at == 0 || device->spans[at - 1].start + device->spans[at - 1].bytes <= span.start);
    memmove(&device->spans[at + 1], &device->spans[at],
            (device->span_count - at) * sizeof *device->spans);
    device->spans[at] = span;
    device->span_count++;
    return true;
}

/* Locked, and valid until the lock is let go. */
static tide_opencl_span *opencl_find_span(tide_opencl_device *device, const void *data)
{
    size_t at = opencl_span_after(device, data);
    if (at == 0)
        return NULL;
    tide_opencl_span *span = &device->spans[at - 1];
    return (const char *)data - span->start < (ptrdiff_t)span->bytes ? span : NULL;
}

static void opencl_drop_span(tide_opencl_device *device, tide_opencl_span *span)
{
    size_t at = (size_t)(span - device->spans);
    tide_assert(at < device->span_count);
    device->span_count--;
    tide_assert(span->start != NULL);
    memmove(span, span + 1, (device->span_count - at) * sizeof *span);
}

static bool opencl_add_span(tide_opencl_device *device, tide_opencl_span span)
{
    tide_lock_take(&device->lock);
    bool added = opencl_add_span_locked(device, span);
    tide_lock_let_go(&device->lock);
    return added;
}

/* A copy of the span at the address; `take`: the table forgets it. False: there is none. */
static bool opencl_copy_span(tide_opencl_device *device, const void *data, bool take,
                             tide_opencl_span *out)
{
    tide_lock_take(&device->lock);
    tide_opencl_span *span = opencl_find_span(device, data);
    if (span != NULL) {
        *out = *span;
        if (take)
            opencl_drop_span(device, span);
    }
    tide_lock_let_go(&device->lock);
    return span != NULL;
}

void *tide_opencl_buffer(tide_device *base, const void *data, size_t *offset)
{
    tide_opencl_device *device = tide_opencl_of(base);
    tide_opencl_span span;
    if (device->memory != TIDE_OPENCL_BUFFERS || !tide_driver_alive(TIDE_DRIVER_OPENCL) ||
        !opencl_copy_span(device, data, false, &span))
        return NULL;
    *offset = (size_t)((const char *)data - span.start);
    return span.mem;
}

bool tide_opencl_misplaced(tide_device *base, const void *data, bool host)
{
    tide_opencl_device *device = tide_opencl_of(base);
    tide_opencl_span span;
    return device->memory == TIDE_OPENCL_BUFFERS &&
           host == opencl_copy_span(device, data, false, &span);
}

/* ---- buffers by number --------------------------------------------------------------------- */

static void opencl_end_buffer(const tide_opencl_span *span)
{
    if (span->mem != NULL)
        (void)tide_opencl.clReleaseMemObject(span->mem);
    tide_os_unreserve(span->start, span->bytes);
}

static void *opencl_make_buffer(tide_opencl_device *device, size_t bytes)
{
    int32_t error = TIDE_CL_SUCCESS;
    tide_opencl_span span = {.start = tide_os_reserve(bytes), .bytes = bytes};
    if (span.start == NULL)
        return NULL;
    tide_os_forbid(span.start, bytes);
    span.mem =
        tide_opencl.clCreateBuffer(device->context, TIDE_CL_MEM_READ_WRITE, bytes, NULL, &error);
    if (span.mem != NULL && opencl_add_span(device, span))
        return span.start;
    opencl_end_buffer(&span);
    return NULL;
}

/* ---- allocate and release ------------------------------------------------------------------ */

/* Drivers need not align further than to their largest type. A number is aligned to a page, the memory behind it as
 * far as the driver aligns buffers. */
static size_t opencl_most_aligned(const tide_opencl_device *device, int memory)
{
    if (memory == TIDE_MEMORY_PINNED)
        return SIZE_MAX;
    return device->memory == TIDE_OPENCL_BUFFERS ? (size_t)getpagesize() : SVM_ALIGN_MAX;
}

static void *opencl_get(tide_opencl_device *device, int memory, size_t bytes, size_t align)
{
    if (memory == TIDE_MEMORY_PINNED)
        return tide_os_aligned(bytes, align);
    if (device->memory == TIDE_OPENCL_BUFFERS)
        return opencl_make_buffer(device, bytes);
    return tide_opencl.clSVMAlloc(device->context, TIDE_CL_MEM_READ_WRITE, bytes, (uint32_t)align);
}

/* Many drivers take memory when it is first used, so creating it does not fail; tests need the fault. */
tide_status tide_opencl_allocate(tide_device *base, void *stream, int memory, size_t bytes,
                                 size_t align, void **data)
{
    tide_opencl_device *device = tide_opencl_of(base);
    tide_assert(memory == TIDE_MEMORY_DEVICE || memory == TIDE_MEMORY_PINNED);
    tide_assert(bytes > 0 && align > 0 && (align & (align - 1)) == 0);
    (void)stream;
    TIDE_FORWARD(tide_device_answers(base, "tide_device"));
    const size_t most = opencl_most_aligned(device, memory);
    if (align > most)
        return tide_fail(TIDE_ERROR_DEVICE, "tide_device",
                         "device %s aligns no memory to %zu bytes, %zu at most", base->name, align,
                         most);
    *data = tide_os_faulted(bytes) ? NULL : opencl_get(device, memory, bytes, align);
    if (*data == NULL)
        return TIDE_ERROR_MEMORY;
    tide_device_count(&base->allocations);
    return TIDE_OK;
}

/* Frees it after the work that is queued. If the driver refuses, the host waits for that work. */
static void opencl_end_share(tide_opencl_device *device, void *stream, void *data)
{
    tide_cl_queue queue = tide_opencl_queue(device, stream);
    if (tide_opencl.clEnqueueSVMFree(queue, 1, &data, NULL, NULL, 0, NULL, NULL) ==
        TIDE_CL_SUCCESS) {
        (void)tide_opencl.clFlush(queue);
        return;
    }
    (void)tide_opencl.clFinish(queue);
    tide_opencl.clSVMFree(device->context, data);
}

/* A driver that can no longer be called keeps what it has; at exit it may still read memory of the host. */
void tide_opencl_release(tide_device *base, void *stream, int memory, void *data, size_t bytes)
{
    tide_opencl_device *device = tide_opencl_of(base);
    tide_opencl_span span;
    (void)bytes;
    tide_assert(data != NULL);
    tide_device_count(&base->releases);
    if (memory == TIDE_MEMORY_PINNED && !tide_driver_exiting(TIDE_DRIVER_OPENCL))
        tide_os_free(data);
    if (memory == TIDE_MEMORY_PINNED || !tide_driver_alive(TIDE_DRIVER_OPENCL))
        return;
    if (opencl_copy_span(device, data, true, &span))
        opencl_end_buffer(&span);
    else
        opencl_end_share(device, stream, data);
}

/* ---- an address as the driver takes it ----------------------------------------------------- */

typedef struct place {
    tide_cl_mem mem; /* NULL: an address of shared virtual memory, or of the host */
    size_t offset;
    void *address;
} place;

static place opencl_place_of(tide_opencl_device *device, const void *data)
{
    place p = {.address = (void *)(uintptr_t)data};
    tide_opencl_span span;
    if (device->memory == TIDE_OPENCL_BUFFERS && opencl_copy_span(device, data, false, &span)) {
        p.mem = span.mem;
        p.offset = (size_t)((const char *)data - span.start);
    }
    return p;
}

/* ---- fills --------------------------------------------------------------------------------- */

static bool opencl_is_native_pattern(size_t bytes, size_t at)
{
    return bytes <= FILL_MAX && (bytes & (bytes - 1)) == 0 && at % bytes == 0;
}

/* Fills a part of a slot. A number is as aligned as the memory that it stands for, so callers judge
 * the alignment by the address. */
static tide_status opencl_fill_part(tide_opencl_device *device, void *stream, const place *p,
                                    size_t at, const void *pattern, size_t pattern_bytes,
                                    size_t bytes)
{
    tide_cl_queue queue = tide_opencl_queue(device, stream);
    tide_assert(pattern_bytes <= FILL_MAX && (pattern_bytes & (pattern_bytes - 1)) == 0);
    tide_assert(bytes > 0 && bytes % pattern_bytes == 0);
    tide_device_count(&device->base->fills);
    if (p->mem != NULL)
        return TIDE_OPENCL_CALL(device, clEnqueueFillBuffer, queue, p->mem, pattern, pattern_bytes,
                                p->offset + at, bytes, 0, NULL, NULL);
    return TIDE_OPENCL_CALL(device, clEnqueueSVMMemFill, queue, (char *)p->address + at, pattern,
                            pattern_bytes, bytes, 0, NULL, NULL);
}

/* Writes an odd pattern once, piece by piece. By fills: the driver takes a fill's pattern along,
 * while the source of a copy would have to stay. */
static tide_status opencl_write_pattern(tide_opencl_device *device, void *stream, const place *p,
                                        const char *pattern, size_t bytes)
{
    size_t base = (uintptr_t)p->address % FILL_MAX;
    for (size_t at = 0, piece; at < bytes; at += piece) {
        for (piece = FILL_MAX; piece > bytes - at || (base + at) % piece != 0;)
            piece /= 2;
        tide_assert(piece > 0 && piece <= bytes - at);
        TIDE_FORWARD(opencl_fill_part(device, stream, p, at, pattern + at, piece, piece));
    }
    return TIDE_OK;
}

/* Writes the pattern once; then each copy doubles what is there. */
static tide_status opencl_fill_odd(tide_opencl_device *device, void *stream, const place *p,
                                   const void *pattern, size_t pattern_bytes, size_t bytes)
{
    char *data = p->address;
    tide_assert(bytes >= pattern_bytes && bytes % pattern_bytes == 0);
    TIDE_FORWARD(opencl_write_pattern(device, stream, p, pattern, pattern_bytes));
    for (size_t done = pattern_bytes, next; done < bytes; done += next) {
        next = done < bytes - done ? done : bytes - done;
        TIDE_FORWARD(
            tide_opencl_copy(device->base, stream, data + done, data, next, TIDE_COPY_WITHIN));
    }
    return TIDE_OK;
}

tide_status tide_opencl_fill(tide_device *base, void *stream, void *data, const void *pattern,
                             size_t pattern_bytes, size_t count)
{
    tide_opencl_device *device = tide_opencl_of(base);
    tide_assert(pattern_bytes > 0 && count <= SIZE_MAX / pattern_bytes);
    TIDE_FORWARD(tide_device_answers(base, "tide_device"));
    if (count == 0)
        return TIDE_OK;
    place p = opencl_place_of(device, data);
    size_t bytes = pattern_bytes * count;
    if (device->memory == TIDE_OPENCL_BUFFERS && p.mem == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, "tide_device", "%p is no memory of device %s", data,
                         base->name);
    if (!opencl_is_native_pattern(pattern_bytes, (uintptr_t)data))
        return opencl_fill_odd(device, stream, &p, pattern, pattern_bytes, bytes);
    return opencl_fill_part(device, stream, &p, 0, pattern, pattern_bytes, bytes);
}

/* ---- copies -------------------------------------------------------------------------------- */

/* At least one side is a buffer; the other may be memory of the host. */
static int32_t opencl_copy_buffers(tide_cl_queue queue, const place *to, const place *from,
                                   size_t bytes, bool wait)
{
    tide_assert(to->mem != NULL || from->mem != NULL);
    if (to->mem != NULL && from->mem != NULL)
        return tide_opencl.clEnqueueCopyBuffer(queue, from->mem, to->mem, from->offset, to->offset,
                                               bytes, 0, NULL, NULL);
    if (to->mem != NULL)
        return tide_opencl.clEnqueueWriteBuffer(queue, to->mem, wait, to->offset, bytes,
                                                from->address, 0, NULL, NULL);
    return tide_opencl.clEnqueueReadBuffer(queue, from->mem, wait, from->offset, bytes, to->address,
                                           0, NULL, NULL);
}

tide_status tide_opencl_copy(tide_device *base, void *stream, void *to, const void *from,
                             size_t bytes, tide_copy_kind kind)
{
    tide_opencl_device *device = tide_opencl_of(base);
    const bool wait = kind == TIDE_COPY_WAITED;
    TIDE_FORWARD(tide_device_answers(base, "tide_device"));
    if (bytes == 0)
        return TIDE_OK;
    tide_assert(to != NULL && from != NULL);
    place target = opencl_place_of(device, to), source = opencl_place_of(device, from);
    tide_cl_queue queue = tide_opencl_queue(device, stream);
    if (device->memory == TIDE_OPENCL_BUFFERS && target.mem == NULL && source.mem == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, "tide_device",
                         "neither %p nor %p is memory of device %s", to, from, base->name);
    int32_t error =
        device->memory == TIDE_OPENCL_BUFFERS
            ? opencl_copy_buffers(queue, &target, &source, bytes, wait)
            : tide_opencl.clEnqueueSVMMemcpy(queue, wait, to, from, bytes, 0, NULL, NULL);
    TIDE_FORWARD(tide_opencl_check(device, error, "copy"));
    tide_device_count(&base->copies);
    if (wait)
        tide_device_count(&base->waits);
    __atomic_add_fetch(&base->bytes_copied, bytes, __ATOMIC_RELAXED);
    return TIDE_OK;
}

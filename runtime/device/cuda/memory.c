/* SPDX-License-Identifier: MIT */
/* Memory of a CUDA device: allocated, released, filled and copied. It comes from the driver's
 * stream-ordered allocator, so neither allocating nor releasing waits. */
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/device/cuda/cuda.h"

static tide_cu_address cuda_address(const void *data)
{
    return (tide_cu_address)(uintptr_t)data;
}

/* ---- allocate ----------------------------------------------------------------------------- */

/* Sets the thread's capture mode and returns the one before. While another thread captures, the
 * driver may forbid calls that no stream orders to every thread that is not in relaxed mode. */
static int cuda_exchange_capture_mode(int mode)
{
    (void)tide_cu.cuThreadExchangeStreamCaptureMode(&mode);
    return mode;
}

static tide_status cuda_allocate_pinned(tide_device *device, size_t bytes, void **data)
{
    int mode = cuda_exchange_capture_mode(TIDE_CU_CAPTURE_RELAXED);
    tide_cu_result result = tide_cu.cuMemHostAlloc(data, bytes, TIDE_CU_HOST_PORTABLE);
    cuda_exchange_capture_mode(mode);
    if (result == TIDE_CU_OUT_OF_MEMORY)
        return TIDE_ERROR_MEMORY;
    return result == TIDE_CU_SUCCESS ? TIDE_OK : tide_cuda_fail(device, "cuMemHostAlloc", result);
}

/* Releases memory that was given up while its stream was captured. Called outside of captures. */
static void cuda_release_deferred_on(tide_device *device, void *stream)
{
    tide_cuda *cuda = tide_cuda_of(device);
    if (__atomic_load_n(&cuda->deferred, __ATOMIC_RELAXED) == NULL)
        return;
    pthread_mutex_lock(&cuda->lock);
    for (tide_cuda_deferred **place = &cuda->deferred, *one; (one = *place) != NULL;) {
        tide_assert(one->data != NULL);
        if (one->stream == stream &&
            tide_cu.cuMemFreeAsync(cuda_address(one->data), stream) == TIDE_CU_SUCCESS) {
            __atomic_store_n(place, one->next, __ATOMIC_RELAXED);
            tide_os_free(one);
        } else {
            place = &one->next;
        }
    }
    pthread_mutex_unlock(&cuda->lock);
}

static tide_status cuda_allocate_device(tide_device *device, void *stream, size_t bytes,
                                        size_t align, void **data)
{
    tide_cu_address got = 0;
    cuda_release_deferred_on(device, stream);
    tide_cu_result result =
        tide_cu.cuMemAllocFromPoolAsync(&got, bytes, tide_cuda_of(device)->pool, stream);
    if (result == TIDE_CU_OUT_OF_MEMORY)
        return TIDE_ERROR_MEMORY;
    if (result != TIDE_CU_SUCCESS)
        return tide_cuda_fail(device, "cuMemAllocFromPoolAsync", result);
    *data = (void *)(uintptr_t)got;
    if (got % align == 0)
        return TIDE_OK;
    (void)tide_cu.cuMemFreeAsync(got, stream);
    return tide_fail(TIDE_ERROR_DEVICE, "cuMemAllocFromPoolAsync",
                     "device %s: %#llx is not aligned to %zu bytes", device->name, got, align);
}

tide_status tide_cuda_allocate(tide_device *device, void *stream, int memory, size_t bytes,
                               size_t align, void **data)
{
    tide_cuda_entered entered;
    tide_assert(memory == TIDE_MEMORY_DEVICE || memory == TIDE_MEMORY_PINNED);
    tide_assert(bytes > 0 && align > 0 && (align & (align - 1)) == 0);
    TIDE_FORWARD(tide_cuda_enter(device, &entered));
    tide_status status = memory == TIDE_MEMORY_PINNED
                             ? cuda_allocate_pinned(device, bytes, data)
                             : cuda_allocate_device(device, stream, bytes, align, data);
    tide_cuda_leave(entered);
    if (status == TIDE_OK)
        tide_device_count(&device->allocations);
    return status;
}

/* ---- release ------------------------------------------------------------------------------ */

/* Remembers memory that a capture does not let go. Without memory for that it is leaked. */
static void cuda_defer_release(tide_cuda *cuda, void *stream, void *data)
{
    tide_cuda_deferred *one = tide_os_resize(NULL, sizeof *one);
    if (one == NULL)
        return;
    pthread_mutex_lock(&cuda->lock);
    *one = (tide_cuda_deferred){.next = cuda->deferred, .stream = stream, .data = data};
    __atomic_store_n(&cuda->deferred, one, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&cuda->lock);
}

static void cuda_release_device(tide_device *device, void *stream, void *data)
{
    if (tide_cuda_capturing(device, stream)) {
        cuda_defer_release(tide_cuda_of(device), stream, data);
        return;
    }
    cuda_release_deferred_on(device, stream);
    tide_cu_result result = tide_cu.cuMemFreeAsync(cuda_address(data), stream);
    if (result != TIDE_CU_SUCCESS)
        (void)tide_cuda_fail(device, "cuMemFreeAsync", result);
}

static void cuda_release_pinned(tide_device *device, void *data)
{
    int mode = cuda_exchange_capture_mode(TIDE_CU_CAPTURE_RELAXED);
    tide_cu_result result = tide_cu.cuMemFreeHost(data);
    cuda_exchange_capture_mode(mode);
    if (result != TIDE_CU_SUCCESS)
        (void)tide_cuda_fail(device, "cuMemFreeHost", result);
}

void tide_cuda_release(tide_device *device, void *stream, int memory, void *data, size_t bytes)
{
    (void)bytes;
    tide_cuda_entered entered;
    tide_assert(data != NULL);
    tide_assert(memory == TIDE_MEMORY_DEVICE || memory == TIDE_MEMORY_PINNED);
    if (tide_cuda_enter(device, &entered) != TIDE_OK)
        return; /* exiting, or lost: the memory stays the driver's */
    if (memory == TIDE_MEMORY_PINNED)
        cuda_release_pinned(device, data);
    else
        cuda_release_device(device, stream, data);
    tide_cuda_leave(entered);
    tide_device_count(&device->releases);
}

void tide_cuda_release_deferred(tide_device *device, bool reachable)
{
    tide_cuda *cuda = tide_cuda_of(device);
    for (tide_cuda_deferred *one = cuda->deferred; one != NULL; one = cuda->deferred) {
        cuda->deferred = one->next;
        tide_assert(one->data != NULL);
        if (reachable)
            (void)tide_cu.cuMemFreeAsync(cuda_address(one->data), NULL);
        tide_os_free(one);
    }
}

/* ---- fill --------------------------------------------------------------------------------- */

/* A pattern as the driver's fills see it: so many units of 1, 2 or 4 bytes. */
typedef struct pattern {
    size_t unit, units;
    const unsigned char *bytes;
} pattern;

static unsigned cuda_unit_at(const pattern *of, size_t i)
{
    unsigned value = 0;
    tide_assert(i < of->units && of->unit <= sizeof value);
    memcpy(&value, of->bytes + i * of->unit, of->unit); /* little-endian, as the device is */
    return value;
}

/* The widest units that divide the pattern. If all units are alike, one stands for all. */
static pattern cuda_analyse_pattern(const void *bytes, size_t count)
{
    pattern made = {.unit = count % 4 == 0 ? 4 : count % 2 == 0 ? 2 : 1, .bytes = bytes};
    tide_assert(count > 0);
    made.units = count / made.unit;
    while (made.units > 1 && cuda_unit_at(&made, made.units - 1) == cuda_unit_at(&made, 0))
        made.units--;
    if (made.units > 1) /* not all the same */
        made.units = count / made.unit;
    tide_assert(made.units == 1 || made.units * made.unit == count);
    return made;
}

/* Stores one unit `rows` times, `pitch` bytes apart. */
static tide_cu_result cuda_fill_column(tide_cu_address to, size_t pitch, size_t unit,
                                       unsigned value, size_t rows, void *stream)
{
    const unsigned short two = (unsigned short)value;
    const unsigned char one = (unsigned char)value;
    tide_assert((unit == 1 || unit == 2 || unit == 4) && rows > 0);
    tide_assert(pitch >= unit && pitch % unit == 0);
    if (pitch == unit)
        return unit == 4   ? tide_cu.cuMemsetD32Async(to, value, rows, stream)
               : unit == 2 ? tide_cu.cuMemsetD16Async(to, two, rows, stream)
                           : tide_cu.cuMemsetD8Async(to, one, rows, stream);
    return unit == 4   ? tide_cu.cuMemsetD2D32Async(to, pitch, value, 1, rows, stream)
           : unit == 2 ? tide_cu.cuMemsetD2D16Async(to, pitch, two, 1, rows, stream)
                       : tide_cu.cuMemsetD2D8Async(to, pitch, one, 1, rows, stream);
}

/* One fill for each unit of the pattern: it stores that unit in all elements. */
static tide_cu_result cuda_fill_columns(const pattern *of, tide_cu_address to, size_t pitch,
                                        size_t rows, void *stream)
{
    tide_cu_result result = TIDE_CU_SUCCESS;
    for (size_t i = 0; i < of->units && result == TIDE_CU_SUCCESS; i++)
        result =
            cuda_fill_column(to + i * of->unit, pitch, of->unit, cuda_unit_at(of, i), rows, stream);
    return result;
}

/* Writes one element unit by unit; then each copy doubles the elements there are. */
static tide_cu_result cuda_fill_doubling(const pattern *of, tide_cu_address to, size_t bytes,
                                         void *stream)
{
    size_t done = of->unit * of->units;
    tide_cu_result result = TIDE_CU_SUCCESS;
    tide_assert(of->units > 1 && done <= bytes && bytes % done == 0);
    for (size_t i = 0; i < of->units && result == TIDE_CU_SUCCESS; i++)
        result =
            cuda_fill_column(to + i * of->unit, of->unit, of->unit, cuda_unit_at(of, i), 1, stream);
    for (size_t next; done < bytes && result == TIDE_CU_SUCCESS; done += next) {
        next = done < bytes - done ? done : bytes - done;
        tide_assert(next > 0 && next <= done); /* source and target do not overlap */
        result = tide_cu.cuMemcpyAsync(to + done, to, next, stream);
    }
    return result;
}

tide_status tide_cuda_fill(tide_device *device, void *stream, void *data, const void *bytes,
                           size_t pattern_bytes, size_t count)
{
    enum { COLUMNS_MAX = 8 }; /* about where doubling is fewer calls */
    tide_assert(pattern_bytes > 0 && count <= SIZE_MAX / pattern_bytes);
    if (count == 0)
        return TIDE_OK;
    tide_assert(data != NULL);
    pattern of = cuda_analyse_pattern(bytes, pattern_bytes);
    tide_cuda_entered entered;
    TIDE_FORWARD(tide_cuda_enter(device, &entered));
    tide_cu_result result;
    if (of.units == 1)
        result = cuda_fill_column(cuda_address(data), of.unit, of.unit, cuda_unit_at(&of, 0),
                                  count * (pattern_bytes / of.unit), stream);
    else if (of.units <= COLUMNS_MAX)
        result = cuda_fill_columns(&of, cuda_address(data), pattern_bytes, count, stream);
    else
        result = cuda_fill_doubling(&of, cuda_address(data), pattern_bytes * count, stream);
    tide_cuda_leave(entered);
    tide_device_count(&device->fills);
    return result == TIDE_CU_SUCCESS ? TIDE_OK : tide_cuda_fail(device, "cuMemsetAsync", result);
}

/* ---- copy --------------------------------------------------------------------------------- */

tide_status tide_cuda_copy(tide_device *device, void *stream, void *to, const void *from,
                           size_t bytes)
{
    if (bytes == 0)
        return TIDE_OK;
    tide_assert(to != NULL && from != NULL);
    tide_cuda_entered entered;
    TIDE_FORWARD(tide_cuda_enter(device, &entered));
    tide_cu_result result =
        tide_cu.cuMemcpyAsync(cuda_address(to), cuda_address(from), bytes, stream);
    tide_cuda_leave(entered);
    tide_device_count(&device->copies);
    __atomic_fetch_add(&device->bytes_copied, bytes, __ATOMIC_RELAXED);
    return result == TIDE_CU_SUCCESS ? TIDE_OK : tide_cuda_fail(device, "cuMemcpyAsync", result);
}

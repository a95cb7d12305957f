/* SPDX-License-Identifier: MIT */
/* Memory of a CUDA device: allocated, filled and copied. It comes from the driver's stream-ordered
 * allocator, so allocating waits only where there is no memory. */
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/device/cuda/cuda.h"

static tide_cu_address cuda_address(const void *data)
{
    return (tide_cu_address)(uintptr_t)data;
}

/* ---- allocate ----------------------------------------------------------------------------- */

/* A graph that is captured gets memory of its own: allocated on a stream that is not captured, and
 * there when the host has seen that, so that whatever launches the graph finds it. */
static tide_cu_result cuda_get_for_graph(const tide_cuda *cuda, size_t bytes, tide_cu_address *got)
{
    tide_cu_result result = tide_cu.cuMemAllocFromPoolAsync(got, bytes, cuda->pool, cuda->service);
    return result == TIDE_CU_SUCCESS ? tide_cu.cuStreamSynchronize(cuda->service) : result;
}

/* Of a device without memory pools it is there at once, and no stream orders it. */
static tide_cu_result cuda_get_device(tide_device *device, void *stream, size_t bytes,
                                      tide_cu_address *got)
{
    const tide_cuda *cuda = tide_cuda_of(device);
    if (cuda->pool == NULL)
        return tide_cu.cuMemAlloc(got, bytes);
    return tide_cuda_capturing(device, stream)
               ? cuda_get_for_graph(cuda, bytes, got)
               : tide_cu.cuMemAllocFromPoolAsync(got, bytes, cuda->pool, stream);
}

/* Memory for other processes is plain: the driver's pool gives none. */
static tide_cu_result cuda_get(tide_device *device, void *stream, int memory, size_t bytes,
                               tide_cu_address *got)
{
    void *pinned = NULL;
    if (memory == TIDE_MEMORY_DEVICE)
        return cuda_get_device(device, stream, bytes, got);
    if (memory == TIDE_MEMORY_MANAGED)
        return tide_cu.cuMemAllocManaged(got, bytes, TIDE_CU_ATTACH_GLOBAL);
    if (memory == TIDE_MEMORY_IPC)
        return tide_cu.cuMemAlloc(got, bytes);
    tide_cu_result result = tide_cu.cuMemHostAlloc(&pinned, bytes, TIDE_CU_HOST_PORTABLE);
    *got = cuda_address(pinned);
    return result;
}

static tide_status cuda_allocate_kind(tide_device *device, void *stream, int memory, size_t bytes,
                                      void **data)
{
    static const char *const entries[] = {[TIDE_MEMORY_DEVICE] = "cuMemAllocFromPoolAsync",
                                          [TIDE_MEMORY_PINNED] = "cuMemHostAlloc",
                                          [TIDE_MEMORY_MANAGED] = "cuMemAllocManaged",
                                          [TIDE_MEMORY_IPC] = "cuMemAlloc"};
    tide_cu_address got = 0;
    tide_cu_result result = cuda_get(device, stream, memory, bytes, &got);
    /* What is mapped and free is not to be had for the driver. */
    if (result == TIDE_CU_OUT_OF_MEMORY && tide_cuda_of(device)->pages != NULL &&
        tide_cuda_pages_trim(device, 0) == TIDE_OK)
        result = cuda_get(device, stream, memory, bytes, &got);
    TIDE_FORWARD(tide_cuda_check_memory(device, entries[memory], result));
    *data = (void *)(uintptr_t)got;
    return TIDE_OK;
}

tide_status tide_cuda_allocate(tide_device *device, void *stream, int memory, size_t bytes,
                               size_t align, void **data)
{
    const tide_cuda *cuda = tide_cuda_of(device);
    tide_cuda_entered entered;
    tide_assert(memory >= TIDE_MEMORY_DEVICE && memory <= TIDE_MEMORY_IPC);
    tide_assert(bytes > 0 && align > 0 && (align & (align - 1)) == 0);
    tide_assert(memory != TIDE_MEMORY_IPC || device->exports);
    tide_assert(memory != TIDE_MEMORY_MANAGED || device->managed);
    TIDE_FORWARD(tide_cuda_enter(device, &entered));
    tide_status status = memory == TIDE_MEMORY_DEVICE && tide_cuda_pages_serve(cuda, bytes, align)
                             ? tide_cuda_pages_take(device, bytes, data)
                             : cuda_allocate_kind(device, stream, memory, bytes, data);
    tide_cuda_leave(entered);
    if (status == TIDE_OK)
        tide_device_count(&device->allocations);
    return status;
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

/* The widest units that divide the pattern, and the address: fills want it aligned. If all units
 * are alike, one stands for all. */
static pattern cuda_analyse_pattern(const void *bytes, size_t count, tide_cu_address to)
{
    size_t both = count | (size_t)to;
    pattern made = {.unit = both % 4 == 0 ? 4 : both % 2 == 0 ? 2 : 1, .bytes = bytes};
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

/* One fill for each unit of the pattern: it stores that unit in all elements, or in the only one. */
static tide_cu_result cuda_fill_columns(const pattern *of, tide_cu_address to, size_t rows,
                                        void *stream)
{
    const size_t pitch = rows > 1 ? of->unit * of->units : of->unit;
    tide_cu_result result = TIDE_CU_SUCCESS;
    for (size_t i = 0; i < of->units && result == TIDE_CU_SUCCESS; i++)
        result =
            cuda_fill_column(to + i * of->unit, pitch, of->unit, cuda_unit_at(of, i), rows, stream);
    return result;
}

/* The first `done` bytes are filled: each copy doubles what there is. */
static tide_cu_result cuda_fill_doubling(tide_cu_address to, size_t done, size_t bytes,
                                         void *stream)
{
    tide_cu_result result = TIDE_CU_SUCCESS;
    tide_assert(done > 0 && done <= bytes);
    for (size_t next; done < bytes && result == TIDE_CU_SUCCESS; done += next) {
        next = done < bytes - done ? done : bytes - done;
        tide_assert(next > 0 && next <= done); /* source and target do not overlap */
        result = tide_cu.cuMemcpyAsync(to + done, to, next, stream);
    }
    return result;
}

/* A pattern of several units. Fills that are one unit wide are slow where they are many rows high,
 * so they make the first rows only, and copies make the rest. */
static tide_cu_result cuda_fill_pattern(const pattern *of, tide_cu_address to, size_t count,
                                        void *stream)
{
    enum { COLUMNS_MAX = 8, ROWS_MAX = 256 }; /* beyond either, copies are fewer or faster */
    size_t bytes = of->unit * of->units, rows = of->units > COLUMNS_MAX ? 1 : ROWS_MAX;
    rows = rows < count ? rows : count;
    tide_assert(of->units > 1 && rows > 0);
    tide_cu_result result = cuda_fill_columns(of, to, rows, stream);
    if (result != TIDE_CU_SUCCESS)
        return result;
    return cuda_fill_doubling(to, rows * bytes, count * bytes, stream);
}

tide_status tide_cuda_fill(tide_device *device, void *stream, void *data, const void *bytes,
                           size_t pattern_bytes, size_t count)
{
    tide_assert(pattern_bytes > 0 && count <= SIZE_MAX / pattern_bytes);
    if (count == 0)
        return TIDE_OK;
    tide_assert(data != NULL);
    pattern of = cuda_analyse_pattern(bytes, pattern_bytes, cuda_address(data));
    tide_cuda_entered entered;
    TIDE_FORWARD(tide_cuda_enter_for(device, stream, &entered));
    tide_cu_result result;
    if (of.units == 1)
        result = cuda_fill_column(cuda_address(data), of.unit, of.unit, cuda_unit_at(&of, 0),
                                  count * (pattern_bytes / of.unit), stream);
    else
        result = cuda_fill_pattern(&of, cuda_address(data), count, stream);
    tide_device_count(&device->fills);
    return tide_cuda_left(entered, tide_cuda_check(device, "cuMemsetAsync", result));
}

/* ---- copy --------------------------------------------------------------------------------- */

static tide_status cuda_copy(tide_device *device, void *stream, void *to, const void *from,
                             size_t bytes, tide_copy_kind kind)
{
    if (kind != TIDE_COPY_WITHIN)
        TIDE_FORWARD(tide_cuda_check_capture(device, stream));
    tide_device_count(&device->copies);
    __atomic_fetch_add(&device->bytes_copied, bytes, __ATOMIC_RELAXED);
    TIDE_CUDA_TRY(device, cuMemcpyAsync, cuda_address(to), cuda_address(from), bytes, stream);
    if (kind != TIDE_COPY_WAITED)
        return TIDE_OK;
    tide_device_count(&device->waits);
    return tide_device_drain_failed(device, stream,
                                    TIDE_CUDA_CALL(device, cuStreamSynchronize, stream));
}

tide_status tide_cuda_copy(tide_device *device, void *stream, void *to, const void *from,
                           size_t bytes, tide_copy_kind kind)
{
    if (bytes == 0)
        return TIDE_OK;
    tide_assert(to != NULL && from != NULL);
    tide_cuda_entered entered;
    TIDE_FORWARD(tide_cuda_enter_for(device, stream, &entered));
    return tide_cuda_left(entered, cuda_copy(device, stream, to, from, bytes, kind));
}

/* What only a device has is never the host's, and its own device's alone. Memory that the driver does not know has no
 * type. */
bool tide_cuda_misplaced(tide_device *device, const void *data, bool host)
{
    unsigned type = 0;
    int managed = 0, ordinal = -1;
    int asked[] = {TIDE_CU_POINTER_MEMORY_TYPE, TIDE_CU_POINTER_IS_MANAGED,
                   TIDE_CU_POINTER_DEVICE_ORDINAL};
    void *answers[] = {&type, &managed, &ordinal};
    tide_cuda_entered entered;
    if (tide_cuda_enter(device, &entered) != TIDE_OK)
        return false;
    tide_cu_result result = tide_cu.cuPointerGetAttributes(3, asked, answers, cuda_address(data));
    tide_cuda_leave(entered);
    return result == TIDE_CU_SUCCESS && type == TIDE_CU_MEMORY_DEVICE && managed == 0 &&
           ordinal >= 0 && (host || ordinal != tide_cuda_of(device)->ordinal);
}

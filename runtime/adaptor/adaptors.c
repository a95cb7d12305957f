/* SPDX-License-Identifier: MIT */
/* Device memory for other libraries, in the form that they call: a pointer and no handle. */
#include <tidepool/adaptors.h>

#include <stdio.h>

#include <tidepool/buffers.h>
#include <tidepool/device.h>
#include <tidepool/device_memory.h>

#include "runtime/adaptor/graphs.h"
#include "runtime/base/error.h"
#include "runtime/device/device.h"

tide_adaptor tide_adaptors[TIDE_ADAPTORS];
static bool torch_told; /* atomic: PyTorch says when it captures */

/* ---- the device and its buffers ---------------------------------------------------------------- */

/* Another thread that does the same finds the same. */
static TIDE_COLD bool adaptor_open(tide_adaptor *of)
{
    char name[16];
    snprintf(name, sizeof name, "cuda:%d", (int)(of - tide_adaptors));
    tide_device *device = tide_device_open(name);
    tide_buffers *buffers = device != NULL ? tide_buffers_shared(device, TIDE_BUFFER_DEVICE) : NULL;
    if (buffers == NULL) {
        (void)tide_device_close(device);
        return false;
    }
    __atomic_store_n(&of->device, device, __ATOMIC_RELEASE);
    __atomic_store_n(&of->buffers, buffers, __ATOMIC_RELEASE);
    return true;
}

tide_adaptor *tide_adaptor_of(int device, const char *call)
{
    if (TIDE_LIKELY(device >= 0 && device < TIDE_ADAPTORS))
        return &tide_adaptors[device];
    tide_fail(TIDE_ERROR_ARGUMENT, call, "device %d; there are 0 to %d", device, TIDE_ADAPTORS - 1);
    return NULL;
}

tide_adaptor *tide_adaptor_ready(int device, const char *call)
{
    tide_adaptor *of = tide_adaptor_of(device, call);
    return of != NULL && (tide_adaptor_buffers(of) != NULL || adaptor_open(of)) ? of : NULL;
}

tide_adaptor *tide_adaptor_on(const tide_device *device)
{
    for (int i = 0; i < TIDE_ADAPTORS; i++)
        if (__atomic_load_n(&tide_adaptors[i].device, __ATOMIC_ACQUIRE) == device)
            return &tide_adaptors[i];
    return NULL;
}

/* ---- memory ------------------------------------------------------------------------------------ */

static void *adaptor_acquire(tide_buffers *buffers, size_t size, void *stream)
{
    tide_buffer buffer = tide_buffer_acquire_on(buffers, size, TIDE_BUFFER_DEVICE, stream);
    return buffer.generation != 0 ? tide_buffer_pointer(buffers, buffer) : NULL;
}

static void *adaptor_malloc(size_t size, int device, void *stream, const char *call)
{
    tide_adaptor *of = size != 0 ? tide_adaptor_ready(device, call) : NULL;
    if (of == NULL)
        return NULL;
    tide_graph_pool *pool = NULL;
    if (TIDE_UNLIKELY(__atomic_load_n(&of->begun, __ATOMIC_ACQUIRE) != NULL))
        pool = tide_graph_pool_for(of, stream);
    if (TIDE_LIKELY(pool == NULL))
        return adaptor_acquire(tide_adaptor_buffers(of), size, stream);
    void *data = adaptor_acquire(pool->buffers, size, stream);
    tide_graph_pool_let_go(pool);
    return data;
}

/* Of a graph's memory, or of none. */
static TIDE_COLD void adaptor_free_elsewhere(tide_adaptor *of, void *data, int device, void *stream,
                                             const char *call)
{
    tide_graph_pool *pool = tide_graph_pool_of(of, data);
    if (pool == NULL) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "%p is no memory of device %d that is held", data,
                  device);
        return;
    }
    (void)tide_buffer_release_on(pool->buffers, tide_buffer_of(pool->buffers, data), stream);
    tide_graph_pool_let_go(pool);
}

/* May what is given back be a graph's? Where captures are told it is none of these buffers. Nor is
 * it on the legacy stream, which is never captured. */
static bool adaptor_is_captured(const tide_adaptor *of, void *stream, bool told)
{
    tide_device *device = __atomic_load_n(&of->device, __ATOMIC_ACQUIRE);
    return !told && (uintptr_t)stream > TIDE_STREAM_LEGACY && !tide_device_lost(device) &&
           tide_device_capturing(device, stream);
}

static void adaptor_free(void *data, int device, void *stream, bool told, const char *call)
{
    tide_adaptor *of = data != NULL ? tide_adaptor_of(device, call) : NULL;
    if (of == NULL)
        return;
    tide_buffers *buffers = tide_adaptor_buffers(of);
    tide_buffer buffer = tide_buffer_of(buffers, data);
    if (TIDE_UNLIKELY(buffer.generation == 0))
        adaptor_free_elsewhere(of, data, device, stream, call);
    else if (TIDE_UNLIKELY(adaptor_is_captured(of, stream, told)))
        tide_fail(TIDE_ERROR_STATE, call, "a graph is captured on the stream: %p stays its own",
                  data);
    else if (TIDE_LIKELY(__atomic_load_n(&of->recorded, __ATOMIC_ACQUIRE) == NULL) ||
             tide_graph_order_recorded(of, data, stream))
        (void)tide_buffer_release_on(buffers, buffer, stream);
}

/* ---- the functions ------------------------------------------------------------------------------ */

void *tide_torch_malloc(ssize_t size, int device, void *stream)
{
    const char *call = "tide_torch_malloc";
    if (TIDE_LIKELY(size >= 0))
        return adaptor_malloc((size_t)size, device, stream, call);
    tide_fail(TIDE_ERROR_ARGUMENT, call, "%zd bytes", size);
    return NULL;
}

void tide_torch_free(void *data, ssize_t size, int device, void *stream)
{
    (void)size;
    adaptor_free(data, device, stream, __atomic_load_n(&torch_told, __ATOMIC_RELAXED),
                 "tide_torch_free");
}

void tide_torch_told(void)
{
    __atomic_store_n(&torch_told, true, __ATOMIC_RELAXED);
}

void tide_torch_empty_cache(void)
{
    for (int i = 0; i < TIDE_ADAPTORS; i++) {
        tide_buffers *buffers = tide_adaptor_buffers(&tide_adaptors[i]);
        if (buffers == NULL)
            continue;
        (void)tide_buffers_trim(buffers, 0);
        (void)tide_device_memory_trim(tide_adaptors[i].device, 0);
    }
}

void tide_torch_memory_fraction(double fraction, int device)
{
    tide_adaptor *of = tide_adaptor_ready(device, "tide_torch_memory_fraction");
    if (of == NULL)
        return;
    const size_t limit = fraction > 0 ? (size_t)(fraction * (double)of->device->bytes) : 0;
    __atomic_store_n(&of->device->limit, limit + (limit == 0), __ATOMIC_RELAXED); /* 0 is none */
}

void *tide_cupy_malloc(void *stream, size_t size, int device)
{
    return adaptor_malloc(size, device, stream, "tide_cupy_malloc");
}

void tide_cupy_free(void *stream, void *data, int device)
{
    adaptor_free(data, device, stream, false, "tide_cupy_free");
}

/* SPDX-License-Identifier: MIT */
/* Device memory for other libraries, in the form that they call: a pointer and no handle. */
#include <tidepool/adaptors.h>

#include <stdio.h>

#include <tidepool/buffers.h>
#include <tidepool/device.h>

#include "runtime/adaptor/graphs.h"
#include "runtime/base/error.h"
#include "runtime/device/device.h"

static tide_adaptor adaptors[TIDE_ADAPTORS];
static bool torch_told; /* atomic: PyTorch says when it captures */

/* ---- the device and its buffers ---------------------------------------------------------------- */

/* Becomes that of all. Another thread may have been first: with the same one. */
static tide_buffers *adaptor_put(tide_adaptor *of, tide_device *device, tide_buffers *buffers)
{
    tide_buffers *other = NULL;
    __atomic_store_n(&of->device, device, __ATOMIC_RELEASE);
    if (__atomic_compare_exchange_n(&of->buffers, &other, buffers, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return buffers;
    (void)tide_buffers_destroy(buffers);
    (void)tide_device_close(device);
    return other;
}

static TIDE_COLD tide_buffers *adaptor_open(tide_adaptor *of)
{
    char name[16];
    snprintf(name, sizeof name, "cuda:%d", (int)(of - adaptors));
    tide_device *opened = tide_device_open(name);
    tide_buffers *buffers = opened != NULL ? tide_buffers_shared(opened, TIDE_BUFFER_DEVICE) : NULL;
    if (buffers != NULL)
        return adaptor_put(of, opened, buffers);
    (void)tide_device_close(opened);
    return NULL;
}

static tide_buffers *adaptor_buffers(const tide_adaptor *of)
{
    return __atomic_load_n(&of->buffers, __ATOMIC_ACQUIRE);
}

/* NULL with a message: there is no such device. */
static tide_adaptor *adaptor_of(int device, const char *call)
{
    if (TIDE_LIKELY(device >= 0 && device < TIDE_ADAPTORS))
        return &adaptors[device];
    tide_fail(TIDE_ERROR_ARGUMENT, call, "device %d; there are 0 to %d", device, TIDE_ADAPTORS - 1);
    return NULL;
}

/* The same, with its device open. */
static tide_adaptor *adaptor_ready(int device, const char *call)
{
    tide_adaptor *of = adaptor_of(device, call);
    return of != NULL && (adaptor_buffers(of) != NULL || adaptor_open(of) != NULL) ? of : NULL;
}

/* ---- memory ------------------------------------------------------------------------------------ */

static void *adaptor_acquire(tide_buffers *buffers, size_t size, void *stream)
{
    tide_buffer buffer = tide_buffer_acquire_on(buffers, size, TIDE_BUFFER_DEVICE, stream);
    return buffer.generation != 0 ? tide_buffer_pointer(buffers, buffer) : NULL;
}

/* Where memory was short: graphs that were dropped under a capture may have some still. */
static TIDE_COLD void *adaptor_acquire_again(tide_adaptor *of, size_t size, void *stream)
{
    const tide_status status = tide_error_status();
    tide_failure why;
    if (status != TIDE_ERROR_MEMORY && status != TIDE_ERROR_LIMIT)
        return NULL;
    tide_failure_keep(&why);
    if (tide_graph_sweep(of))
        return adaptor_acquire(adaptor_buffers(of), size, stream);
    tide_failure_restore(&why);
    return NULL;
}

static void *adaptor_malloc(size_t size, int device, void *stream, const char *call)
{
    tide_adaptor *of = size != 0 ? adaptor_ready(device, call) : NULL;
    if (of == NULL)
        return NULL;
    tide_graph_pool *pool = tide_graph_pool_for(of, stream);
    void *data = NULL;
    if (TIDE_LIKELY(pool == NULL)) {
        data = adaptor_acquire(adaptor_buffers(of), size, stream);
        return TIDE_LIKELY(data != NULL) ? data : adaptor_acquire_again(of, size, stream);
    }
    data = adaptor_acquire(pool->buffers, size, stream);
    tide_graph_pool_let_go(of, pool);
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
    tide_graph_pool_let_go(of, pool);
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
    tide_adaptor *of = data != NULL ? adaptor_of(device, call) : NULL;
    if (of == NULL)
        return;
    tide_buffers *buffers = adaptor_buffers(of);
    tide_buffer buffer = tide_buffer_of(buffers, data);
    if (TIDE_UNLIKELY(buffer.generation == 0))
        adaptor_free_elsewhere(of, data, device, stream, call);
    else if (TIDE_UNLIKELY(adaptor_is_captured(of, stream, told)))
        tide_fail(TIDE_ERROR_STATE, call, "a graph is captured on the stream: %p stays its own",
                  data);
    else if (TIDE_LIKELY(tide_graph_follow_recorded(of, data, stream)))
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

tide_status tide_torch_pool_begin(int device, tide_torch_pool pool,
                                  const tide_torch_capture *capture)
{
    const char *call = "tide_torch_pool_begin";
    tide_adaptor *of = capture != NULL ? adaptor_ready(device, call) : NULL;
    if (of != NULL)
        return tide_graph_pool_begin(of, pool, capture, call);
    return capture != NULL ? tide_error_status()
                           : tide_fail(TIDE_ERROR_ARGUMENT, call, "the capture is NULL");
}

void tide_torch_pool_end(int device, tide_torch_pool pool)
{
    tide_adaptor *of = adaptor_of(device, "tide_torch_pool_end");
    if (of != NULL)
        tide_graph_pool_end(of, pool);
}

void tide_torch_pool_release(int device, tide_torch_pool pool)
{
    tide_adaptor *of = adaptor_of(device, "tide_torch_pool_release");
    if (of != NULL)
        tide_graph_pool_release(of, pool);
}

void tide_torch_record_stream(void *data, void *stream)
{
    const char *call = "tide_torch_record_stream";
    for (int i = 0; data != NULL && i < TIDE_ADAPTORS; i++)
        if (tide_buffer_of(adaptor_buffers(&adaptors[i]), data).generation != 0)
            (void)tide_graph_record(&adaptors[i], data, stream, call);
}

tide_status tide_torch_stats(int device, tide_torch_statistics *out)
{
    const char *call = "tide_torch_stats";
    if (out == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the result is NULL");
    tide_adaptor *of = adaptor_ready(device, call);
    return of != NULL ? tide_graph_stats(of, out) : tide_error_status();
}

tide_status tide_torch_blocks(int device, tide_torch_block *out, size_t room, size_t *count)
{
    const char *call = "tide_torch_blocks";
    if (count == NULL || (out == NULL && room != 0))
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the result is NULL");
    tide_adaptor *of = adaptor_ready(device, call);
    return of != NULL ? tide_graph_blocks(of, out, room, count) : tide_error_status();
}

void *tide_cupy_malloc(void *stream, size_t size, int device)
{
    return adaptor_malloc(size, device, stream, "tide_cupy_malloc");
}

void tide_cupy_free(void *stream, void *data, int device)
{
    adaptor_free(data, device, stream, false, "tide_cupy_free");
}

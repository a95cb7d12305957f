/* SPDX-License-Identifier: MIT */
/* Device memory for other libraries, in the form that they call: a pointer and no handle. */
#include <tidepool/adaptors.h>

#include <stdio.h>

#include <tidepool/buffers.h>
#include <tidepool/device.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"

enum { DEVICES = 64 };

/* Of each device its shared buffers, once they are wanted. Atomic; they stay. */
static tide_buffers *adaptor_buffers[DEVICES];

static tide_buffers *adaptor_open(int device)
{
    char name[16];
    snprintf(name, sizeof name, "cuda:%d", device);
    tide_device *opened = tide_device_open(name);
    if (opened == NULL)
        return NULL;
    tide_buffers *buffers = tide_buffers_shared(opened, TIDE_BUFFER_DEVICE), *other = NULL;
    if (buffers != NULL && __atomic_compare_exchange_n(&adaptor_buffers[device], &other, buffers,
                                                       false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return buffers;
    if (buffers != NULL)
        (void)tide_buffers_destroy(buffers); /* another thread was first: it is the same instance */
    (void)tide_device_close(opened);
    return other;
}

static tide_buffers *adaptor_of(int device, const char *call)
{
    if (device < 0 || device >= DEVICES) {
        tide_fail(TIDE_ERROR_ARGUMENT, call, "device %d; there are 0 to %d", device, DEVICES - 1);
        return NULL;
    }
    tide_buffers *buffers = __atomic_load_n(&adaptor_buffers[device], __ATOMIC_ACQUIRE);
    return buffers != NULL ? buffers : adaptor_open(device);
}

static void *adaptor_malloc(size_t size, int device, void *stream, const char *call)
{
    tide_buffers *buffers = size != 0 ? adaptor_of(device, call) : NULL;
    if (buffers == NULL)
        return NULL;
    tide_buffer buffer = tide_buffer_acquire_on(buffers, size, TIDE_BUFFER_DEVICE, stream);
    return buffer.generation != 0 ? tide_buffer_pointer(buffers, buffer) : NULL;
}

static void adaptor_free(void *data, int device, void *stream, const char *call)
{
    tide_buffers *buffers = data != NULL ? adaptor_of(device, call) : NULL;
    if (buffers == NULL)
        return;
    tide_buffer buffer = tide_buffer_of(buffers, data);
    if (buffer.generation == 0)
        tide_fail(TIDE_ERROR_ARGUMENT, call, "%p is no memory of device %d that is held", data,
                  device);
    else
        (void)tide_buffer_release_on(buffers, buffer, stream);
}

void *tide_torch_malloc(ssize_t size, int device, void *stream)
{
    const char *call = "tide_torch_malloc";
    if (size >= 0)
        return adaptor_malloc((size_t)size, device, stream, call);
    tide_fail(TIDE_ERROR_ARGUMENT, call, "%zd bytes", size);
    return NULL;
}

void tide_torch_free(void *data, ssize_t size, int device, void *stream)
{
    (void)size;
    adaptor_free(data, device, stream, "tide_torch_free");
}

void *tide_cupy_malloc(void *stream, size_t size, int device)
{
    return adaptor_malloc(size, device, stream, "tide_cupy_malloc");
}

void tide_cupy_free(void *stream, void *data, int device)
{
    adaptor_free(data, device, stream, "tide_cupy_free");
}

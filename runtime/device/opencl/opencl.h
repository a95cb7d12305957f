/* SPDX-License-Identifier: MIT */
/* OpenCL devices, through the ICD loader: what the files of this folder share. */
#ifndef TIDEPOOL_RUNTIME_DEVICE_OPENCL_OPENCL_H
#define TIDEPOOL_RUNTIME_DEVICE_OPENCL_OPENCL_H

#include "runtime/base/assert.h"
#include "runtime/base/lock.h"
#include "runtime/device/device.h"
#include "runtime/device/gate.h"
#include "runtime/device/opencl/api.h"

/* The entry points; NULL until the loader is there. */
typedef struct tide_opencl_calls {
#define TIDE_CL(result, name, arguments) result(*name) arguments;
    TIDE_CL_ENTRIES(TIDE_CL)
#undef TIDE_CL
} tide_opencl_calls;

extern tide_opencl_calls tide_opencl;

/* The loader's file. A test may name another one, before anything is opened. */
extern const char *tide_opencl_library;

/* Finds the loader and its entry points, unless they are found. One thread at a time
 * (runtime/device/device.c). */
tide_status tide_opencl_load(const char *call);

/* How slots lie in the device: values of the setting `opencl_memory`. The host touches neither. */
enum {
    TIDE_OPENCL_BEST = 0,   /* shared, where there is such memory                    */
    TIDE_OPENCL_SHARED = 1, /* shared virtual memory: pointers are addresses         */
    TIDE_OPENCL_BUFFERS = 2 /* plain buffers; pointers are numbers that stand for it */
};

/* A range of addresses that stands for a buffer. A device's table is sorted by address. */
typedef struct tide_opencl_span {
    char *start;
    size_t bytes;
    tide_cl_mem mem;
} tide_opencl_span;

typedef struct tide_opencl_device {
    tide_device *base;
    tide_cl_device device;
    tide_cl_context context;
    tide_cl_queue queue; /* the one that NULL stands for */
    int memory;          /* TIDE_OPENCL_SHARED or BUFFERS */

    /* Guards what follows. The driver is called without it. */
    tide_lock lock;
    tide_opencl_span *spans;
    size_t span_count, span_room;
} tide_opencl_device;

static inline tide_opencl_device *tide_opencl_of(const tide_device *device)
{
    tide_assert(device->own != NULL); /* it is open */
    return device->own;
}

static inline tide_cl_queue tide_opencl_queue(const tide_opencl_device *device, void *stream)
{
    return stream != NULL ? (tide_cl_queue)stream : device->queue;
}

/* TIDE_OK, or fails with the driver's error in words; an error that says so loses the device. */
tide_status tide_opencl_check(const tide_opencl_device *device, int32_t error, const char *call);

/* Calls the entry point: as above. */
#define TIDE_OPENCL_CALL(device, entry, ...) \
    tide_opencl_check(device, tide_opencl.entry(__VA_ARGS__), #entry)

/* runtime/device/opencl/memory.c */
tide_status tide_opencl_allocate(tide_device *, void *stream, int memory, size_t bytes,
                                 size_t align, void **data);
void tide_opencl_release(tide_device *, void *stream, int memory, void *data, size_t bytes);
tide_status tide_opencl_fill(tide_device *, void *stream, void *data, const void *pattern,
                             size_t pattern_bytes, size_t count);
tide_status tide_opencl_copy(tide_device *, void *stream, void *to, const void *from, size_t bytes,
                             tide_copy_kind kind);
bool tide_opencl_misplaced(tide_device *, const void *data, bool host);
void *tide_opencl_buffer(tide_device *, const void *data, size_t *offset);

/* runtime/device/opencl/stream.c */
tide_status tide_opencl_order(tide_device *, void *before, void *after);
tide_status tide_opencl_wait(tide_device *, void *stream);
tide_status tide_opencl_wait_all(tide_device *);
void *tide_opencl_mark(tide_device *, void *stream);
bool tide_opencl_mark_done(tide_device *, void *mark);
tide_status tide_opencl_mark_wait(tide_device *, void *mark);
tide_status tide_opencl_mark_follow(tide_device *, void *mark, void *stream);
void tide_opencl_mark_drop(tide_device *, void *mark);
uint64_t tide_opencl_stream_number(tide_device *, void *stream);
uint64_t tide_opencl_stream_check(tide_device *, void *stream);

#endif

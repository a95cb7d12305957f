/* SPDX-License-Identifier: MIT */
/* CUDA devices, through the driver: what the files of this folder share. */
#ifndef TIDEPOOL_RUNTIME_DEVICE_CUDA_CUDA_H
#define TIDEPOOL_RUNTIME_DEVICE_CUDA_CUDA_H

#include <pthread.h>

#include "runtime/base/assert.h"
#include "runtime/device/cuda/api.h"
#include "runtime/device/device.h"

/* An event: a mark, or kept in the list of free ones. */
typedef struct tide_cuda_mark {
    struct tide_cuda_mark *next;
    tide_cu_event event;
    void *stream;
} tide_cuda_mark;

/* Memory that was given up while a graph was captured on its stream. */
typedef struct tide_cuda_deferred {
    struct tide_cuda_deferred *next;
    void *stream, *data;
} tide_cuda_deferred;

typedef struct tide_cuda {
    tide_cu_device ordinal;
    tide_cu_context context; /* the primary one: programs that use the runtime API share it */
    tide_cu_pool pool;       /* its own: it keeps memory that is given back */
    pthread_mutex_t lock;    /* of what follows */
    tide_cuda_mark *free_marks;
    tide_cuda_deferred *deferred;
} tide_cuda;

/* The driver's entry points: filled once, by the first device. */
extern tide_cu_driver tide_cu;

/* The file to load as the driver; NULL: libcuda.so.1. No effect once the driver is loaded. */
void tide_cuda_driver_set(const char *path);

/* Loads the driver, unless it is loaded. Called while a device is opened: by one thread
 * at a time. */
tide_status tide_cuda_load(void);

/* Stand around calls of the driver; may be nested. `begin` is false once the process has begun to
 * exit: then neither a call nor `end` may follow. Drivers are torn down in no particular order, so
 * the system takes back what is left. */
bool tide_cuda_begin(void);
void tide_cuda_end(void);

/* The failure of an entry point, in the driver's words. An error that no context survives
 * loses the device. */
tide_status tide_cuda_fail(tide_device *device, const char *entry, tide_cu_result result);

#define TIDE_CUDA_TRY(device, entry, ...)                    \
    do {                                                     \
        tide_cu_result result_ = tide_cu.entry(__VA_ARGS__); \
        if (TIDE_UNLIKELY(result_ != TIDE_CU_SUCCESS))       \
            return tide_cuda_fail(device, #entry, result_);  \
    } while (0)

/* Make the device's context current, and restore the one before: `entered` says how. They include
 * `begin` and `end`. TIDE_ERROR_DEVICE, and nothing to leave, while the process exits. */
typedef enum tide_cuda_entered { TIDE_CUDA_WAS_CURRENT, TIDE_CUDA_PUSHED } tide_cuda_entered;
tide_status tide_cuda_enter(tide_device *device, tide_cuda_entered *entered);
void tide_cuda_leave(tide_cuda_entered entered);

static inline tide_cuda *tide_cuda_of(const tide_device *device)
{
    tide_assert(device->own != NULL); /* it is open, or being opened */
    return device->own;
}

/* runtime/device/cuda/memory.c */
tide_status tide_cuda_allocate(tide_device *device, void *stream, int memory, size_t bytes,
                               size_t align, void **data);
void tide_cuda_release(tide_device *device, void *stream, int memory, void *data, size_t bytes);
tide_status tide_cuda_fill(tide_device *device, void *stream, void *data, const void *pattern,
                           size_t pattern_bytes, size_t count);
tide_status tide_cuda_copy(tide_device *device, void *stream, void *to, const void *from,
                           size_t bytes);
/* All deferred memory, of a device that is idle. Not `reachable`: the driver may not be called. */
void tide_cuda_release_deferred(tide_device *device, bool reachable);

/* runtime/device/cuda/streams.c */
tide_status tide_cuda_order(tide_device *device, void *before, void *after);
tide_status tide_cuda_wait(tide_device *device, void *stream);
tide_status tide_cuda_wait_all(tide_device *device);
void *tide_cuda_mark_make(tide_device *device, void *stream);
bool tide_cuda_mark_done(tide_device *device, void *mark);
tide_status tide_cuda_mark_wait(tide_device *device, void *mark);
tide_status tide_cuda_mark_follow(tide_device *device, void *mark, void *stream);
void tide_cuda_mark_drop(tide_device *device, void *mark);
bool tide_cuda_capturing(tide_device *device, void *stream);
uint64_t tide_cuda_stream_number(tide_device *device, void *stream);
void tide_cuda_marks_end(tide_device *device, bool reachable); /* all kept events; as above */

/* runtime/device/cuda/code.c */
void *tide_cuda_module(tide_device *device, const void *code, size_t bytes, const char *options);
void tide_cuda_module_drop(tide_device *device, void *module);
void *tide_cuda_kernel(tide_device *device, void *module, const char *name);
tide_status tide_cuda_launch(tide_device *device, void *stream, void *kernel, size_t groups,
                             size_t group, const tide_argument *arguments, size_t count);

#endif

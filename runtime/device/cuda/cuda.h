/* SPDX-License-Identifier: MIT */
/* CUDA devices, through the driver: what their files share. */
#ifndef TIDEPOOL_RUNTIME_DEVICE_CUDA_CUDA_H
#define TIDEPOOL_RUNTIME_DEVICE_CUDA_CUDA_H

#include <pthread.h>

#include "runtime/device/cuda/api.h"
#include "runtime/device/device.h"

/* An event, while it is a mark or waits to be one. */
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
    tide_cu_pool pool;       /* its own, keeping what it has */
    pthread_mutex_t lock;    /* of what follows */
    tide_cuda_mark *free_marks;
    tide_cuda_deferred *deferred;
} tide_cuda;

/* The driver's entry points: filled once, by the first device. */
extern tide_cu_driver tide_cu;

/* Which library the driver is, in place of libcuda.so.1; before the first device is opened. NULL:
 * the usual one. */
void tide_cuda_driver_set(const char *path);

/* Loads the driver, once; by who opens a device. */
tide_status tide_cuda_load(void);

/* Around calls of the driver; false, and no call may follow, once the process has begun to exit.
 * Drivers are torn down in no particular order: what there still is is left to the system. May be
 * nested. */
bool tide_cuda_begin(void);
void tide_cuda_end(void);

/* The failure of an entry point, in the driver's words. What a context does not survive loses the
 * device. */
tide_status tide_cuda_fail(tide_device *device, const char *entry, tide_cu_result result);

#define TIDE_CUDA_TRY(device, entry, ...)                                \
    do {                                                                 \
        tide_cu_result result_ = tide_cu.entry(__VA_ARGS__);             \
        if (TIDE_UNLIKELY(result_ != TIDE_CU_SUCCESS))                   \
            return tide_cuda_fail(device, #entry, result_);              \
    } while (0)

/* Makes the device's context current, whatever was; `entered` says what is to be done to leave it
 * so. Begins and ends as above. TIDE_ERROR_DEVICE while the process exits. */
typedef enum tide_cuda_entered { TIDE_CUDA_WAS_CURRENT, TIDE_CUDA_PUSHED } tide_cuda_entered;
tide_status tide_cuda_enter(tide_device *device, tide_cuda_entered *entered);
void tide_cuda_leave(tide_cuda_entered entered);

static inline tide_cuda *tide_cuda_of(const tide_device *device)
{
    return device->own;
}

/* The methods: cuda_memory.c, cuda_streams.c, cuda_code.c. */
tide_status tide_cuda_allocate(tide_device *device, void *stream, int memory, size_t bytes,
                               size_t align, void **data);
void tide_cuda_release(tide_device *device, void *stream, int memory, void *data, size_t bytes);
tide_status tide_cuda_fill(tide_device *device, void *stream, void *data, const void *pattern,
                           size_t pattern_bytes, size_t count);
tide_status tide_cuda_copy(tide_device *device, void *stream, void *to, const void *from,
                           size_t bytes);
void tide_cuda_release_deferred(tide_device *device, bool reachable); /* all of it; it is idle */

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
void tide_cuda_marks_end(tide_device *device, bool reachable);

void *tide_cuda_module(tide_device *device, const void *code, size_t bytes, const char *options);
void tide_cuda_module_drop(tide_device *device, void *module);
void *tide_cuda_kernel(tide_device *device, void *module, const char *name);
tide_status tide_cuda_launch(tide_device *device, void *stream, void *kernel, size_t groups,
                             size_t group, const tide_argument *arguments, size_t count);

#endif

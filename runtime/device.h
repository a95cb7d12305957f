/* SPDX-License-Identifier: MIT */
/* Where slot memory comes from. The bookkeeping of a pool is the same for every device; what differs
 * stands behind this one table. Every entry may be called by any thread; each sets the message when it
 * fails. Streams are the device's own handles (tidepool/device.h). */
#ifndef TIDEPOOL_RUNTIME_DEVICE_H
#define TIDEPOOL_RUNTIME_DEVICE_H

#include <tidepool/dlpack.h>
#include <tidepool/pool.h>
#include <tidepool/status.h>

/* Kinds of memory. */
enum {
    TIDE_MEMORY_DEVICE = 0, /* the device's own                                              */
    TIDE_MEMORY_PINNED = 1  /* the host's, page-locked, so that copies need not wait for it  */
};

typedef struct tide_device_methods {
    /* `align` is a power of two. NULL when there is no memory. Memory of the device is ready for work
     * that is queued on the stream from now on; released memory is given back after the work that has
     * been queued on it so far. */
    void *(*allocate)(tide_device *device, void *stream, int memory, size_t bytes, size_t align);
    void (*release)(tide_device *device, void *stream, int memory, void *data, size_t bytes);

    /* Asynchronous, on the stream. A pattern has 1, 2, 4, 8 or any other number of bytes. */
    tide_status (*fill)(tide_device *device, void *stream, void *data, const void *pattern,
                        size_t pattern_bytes, size_t count);
    tide_status (*copy)(tide_device *device, void *stream, void *to, const void *from, size_t bytes);

    /* Whatever is queued on `after` from now on waits for what is queued on `before` now. One event. */
    tide_status (*order)(tide_device *device, void *before, void *after);

    /* The host waits. */
    tide_status (*wait)(tide_device *device, void *stream);

    /* Marks a place in a stream; done: it has been passed (never waits; false while a graph is being
     * captured); wait: the host waits for it. A mark that was dropped may be used again. */
    void *(*mark)(tide_device *device, void *stream);
    bool (*mark_done)(tide_device *device, void *mark);
    tide_status (*mark_wait)(tide_device *device, void *mark);
    void (*mark_drop)(tide_device *device, void *mark);

    /* Is work on the stream being recorded into a graph? Then nothing may be allocated. */
    bool (*capturing)(tide_device *device, void *stream);

    /* A number that no other stream ever had, also when handles are used again. */
    uint64_t (*stream_number)(tide_device *device, void *stream);

    /* May the calling thread use this device with these pools now? A context may have to be made
     * current; leaves it as it was in `leave`. */
    tide_status (*enter)(tide_device *device);
    void (*leave)(tide_device *device);

    void (*close)(tide_device *device);
} tide_device_methods;

struct tide_device {
    const tide_device_methods *methods;
    char name[32];
    tide_dl_device dl;
    bool host; /* the CPU may read and write slots: poison and fills go straight there */
    bool integrated;
    bool lost;       /* atomic */
    uint32_t opened; /* times; guarded by the registry, as is the next */
    uint32_t pools;
    size_t bytes;
    char description[96];
    uint64_t allocations, releases, copies, fills, events, waits, launches, bytes_copied; /* atomic */
};

/* The memory of this process. Always there. */
extern tide_device tide_device_host;

/* Opened by name with its number: runtime/cuda*.c, runtime/opencl*.c. NULL with a message. Registry
 * locked. */
tide_device *tide_cuda_open(unsigned ordinal);
tide_device *tide_opencl_open(unsigned ordinal);

#endif

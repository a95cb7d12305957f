/* SPDX-License-Identifier: MIT */
/* Where slot memory comes from. A pool keeps the same books on every device; what differs stands
 * behind this one table of methods. Any thread may call each of them; a method that fails sets the
 * message. Streams are the device's own handles (tidepool/device.h). */
#ifndef TIDEPOOL_RUNTIME_DEVICE_DEVICE_H
#define TIDEPOOL_RUNTIME_DEVICE_DEVICE_H

#include <tidepool/device.h>
#include <tidepool/dlpack.h>
#include <tidepool/pool.h>
#include <tidepool/status.h>

/* Kinds of memory. */
enum {
    TIDE_MEMORY_DEVICE = 0, /* the device's own                                              */
    TIDE_MEMORY_PINNED = 1  /* the host's, page-locked, so that copies need not wait for it  */
};

/* One argument of a kernel: `value` points to so many bytes. 0 bytes: it points to an address in
 * the device's memory. */
typedef struct tide_argument {
    const void *value;
    size_t bytes;
} tide_argument;

typedef struct tide_device_methods {
    /* `bytes` is not 0, `align` is a power of two. TIDE_ERROR_MEMORY, without a message, when there
     * is no memory. Memory of the device is ready for work that is queued on the stream from now
     * on; released memory goes after the work that is queued on the stream now. Pinned memory is
     * ready, and goes, at once. Memory is released as the kind that it was allocated as. */
    tide_status (*allocate)(tide_device *device, void *stream, int memory, size_t bytes,
                            size_t align, void **data);
    void (*release)(tide_device *device, void *stream, int memory, void *data, size_t bytes);

    /* Asynchronous, on the stream. A pattern has 1, 2, 4, 8 or any other number of bytes, not 0.
     * Copies: both sides are device memory, or one of them is pinned. */
    tide_status (*fill)(tide_device *device, void *stream, void *data, const void *pattern,
                        size_t pattern_bytes, size_t count);
    tide_status (*copy)(tide_device *device, void *stream, void *to, const void *from,
                        size_t bytes);

    /* Work queued on `after` from now on waits for the work that is queued on `before` now. Costs
     * one event. */
    tide_status (*order)(tide_device *device, void *before, void *after);

    /* The host waits for the stream; for all streams of the device. (OpenCL has no call for the
     * latter: there it is all streams that we know.) */
    tide_status (*wait)(tide_device *device, void *stream);
    tide_status (*wait_all)(tide_device *device);

    /* mark: marks a place in a stream. mark_done: has the stream passed it? Never waits; false
     * while a graph is captured. mark_wait: the host waits for it. mark_drop: the caller forgets
     * it; the device may use it for another place. */
    void *(*mark)(tide_device *device, void *stream);
    bool (*mark_done)(tide_device *device, void *mark);
    tide_status (*mark_wait)(tide_device *device, void *mark);
    void (*mark_drop)(tide_device *device, void *mark);

    /* Work queued on the stream from now on waits for the mark. A device that cannot
     * has NULL here. */
    tide_status (*mark_follow)(tide_device *device, void *mark, void *stream);

    /* Is work on the stream recorded into a graph now? Then nothing may be allocated. */
    bool (*capturing)(tide_device *device, void *stream);

    /* A number that no other stream ever had, even where the driver uses a handle again. 0:
     * no such stream. */
    uint64_t (*stream_number)(tide_device *device, void *stream);

    /* The buffer behind a slot's pointer, and the offset in it. NULL where a pointer is
     * the address itself. */
    void *(*buffer)(tide_device *device, const void *data, size_t *offset);

    /* load: a module from code of the device (CUDA: cubin or PTX; OpenCL: source text). kernel: one
     * of its kernels by name, valid until the module is unloaded. Both: NULL with a message.
     * launch: `groups` × `group` threads, neither 0. */
    void *(*load)(tide_device *device, const void *code, size_t bytes, const char *options);
    void (*unload)(tide_device *device, void *module);
    void *(*kernel)(tide_device *device, void *module, const char *name);
    tide_status (*launch)(tide_device *device, void *stream, void *kernel, size_t groups,
                          size_t group, const tide_argument *arguments, size_t count);

    /* Gives back what opening took. The tide_device itself stays. */
    void (*close)(tide_device *device);
} tide_device_methods;

/* Never freed, so that a closed device can still be recognised: its `opened` is 0. */
struct tide_device {
    const tide_device_methods *methods;
    void *own;     /* what the methods keep                                               */
    void *context; /* the driver's                                                        */
    void *stream;  /* the one that NULL stands for                                        */
    char name[32];
    tide_dl_device dl;
    bool host; /* the CPU may read and write slots: poison and fills go straight there */
    bool integrated;
    bool lost;       /* atomic */
    uint32_t holds;  /* pools and exported arrays; atomic */
    uint32_t opened; /* how often; changed under the registry's lock, as is `next` */
    tide_device *next;
    size_t bytes;
    char description[96];
    /* Atomic. */
    uint64_t allocations, releases, copies, fills, events, waits, launches, bytes_copied;
};

/* The memory of this process. It is always open. */
extern tide_device tide_device_host;

/* Counts one more call of this kind. */
static inline void tide_device_count(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static inline bool tide_device_lost(const tide_device *device)
{
    return __atomic_load_n(&device->lost, __ATOMIC_RELAXED);
}

/* Marks the device as lost for good. The message names the call and has the driver's words. */
tide_status tide_device_lose(tide_device *device, const char *call, const char *words);

/* A hold keeps a device from being closed. TIDE_ERROR_DEVICE when it is closed already. Any thread.
 * A holder may take one more hold, and drop holds, without a lock and without being refused:
 * deleters run anywhere. */
tide_status tide_device_hold(tide_device *device, const char *call);
void tide_device_hold_again(tide_device *device);
void tide_device_drop(tide_device *device);

/* A kind of device: names are its prefix and a number. `open` gets a device that is all zero but
 * for its name, and fills in methods, own, context, stream, dl, host, integrated, bytes and
 * description. `open` and the method `close` are called for one device at a time, with the registry
 * unlocked: both may load or unload code. */
typedef struct tide_backend {
    const char *prefix;
    tide_status (*open)(tide_device *device, unsigned ordinal);
} tide_backend;

enum { TIDE_BACKENDS_MAX = 8 };

/* Called while the hooks are attached, before any device is opened. */
void tide_device_add_backend(tide_backend backend);

#endif

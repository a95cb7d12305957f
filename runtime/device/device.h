/* SPDX-License-Identifier: MIT */
/* Where slot memory comes from. The bookkeeping of a pool is the same for every device; what
 * differs stands behind this one table. Every entry may be called by any thread; each sets the
 * message when it fails. Streams are the device's own handles (tidepool/device.h). */
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

/* One argument of a kernel: a value of so many bytes; 0 bytes: an address in the device's memory,
 * which `value` points to. */
typedef struct tide_argument {
    const void *value;
    size_t bytes;
} tide_argument;

typedef struct tide_device_methods {
    /* `align` is a power of two. TIDE_ERROR_MEMORY, without a message, when there is none. Memory
     * of the device is ready for work that is queued on the stream from now on; released memory is
     * given back after the work that has been queued on it so far. (Pinned memory is ready, and
     * gone, at once.) */
    tide_status (*allocate)(tide_device *device, void *stream, int memory, size_t bytes,
                            size_t align, void **data);
    void (*release)(tide_device *device, void *stream, int memory, void *data, size_t bytes);

    /* Asynchronous, on the stream. A pattern has 1, 2, 4, 8 or any other number of bytes. Copies:
     * both sides device memory, or one of them pinned. */
    tide_status (*fill)(tide_device *device, void *stream, void *data, const void *pattern,
                        size_t pattern_bytes, size_t count);
    tide_status (*copy)(tide_device *device, void *stream, void *to, const void *from,
                        size_t bytes);

    /* Whatever is queued on `after` from now on waits for what is queued on `before` now. One
     * event. */
    tide_status (*order)(tide_device *device, void *before, void *after);

    /* The host waits for the stream; for all of the device's streams, known to us or not. */
    tide_status (*wait)(tide_device *device, void *stream);
    tide_status (*wait_all)(tide_device *device);

    /* Marks a place in a stream; done: it has been passed (never waits; false while a graph is
     * being captured); wait: the host waits for it. A mark that was dropped may be used again. */
    void *(*mark)(tide_device *device, void *stream);
    bool (*mark_done)(tide_device *device, void *mark);
    tide_status (*mark_wait)(tide_device *device, void *mark);
    void (*mark_drop)(tide_device *device, void *mark);

    /* Whatever is queued on the stream from now on waits for the mark. NULL: the device cannot. */
    tide_status (*mark_follow)(tide_device *device, void *mark, void *stream);

    /* Is work on the stream being recorded into a graph? Then nothing may be allocated. */
    bool (*capturing)(tide_device *device, void *stream);

    /* A number that no other stream ever had, also when handles are used again; 0: no such stream.
     */
    uint64_t (*stream_number)(tide_device *device, void *stream);

    /* The buffer behind a slot's pointer and the offset in it; NULL where pointers are what they
     * seem. */
    void *(*buffer)(tide_device *device, const void *data, size_t *offset);

    /* Code of the device: a cubin or PTX for CUDA, source text for OpenCL; NULL with a message.
     * Kernels of it by name, until it is unloaded; one launch of `groups` × `group` threads. */
    void *(*load)(tide_device *device, const void *code, size_t bytes, const char *options);
    void (*unload)(tide_device *device, void *module);
    void *(*kernel)(tide_device *device, void *module, const char *name);
    tide_status (*launch)(tide_device *device, void *stream, void *kernel, size_t groups,
                          size_t group, const tide_argument *arguments, size_t count);

    /* Gives back what opening took; the structure stays. */
    void (*close)(tide_device *device);
} tide_device_methods;

/* Never freed, so that a device that was closed can be told: it is `opened` 0 times. */
struct tide_device {
    const tide_device_methods *methods;
    void *own;       /* what the methods keep                                               */
    void *context;   /* the driver's                                                        */
    void *stream;    /* which NULL stands for                                               */
    char name[32];
    tide_dl_device dl;
    bool host; /* the CPU may read and write slots: poison and fills go straight there */
    bool integrated;
    bool lost;       /* atomic */
    uint32_t holds;  /* pools and exported arrays; atomic */
    uint32_t opened; /* times; changed by who opens and closes, under the registry; so is the next */
    tide_device *next;
    size_t bytes;
    char description[96];
    /* Atomic. */
    uint64_t allocations, releases, copies, fills, events, waits, launches, bytes_copied;
};

/* The memory of this process. Always there. */
extern tide_device tide_device_host;

/* One more call of this kind. */
static inline void tide_device_count(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static inline bool tide_device_lost(const tide_device *device)
{
    return __atomic_load_n(&device->lost, __ATOMIC_RELAXED);
}

/* It failed for good; says so, in the driver's words, and what was asked of it. */
tide_status tide_device_lose(tide_device *device, const char *call, const char *words);

/* Keeps a device from being closed. TIDE_ERROR_DEVICE when it is closed already. Any thread.
 * Whoever has a hold may take another without being refused, and drop it, without a lock: deleters
 * run anywhere. */
tide_status tide_device_hold(tide_device *device, const char *call);
void tide_device_hold_again(tide_device *device);
void tide_device_drop(tide_device *device);

/* A kind of device: names are its prefix and a number. `open` fills in methods, own, context,
 * stream, dl, host, integrated, bytes and description of a device that is all zero but for its
 * name. It is called for one device at a time, with the registry unlocked, as is the method
 * `close`: both may load or unload code. */
typedef struct tide_backend {
    const char *prefix;
    tide_status (*open)(tide_device *device, unsigned ordinal);
} tide_backend;

enum { TIDE_BACKENDS_MAX = 8 };

/* While the hooks are attached, before any device is opened. */
void tide_device_add_backend(tide_backend backend);

#endif

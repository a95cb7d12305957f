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

#include "runtime/device/gate.h"

/* Kinds of memory. */
enum {
    TIDE_MEMORY_DEVICE = 0,  /* the device's own                                              */
    TIDE_MEMORY_PINNED = 1,  /* the host's, page-locked, so that copies need not wait for it  */
    TIDE_MEMORY_MANAGED = 2, /* of both, where `managed` is set                              */
    TIDE_MEMORY_IPC = 3      /* the device's, for other processes, too: where `exports` is set */
};

/* What the driver's pool of a device keeps, in bytes: from the system; of that, in use. */
typedef struct tide_reserved {
    bool known; /* there is such a pool */
    void *pool; /* its handle           */
    size_t reserved, reserved_peak, used, used_peak;
} tide_reserved;

/* Those with the host are TIDE_ERROR_STATE while the stream is captured: replays would copy what is there then. */
typedef enum tide_copy_kind {
    TIDE_COPY_WITHIN, /* both sides are the device's */
    TIDE_COPY_STAGED, /* one is pinned memory */
    TIDE_COPY_WAITED  /* one is any memory of the host, which waits for all that the stream has */
} tide_copy_kind;

typedef struct tide_device_methods {
    /* `bytes` is not 0, `align` is a power of two: who calls looks whether the driver has kept it.
     * TIDE_ERROR_MEMORY, without a message, when there is no memory. Memory of the device is ready for
     * work that is queued on the stream from now on; released memory goes after the work that is queued
     * on the stream now. Pinned and managed memory is ready, and goes, at once; so does memory for
     * other processes. Memory is released as the kind that it was allocated as. */
    tide_status (*allocate)(tide_device *device, void *stream, int memory, size_t bytes,
                            size_t align, void **data);
    void (*release)(tide_device *device, void *stream, int memory, void *data, size_t bytes);

    /* Memory of the device's own gets so many bytes where it is, and keeps what it holds; what is new is
     * ready at once, for any stream. TIDE_ERROR_MEMORY, without a message, nothing changed: it cannot.
     * NULL: never. */
    tide_status (*extend)(tide_device *device, void *data, size_t bytes);

    /* Free memory beyond `keep` bytes goes back to the system. NULL where nothing is kept. */
    tide_status (*trim)(tide_device *device, size_t keep);

    /* NULL: there is no pool of the driver's. */
    tide_status (*reserved)(tide_device *device, tide_reserved *out);

    /* Can it not be on the side of the host of a copy, or on that of the device, as far as the driver knows? For
     * pools that are checked. NULL: nobody knows. */
    bool (*misplaced)(tide_device *device, const void *data, bool host);

    /* On the stream; the host waits for TIDE_COPY_WAITED alone. A pattern has 1, 2, 4, 8 or any other
     * number of bytes, not 0. */
    tide_status (*fill)(tide_device *device, void *stream, void *data, const void *pattern,
                        size_t pattern_bytes, size_t count);
    tide_status (*copy)(tide_device *device, void *stream, void *to, const void *from, size_t bytes,
                        tide_copy_kind kind);

    /* A copy from memory of another device of the same back end, behind the work that is queued on
     * either stream now; the other's stream goes on behind it. When it fails no copy is under way.
     * NULL: there is none. */
    tide_status (*copy_between)(tide_device *device, void *stream, void *to, tide_device *other,
                                void *other_stream, const void *from, size_t bytes);

    /* Work queued on `after` from now on waits for the work that is queued on `before` now. Costs
     * one event. */
    tide_status (*order)(tide_device *device, void *before, void *after);

    /* Each of the two comes after the other. NULL: by two orders. */
    tide_status (*order_both)(tide_device *device, void *one, void *other);

    /* The host waits for the stream; for all streams of the device (of OpenCL: for the library's own
     * queue). The latter ends captures, so it is for a device that is being closed, and for memory of
     * dropped graphs while no capture is known of. NULL: the host. */
    tide_status (*wait)(tide_device *device, void *stream);
    tide_status (*wait_all)(tide_device *device);

    /* mark: an event behind the work that is queued on the stream now; NULL with a message:
     * TIDE_ERROR_STATE while the stream is captured. mark_done: has the stream passed it? Never
     * waits. mark_wait: the host waits for it. mark_drop: the caller forgets it; the device may use
     * it again. */
    void *(*mark)(tide_device *device, void *stream);
    bool (*mark_done)(tide_device *device, void *mark);
    tide_status (*mark_wait)(tide_device *device, void *mark);
    void (*mark_drop)(tide_device *device, void *mark);

    /* Work queued on the stream from now on waits for the mark. A device that cannot
     * has NULL here. */
    tide_status (*mark_follow)(tide_device *device, void *mark, void *stream);

    /* Is work on the stream recorded into a graph now? For calls that are rare. NULL: never. */
    bool (*capturing)(tide_device *device, void *stream);

    /* Tells a stream from all others that are there, without a question to the driver. 0: it cannot be one. */
    uint64_t (*stream_number)(tide_device *device, void *stream);

    /* The driver's own number of the stream, which no other stream ever had; TIDE_STREAM_UNASKED
     * where there is none, and while it is captured, for the question would end that. 0, with a message:
     * no such stream, or one that cannot be a pool's, or the driver does not tell. For pools that are
     * checked. NULL: stream_number tells. */
    uint64_t (*stream_check)(tide_device *device, void *stream);

    /* The buffer behind a slot's pointer, and the offset in it; NULL where a pointer is
     * the address itself. No method: everywhere. */
    void *(*buffer)(tide_device *device, const void *data, size_t *offset);

    /* Gives back what opening took. The tide_device itself stays. Once exit has begun `own` and what it
     * has are left: a thread may be in the driver with them. Else `own` is NULL afterwards. NULL: the
     * host, which is never closed. */
    void (*close)(tide_device *device);
} tide_device_methods;

/* Never freed, so that a closed device can still be recognised: its `opened` is 0. */
struct tide_device {
    const tide_device_methods *methods;
    void *own;     /* what the methods keep                                               */
    void *context; /* the driver's                                                        */
    void *stream;  /* the one that NULL stands for                                        */
    void *service; /* the library's own, or `stream`: what outlived its stream goes there */
    char name[32];
    tide_dl_device dl;
    bool host; /* the CPU may read and write slots: poison and fills go straight there */
    bool integrated;
    bool managed, concurrent, exports; /* tide_device_information */
    bool extends;                      /* the method `extend` may serve */
    tide_driver driver;                /* that is not called once exit has begun, nor in a child */
    const char *lost;                  /* why, for good; NULL: it is not; atomic */
    uint32_t holds;                    /* pools and exported arrays; atomic */
    void (*unheld)(tide_device *device); /* called when the last hold goes; NULL: nothing */
    void *kernels;   /* for frames, made by the first one: jit/kernels; atomic */
    uint32_t graphs; /* captures that the library was told of and that have not ended; atomic */
    struct tide_deferred *deferred; /* runtime/device/deferred.h; atomic */
    uint32_t opened;                /* how often; under the registry's lock, as is the next */
    tide_device *next;
    size_t bytes;
    char description[96];
    /* Of its memory, atomic (runtime/device/budget.h): what is held and may be. */
    size_t held, held_peak, limit;
    uint64_t refused, asked;
    /* Who is asked, and what with: changed, and read as a pair, under the registry's lock. */
    bool (*full)(tide_device *device, size_t wanted, unsigned times, void *user);
    void *full_user;
    /* Atomic. */
    uint64_t allocations, releases, copies, fills, events, waits, launches, bytes_copied;
};

/* The memory of this process. It is always open. */
extern tide_device tide_device_host;

/* Is so much memory of the host a mapping of its own, which starts with zeros? */
bool tide_host_maps(size_t bytes);

/* Such memory, whose contents nobody needs, gets new pages, which are zero. False: the system would
 * not; nothing changed. */
bool tide_host_renew(void *data, size_t bytes);

/* What such memory has beyond `bytes` is given back. It is such memory still. */
void tide_host_cut(void *data, size_t had, size_t bytes);

/* Counts one more call of this kind. */
static inline void tide_device_count(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static inline bool tide_device_lost(const tide_device *device)
{
    return __atomic_load_n(&device->lost, __ATOMIC_RELAXED) != NULL;
}

static inline bool tide_device_capturing(tide_device *device, void *stream)
{
    return device->methods->capturing != NULL && device->methods->capturing(device, stream);
}

/* Has the process begun to exit, so that the driver is not called any more? Then every call fails that
 * wants an answer, and nobody knows what the device still does. */
static inline bool tide_device_exiting(const tide_device *device)
{
    return device->driver != TIDE_DRIVER_NONE && tide_driver_exiting(device->driver);
}

/* Once exit has begun nobody waits, so nobody knows what the device still does, unless it was lost
 * before: then nothing. */
static inline bool tide_device_unwatched(const tide_device *device)
{
    return tide_device_exiting(device) && !tide_device_lost(device);
}

/* TIDE_ERROR_DEVICE, with the reason: nobody gets an answer from the device, since it is lost or the
 * process exits. */
tide_status tide_device_answers(const tide_device *device, const char *call);

/* The number of a stream that the call needs. TIDE_ERROR_ARGUMENT where it cannot be one; fails as
 * tide_device_answers does on a lost device. */
tide_status tide_device_find_stream(tide_device *device, void *stream, const char *call,
                                    uint64_t *number);

/* runtime/device/over.c
 * Waits for a stream, or a mark, on behalf of what must not go before that is over. False: the stream is
 * captured (TIDE_ERROR_STATE). True: it is over, or the wait failed, so that nobody can tell, or the device
 * is lost, or exit has begun. In the last case nobody has waited: memory of the device may be given back,
 * since it stays with the driver then, but nothing that is somebody else's (tide_device_unwatched, asked
 * afterwards). */
bool tide_device_stream_over(tide_device *device, void *stream);
bool tide_device_mark_over(tide_device *device, void *mark);

/* What `status` says failed may be under way on the stream all the same, in memory that is given up
 * now: waits for it. Returns the status; the message stays that of it. */
tide_status tide_device_drain_failed(tide_device *device, void *stream, tide_status status);

enum { TIDE_STREAM_UNASKED = 1 };

/* A stream that is captured can wait for none that is not, nor the other way round: the capture
 * would end. TIDE_ERROR_STATE where one of the two is captured. */
tide_status tide_device_check_captures(tide_device *device, void *stream, tide_device *other,
                                       void *other_stream, const char *call);

/* May the stream be captured, as far as the library was told? Asks the driver only then. */
static inline bool tide_device_told_capturing(tide_device *device, void *stream)
{
    return TIDE_UNLIKELY(__atomic_load_n(&device->graphs, __ATOMIC_RELAXED) != 0) &&
           tide_device_capturing(device, stream);
}

/* CUDA: a handle that stands for the default stream of whatever thread uses it. */
enum { TIDE_STREAM_PER_THREAD = 2 };

static inline bool tide_device_own_stream(const tide_device *device, const void *stream)
{
    return device->dl.device_type == TIDE_DL_CUDA && (uintptr_t)stream == TIDE_STREAM_PER_THREAD;
}

/* Marks the device as lost for good: nothing runs on it. `why` stays where it is: each later refusal
 * says it. False, and it is not marked, once exit has begun: a driver that ends answers as one that has
 * lost its device, and work may still run. */
bool tide_device_mark_lost(tide_device *device, const char *why);

/* The same, and fails. The message names the call and has the driver's words, which stay. */
tide_status tide_device_lose(tide_device *device, const char *call, const char *words);

/* In a child of fork: devices that the parent has open, of a driver that it has used, are lost. */
void tide_devices_lose_forked(void);

/* A hold keeps a device from being closed. TIDE_ERROR_DEVICE when it is closed already, or does not
 * answer. Any thread. A holder may take one more hold, and drop holds, without a lock and without being
 * refused: deleters run anywhere. */
tide_status tide_device_hold(tide_device *device, const char *call);

/* The same of any that is open: for who asks the driver nothing, or ends something. */
tide_status tide_device_hold_open(tide_device *device, const char *call);
void tide_device_hold_again(tide_device *device);
void tide_device_drop(tide_device *device);

/* A kind of device: names are its prefix and a number. `open` gets a device that is all zero but
 * for its name, and fills in methods, own, context, stream, dl, host, integrated, bytes and
 * description. It and the method `close` may load or unload code, so they are called with nothing
 * locked, by one thread at a time. */
typedef struct tide_backend {
    const char *prefix;
    tide_status (*open)(tide_device *device, unsigned ordinal);
} tide_backend;

/* The last has no prefix; NULL: there are none. What names they open, for a message. Both set while the library is
 * attached. */
extern const tide_backend *tide_backends;
extern const char *tide_backend_names;

#endif

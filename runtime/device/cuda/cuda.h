/* SPDX-License-Identifier: MIT */
/* CUDA devices, through the driver: what the files of this folder share. */
#ifndef TIDEPOOL_RUNTIME_DEVICE_CUDA_CUDA_H
#define TIDEPOOL_RUNTIME_DEVICE_CUDA_CUDA_H

#include "runtime/base/assert.h"
#include "runtime/base/lock.h"
#include "runtime/device/cuda/api.h"
#include "runtime/device/device.h"

/* An event: a mark, or kept in the list of free ones. */
typedef struct tide_cuda_mark {
    struct tide_cuda_mark *next;
    tide_cu_event event;
} tide_cuda_mark;

/* Memory that was given up while a graph was captured on its stream. */
typedef struct tide_cuda_deferred {
    struct tide_cuda_deferred *next;
    uint64_t number; /* the stream's: handles are used again */
    void *data;
} tide_cuda_deferred;

/* Memory of a device without memory pools, which work in flight may still use. */
typedef struct tide_cuda_leaving {
    struct tide_cuda_leaving *next;
    void *data, *mark; /* behind its last use */
} tide_cuda_leaving;

/* A device with memory pools: the last release on a stream. Of two marks of one stream the one with
 * the higher ticket is behind all releases that the other is behind. */
typedef struct tide_cuda_released {
    uint64_t number, ticket; /* the stream's; taken between the release and the mark */
    void *mark;              /* NULL: none */
} tide_cuda_released;

/* Places for so many streams, and one more: for what had to leave its place. */
enum { TIDE_CUDA_RELEASED_MAX = 16, TIDE_CUDA_RELEASED_REST = TIDE_CUDA_RELEASED_MAX };

typedef struct tide_cuda {
    tide_cu_device ordinal;
    tide_cu_context context; /* the primary one: programs that use the runtime API share it */
    unsigned long long made; /* the context's number: a reset makes another one */
    tide_cu_pool pool;       /* its own: it keeps memory that is given back; NULL: it has none */
    tide_cu_stream service;  /* its own, non-blocking: tide_device.service */
    bool reset;              /* atomic: the device was, so all handles but the context are gone */
    tide_lock lock;          /* of what follows */
    tide_cuda_mark *free_marks;
    tide_cuda_deferred *deferred;
    tide_cuda_leaving *leaving;
    tide_cuda_released released[TIDE_CUDA_RELEASED_MAX + 1];
    size_t released_next;
    uint64_t released_tickets;
    uint32_t waiting;         /* threads that have in hand what was on its way back */
    uint64_t waits;           /* that have ended, of such threads */
    uint32_t waiting_all;     /* threads that wait for all streams */
    pthread_cond_t wait_over; /* one more wait of either kind has ended */
} tide_cuda;

/* The driver's entry points: filled once, by the first device. */
extern tide_cu_driver tide_cu;

/* The file to load as the driver; NULL: libcuda.so.1. No effect once the driver is loaded. */
void tide_cuda_driver_set(const char *path);

/* Loads the driver, unless it is loaded. Nothing is locked. Any thread: two that come at once both
 * load it. */
tide_status tide_cuda_load(void);

/* Stand around calls of the driver; may be nested. The thread is not cancelled between them: `end`
 * gets what `begin` noted of that. `begin` is false once the process has begun to exit, and in a
 * child that was forked after the driver was loaded: then neither a call nor `end` may follow.
 * Drivers are torn down in no particular order, so the system takes back what is left. */
bool tide_cuda_begin(int *cancel);
void tide_cuda_end(int cancel);

/* Fails with the reason for which `begin` is false. `whose`: the call, or a device's name. */
tide_status tide_cuda_refuse(const char *whose);

/* Is this a child that was forked after the driver was loaded? */
bool tide_cuda_forked(void);

/* Has exit begun, and is this not such a child? Then a thread that is in the driver may never come
 * out, or may come back at any time: what it can reach is not freed. */
bool tide_cuda_exiting(const tide_device *device);

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
typedef struct tide_cuda_entered {
    bool pushed; /* another context was current */
    int cancel;
} tide_cuda_entered;
tide_status tide_cuda_enter(tide_device *device, tide_cuda_entered *entered);
void tide_cuda_leave(tide_cuda_entered entered);

/* Stand around each call that the driver forbids to all threads while one captures a graph in
 * global mode: it loads or unloads code, waits, asks an event, takes or gives memory at once. Such
 * a call would fail, and end the capture of a thread that knows nothing of us. */
int tide_cuda_relax(void); /* the thread's mode before */
void tide_cuda_relax_end(int mode);

/* tide_cuda_enter, before work is queued on a stream that the caller named. TIDE_ERROR_STATE for
 * the legacy stream while a stream is captured that is ordered with it: work there would end that
 * capture. */
tide_status tide_cuda_enter_for(tide_device *device, void *stream, tide_cuda_entered *entered);

static inline tide_cuda *tide_cuda_of(const tide_device *device)
{
    tide_assert(device->own != NULL); /* it is open, or being opened */
    return device->own;
}

/* runtime/device/cuda/memory.c */
tide_status tide_cuda_allocate(tide_device *device, void *stream, int memory, size_t bytes,
                               size_t align, void **data);
tide_status tide_cuda_fill(tide_device *device, void *stream, void *data, const void *pattern,
                           size_t pattern_bytes, size_t count);
tide_status tide_cuda_copy(tide_device *device, void *stream, void *to, const void *from,
                           size_t bytes);
/* Is all of this memory of the host page-locked, as far as the driver knows? */
tide_status tide_cuda_ipc_export(tide_device *device, void *data, unsigned char handle[64]);
void *tide_cuda_ipc_open(tide_device *device, const unsigned char handle[64]);
tide_status tide_cuda_ipc_close(tide_device *device, void *data);
bool tide_cuda_pinned(tide_device *device, const void *host, size_t bytes);

/* runtime/device/cuda/release.c */
void tide_cuda_release(tide_device *device, void *stream, int memory, void *data, size_t bytes);
tide_status tide_cuda_trim(tide_device *device, size_t keep, bool wait);
tide_status tide_cuda_reserved(tide_device *device, tide_reserved *out);
/* Gives memory back behind the work that is queued on the stream, which is not captured. Where the
 * driver refuses it is kept, and given back later. */
void tide_cuda_give_back(tide_device *device, void *stream, void *data);
/* The host waits for memory that is on its way back, or for another thread that does so. False:
 * there was none, nor has anybody waited since the number of waits was `seen`. */
bool tide_cuda_wait_released(tide_device *device, uint64_t seen);
uint64_t tide_cuda_waits(tide_device *device);
/* The same for what is deferred on any stream: for that the host waits for the device. False: there
 * was none, or the host cannot. */
bool tide_cuda_wait_deferred(tide_device *device);
/* Gives back what was given up while the stream was captured, which it is no more. */
void tide_cuda_release_deferred_on(tide_device *device, void *stream);
/* All deferred memory, of a device that is idle; then all that leaves. Not `reachable`: the driver
 * may not be called. */
void tide_cuda_release_deferred(tide_device *device, bool reachable);
void tide_cuda_release_end(tide_device *device, bool reachable);

/* runtime/device/cuda/peer.c */
tide_status tide_cuda_copy_between(tide_device *device, void *stream, void *to, tide_device *other,
                                   void *other_stream, const void *from, size_t bytes);
tide_status tide_cuda_reach(tide_device *device, tide_device *other, bool allow);

/* runtime/device/cuda/streams.c */
tide_status tide_cuda_order(tide_device *device, void *before, void *after);
tide_status tide_cuda_wait(tide_device *device, void *stream);
tide_status tide_cuda_wait_all(tide_device *device);
void tide_cuda_capture_noted(tide_device *device);
void *tide_cuda_mark_make(tide_device *device, void *stream);
/* The same on a stream that may be captured: then it is there for a stream of that capture to
 * follow, and for nothing else. */
void *tide_cuda_mark_record(tide_device *device, void *stream);
bool tide_cuda_mark_done(tide_device *device, void *mark);
tide_status tide_cuda_mark_wait(tide_device *device, void *mark);
tide_status tide_cuda_mark_follow(tide_device *device, void *mark, void *stream);
void tide_cuda_mark_drop(tide_device *device, void *mark);
bool tide_cuda_capturing(tide_device *device, void *stream);
uint64_t tide_cuda_capture_number(tide_device *device, void *stream);
uint64_t tide_cuda_stream_number(tide_device *device, void *stream);
void tide_cuda_marks_end(tide_device *device, bool reachable); /* all kept events; as above */

/* runtime/device/cuda/code.c */
void *tide_cuda_module(tide_device *device, const void *code, size_t bytes, const char *options);
void tide_cuda_module_drop(tide_device *device, void *module);
void *tide_cuda_kernel(tide_device *device, void *module, const char *name);
tide_status tide_cuda_launch(tide_device *device, void *stream, void *kernel, size_t groups,
                             size_t group, const tide_argument *arguments, size_t count);

#endif

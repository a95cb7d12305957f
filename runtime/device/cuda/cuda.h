/* SPDX-License-Identifier: MIT */
/* CUDA devices, through the driver: what the files of this folder share. */
#ifndef TIDEPOOL_RUNTIME_DEVICE_CUDA_CUDA_H
#define TIDEPOOL_RUNTIME_DEVICE_CUDA_CUDA_H

#include "runtime/base/assert.h"
#include "runtime/base/lock.h"
#include "runtime/device/cuda/api.h"
#include "runtime/device/device.h"
#include "runtime/device/gate.h"

/* An event: a mark, or kept in the list of free ones. */
typedef struct tide_cuda_mark {
    struct tide_cuda_mark *next;
    tide_cu_event event;
} tide_cuda_mark;

typedef struct tide_cuda {
    tide_cu_device ordinal;
    tide_cu_context context; /* the primary one: programs that use the runtime API share it */
    tide_cu_pool pool;       /* its own: it keeps memory that is given back; NULL: it has none */
    struct tide_cuda_pages *pages; /* of what is not small: pages.c; NULL: there are none */
    tide_cu_stream service;        /* its own, non-blocking: tide_device.service */
    uint8_t busy[16]; /* atomic, of streams by their handles: orders for which nobody asks */
    tide_lock lock;   /* of the list */
    tide_cuda_mark *free_marks;
} tide_cuda;

/* The driver's entry points: filled once, by the first device. */
extern tide_cu_driver tide_cu;

/* The file to load as the driver; NULL: libcuda.so.1. No effect once the driver is loaded. */
void tide_cuda_driver_set(const char *path);

/* Loads the driver, unless it is loaded. One thread at a time (runtime/device/device.c). */
tide_status tide_cuda_load(void);

/* The failure of an entry point, in the driver's words. An error that no context survives
 * loses the device. */
tide_status tide_cuda_fail(tide_device *device, const char *entry, tide_cu_result result);

static inline tide_status tide_cuda_check(tide_device *device, const char *entry,
                                          tide_cu_result result)
{
    return TIDE_LIKELY(result == TIDE_CU_SUCCESS) ? TIDE_OK : tide_cuda_fail(device, entry, result);
}

/* The same of what gets memory: TIDE_ERROR_MEMORY, without a message, where there is none. */
static inline tide_status tide_cuda_check_memory(tide_device *device, const char *entry,
                                                 tide_cu_result result)
{
    return result == TIDE_CU_OUT_OF_MEMORY ? TIDE_ERROR_MEMORY
                                           : tide_cuda_check(device, entry, result);
}

/* Calls the entry point: TIDE_OK, or fails; and forwards that. */
#define TIDE_CUDA_CALL(device, entry, ...) \
    tide_cuda_check(device, #entry, tide_cu.entry(__VA_ARGS__))
#define TIDE_CUDA_TRY(device, entry, ...) TIDE_FORWARD(TIDE_CUDA_CALL(device, entry, __VA_ARGS__))

/* Make the device's context current and the thread's capture mode relaxed, and restore both; nothing
 * in a method that another one calls. No function of the program is called in between.
 * In any other mode much that the driver can be asked for would fail beside a capture of another
 * thread, and end that capture. TIDE_ERROR_DEVICE, and nothing to leave, while the process exits. */
typedef struct tide_cuda_entered {
    const tide_device *device; /* NULL: nothing is to be left       */
    const tide_device *before; /* of the method that called this one */
    bool pushed;               /* another context was current       */
    int mode;
} tide_cuda_entered;
tide_status tide_cuda_enter(tide_device *device, tide_cuda_entered *entered);
void tide_cuda_leave(tide_cuda_entered entered);

/* Leaves, with what came of it. */
static inline tide_status tide_cuda_left(tide_cuda_entered entered, tide_status status)
{
    tide_cuda_leave(entered);
    return status;
}

/* The mode alone, where there is no context yet, or none any more. */
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
                           size_t bytes, tide_copy_kind kind);
bool tide_cuda_misplaced(tide_device *device, const void *data, bool host);

/* runtime/device/cuda/release.c */
void tide_cuda_release(tide_device *device, void *stream, int memory, void *data, size_t bytes);
tide_status tide_cuda_trim(tide_device *device, size_t keep);
tide_status tide_cuda_reserved(tide_device *device, tide_reserved *out);

/* runtime/device/cuda/pages.c
 * The context is current in all but `give` and `extend`. begin: without a message where the driver
 * cannot. serve: is such a request one for pages? take: TIDE_ERROR_MEMORY, without a message, where
 * there is none. give: false: it is no such memory. reserved: adds what is mapped. */
tide_status tide_cuda_pages_begin(tide_device *device);
void tide_cuda_pages_end(tide_device *device, bool reachable);
bool tide_cuda_pages_serve(const tide_cuda *cuda, size_t bytes, size_t align);
tide_status tide_cuda_pages_take(tide_device *device, size_t bytes, void **data);
bool tide_cuda_pages_give(tide_device *device, void *stream, const void *data);
tide_status tide_cuda_pages_trim(tide_device *device, size_t keep);
void tide_cuda_pages_reserved(tide_device *device, tide_reserved *out);
tide_status tide_cuda_extend(tide_device *device, void *data, size_t bytes);

/* runtime/device/cuda/peer.c */
tide_status tide_cuda_copy_between(tide_device *device, void *stream, void *to, tide_device *other,
                                   void *other_stream, const void *from, size_t bytes);

/* runtime/device/cuda/streams.c */
tide_status tide_cuda_order(tide_device *device, void *before, void *after);
tide_status tide_cuda_order_both(tide_device *device, void *one, void *other);
tide_status tide_cuda_wait(tide_device *device, void *stream);
tide_status tide_cuda_wait_all(tide_device *device);
void *tide_cuda_mark_make(tide_device *device, void *stream);
/* The same on a stream that may be captured: then it is there for a stream of that capture to
 * follow, and for nothing else. */
void *tide_cuda_mark_record(tide_device *device, void *stream);
bool tide_cuda_mark_done(tide_device *device, void *mark);
tide_status tide_cuda_mark_wait(tide_device *device, void *mark);
tide_status tide_cuda_mark_follow(tide_device *device, void *mark, void *stream);
void tide_cuda_mark_drop(tide_device *device, void *mark);
bool tide_cuda_capturing(tide_device *device, void *stream);
/* TIDE_ERROR_STATE: it is. */
tide_status tide_cuda_check_capture(tide_device *device, void *stream);
uint64_t tide_cuda_stream_number(tide_device *device, void *stream);
uint64_t tide_cuda_stream_check(tide_device *device, void *stream);
/* All kept events. Not `reachable`: the driver may not be called. */
void tide_cuda_marks_end(tide_device *device, bool reachable);

/* runtime/device/cuda/code.c
 * A module from a cubin; one of its kernels by name, valid until the module is dropped. Both: NULL with a
 * message. launch: `groups` × `group` threads, neither 0; `arguments` point to the values of the kernel's
 * parameters. */
void *tide_cuda_module(tide_device *device, const void *code);
void tide_cuda_module_drop(tide_device *device, void *module);
void *tide_cuda_kernel(tide_device *device, void *module, const char *name);
tide_status tide_cuda_launch(tide_device *device, void *stream, void *kernel, size_t groups,
                             size_t group, void **arguments);

#endif

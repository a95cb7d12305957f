/* SPDX-License-Identifier: MIT */
/* Devices: where the slots of a pool live. The same pools, scopes, plans and arrays on all of them;
 * only where memory comes from differs.
 *
 *   tide_device *gpu = tide_device_open("cuda:0");
 *   tide_pool *pool = tide_pool_create(&(tide_pool_options){.device = gpu, .stream = stream});
 *   TIDE_FRAME(pool, (float, x, n), (float, y, n));     device pointers, given back with the scope
 *
 * A pool of a device belongs to one thread, one device and one stream. Re-use of a slot on that stream
 * is ordered by the stream itself: a rewind is a move of pointers on the host, with no driver call,
 * while kernels that use the arrays are still in flight. Work on another stream must be declared
 * (tide_pool_use_on): then each rewind orders the streams by one event each. No host ever waits.
 *
 * What is the stream: CUDA a CUstream (NULL: the legacy default stream; cudaStream_t is the same
 * thing); OpenCL a cl_command_queue, in order, or NULL for one of the device's own; host: NULL. */
#ifndef TIDEPOOL_DEVICE_H
#define TIDEPOOL_DEVICE_H

#include <tidepool/array.h>
#include <tidepool/pool.h>
#include <tidepool/status.h>

TIDE_BEGIN_DECLS

/* "host"; "cuda:0", "cuda:1" … through the CUDA driver (libcuda.so.1); "opencl:0" … counted over all
 * platforms, through the ICD loader (libOpenCL.so.1). Neither is linked: both are loaded when first
 * asked for. The same name gives the same device, counted; close it as often. NULL with a message that
 * says what is missing: TIDE_ERROR_DEVICE, TIDE_ERROR_NAME. Any thread. */
TIDE_API tide_device *tide_device_open(const char *name);

/* When it was opened for the last time and no pool is on it: lets it go. TIDE_ERROR_STATE, nothing
 * changed, while there are pools. "host" and NULL: nothing to do. Any thread. */
TIDE_API tide_status tide_device_close(tide_device *device);

typedef struct tide_device_information {
    char name[32];        /* as it was opened                                                */
    char description[96]; /* what the driver calls it                                        */
    tide_dl_device dl;    /* as DLPack names it                                              */
    bool host;            /* the CPU may read and write its slots                            */
    bool integrated;      /* it shares the host's memory                                     */
    bool lost;            /* it failed for good: everything but closing is refused           */
    size_t bytes;         /* of its memory; 0: not known                                     */
    uint64_t allocations, releases, copies, fills, events, waits, launches; /* driver calls  */
    uint64_t bytes_copied;
} tide_device_information;

TIDE_API tide_status tide_device_info(const tide_device *device, tide_device_information *out);

/* The driver's own handles, for what Tidepool does not do: CUDA the CUcontext (primary), OpenCL the
 * cl_context; OpenCL's queue that a NULL stream stands for. NULL for the host. */
TIDE_API void *tide_device_context(const tide_device *device);
TIDE_API void *tide_device_stream(const tide_device *device);

/* OpenCL without shared virtual memory: a slot's pointer is the address of a number only; this is the
 * buffer (a cl_mem, at offset *offset) behind it. With shared virtual memory, and on other devices:
 * NULL, the pointer itself is what kernels take. */
TIDE_API void *tide_device_buffer(tide_pool *pool, const void *data, size_t *offset);

/* ---- streams ---- */

/* From now to the end of the open level its arrays may be used on this stream, too; it has to exist
 * until then, as the pool's own has to as long as the pool. Work queued there from now on comes
 * after all that was queued on the pool's own; and each rewind, from this level on inward, orders
 * both ways: the pool's stream after this one, and, as long as the declaration holds, this one after
 * the pool's. One event for each direction and stream, whatever the number of arrays. What the
 * library itself queues on the pool's stream for an acquire (new memory, fills) this stream comes
 * after, too. TIDE_ERROR_STATE at the root of the pool; TIDE_ERROR_LIMIT beyond 16 streams. */
TIDE_API tide_status tide_pool_use_on(tide_pool *pool, void *stream);

/* The host waits for everything queued on the pool's stream. */
TIDE_API tide_status tide_pool_wait(tide_pool *pool);

/* ---- copies, on the pool's stream ---- */

/* All of these are queued after what is queued on the pool's stream and on declared ones, and before
 * what will be. While a graph is captured: copies within the device and fills only (TIDE_ERROR_STATE). */

/* Between host memory and an array of the pool (or a part of one). The host's side may be any memory:
 * it is staged through pinned memory of the pool's own (four chunks; setting `staging`), so upload
 * returns when `from` may be overwritten, and download when the data is there. An upload waits for the
 * device only when all four chunks are in flight. In a pool that checks, what is in a slot but not in a
 * live array is refused: TIDE_ERROR_STALE, TIDE_ERROR_SIZE. */
TIDE_API tide_status tide_upload(tide_pool *pool, void *to, const void *from, size_t bytes);
TIDE_API tide_status tide_download(tide_pool *pool, void *to, const void *from, size_t bytes);

/* Between two arrays of the pool's device, asynchronous. They must not overlap. */
TIDE_API tide_status tide_copy(tide_pool *pool, void *to, const void *from, size_t bytes);

/* A part of a frame, for what follows. */
typedef struct tide_part {
    void *data; /* device memory          */
    void *host; /* where it comes from or goes to; fills: the value of one element, NULL: zero */
    tide_type type;
    size_t count; /* elements */
} tide_part;

/* All parts in one transfer: packed on the host, unpacked by one launch where the device's helpers are
 * at hand, by copies within the device otherwise (and the other way round). Frames of more than 16 MiB go
 * part by part: packing them would gain nothing. */
TIDE_API tide_status tide_upload_frame(tide_pool *pool, const tide_part *parts, size_t count);
TIDE_API tide_status tide_download_frame(tide_pool *pool, const tide_part *parts, size_t count);

/* All parts filled, each with its own value, in one launch where the device's helpers are at hand, by
 * the driver's fills otherwise. */
TIDE_API tide_status tide_fill_frame(tide_pool *pool, const tide_part *parts, size_t count);

/* A 64-bit hash of each part's content, the same on every device; of bits, those beyond the end do not
 * count. Computed on the device where its helpers are at hand, by the host otherwise, who waits for it
 * either way. It finds differences that happen, not those that somebody makes on purpose. */
TIDE_API tide_status tide_hash_frame(tide_pool *pool, const tide_part *parts, size_t count,
                                     uint64_t *hashes);

TIDE_END_DECLS

#endif

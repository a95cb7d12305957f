/* SPDX-License-Identifier: MIT */
/* Devices: where the slots of a pool live. Pools, scopes, plans and arrays are the same on all
 * devices; only the memory differs.
 *
 *   tide_device *gpu = tide_device_open("cuda:0");
 *   tide_pool *pool = tide_pool_create(&(tide_pool_options){.device = gpu, .stream = stream});
 *   TIDE_FRAME(pool, (float, x, n), (float, y, n));     device pointers, given back with the scope
 *
 * A device pool belongs to one thread, one device and one stream. The stream itself orders two uses
 * of a slot one after the other. So a rewind only moves pointers on the host, without a driver
 * call, even while kernels that use the arrays are still running. Work on another stream must be
 * declared (tide_pool_use_on). Then each rewind orders the streams by events. The host never waits
 * for it.
 *
 * A stream is, for CUDA, a CUstream (cudaStream_t is the same; NULL: the legacy default stream);
 * for OpenCL, an in-order cl_command_queue (NULL: a queue of the device's own); for the host, NULL.
 *
 * Calls that take a pool must come from its owner. They return TIDE_ERROR_DEVICE when the device is
 * lost, and TIDE_ERROR_ARGUMENT for NULLs. */
#ifndef TIDEPOOL_DEVICE_H
#define TIDEPOOL_DEVICE_H

#include <tidepool/array.h>
#include <tidepool/pool.h>
#include <tidepool/status.h>
#ifdef TIDE_LANGUAGE_OK

TIDE_BEGIN_DECLS

/* Opens a device: "host"; "cuda:0", "cuda:1" … through the CUDA driver (libcuda.so.1); "opencl:0"
 * …, counted over all platforms, through the ICD loader (libOpenCL.so.1). Both libraries are loaded
 * when they are first needed; neither is linked. The same name gives the same device as long as
 * it is open. Call tide_device_close once for each open. NULL with a message that says what is
 * missing: TIDE_ERROR_DEVICE, TIDE_ERROR_NAME, TIDE_ERROR_MEMORY. Any thread.
 *
 * As long as a device is open nobody resets it (cudaDeviceReset): what then becomes of the memory on it is
 * undefined.
 *
 * Threads open and close devices in turn. A driver that is opened loads libraries. So do not open or
 * close a device in a constructor or destructor of a library that is loaded while other threads do: the linker's lock,
 * which a constructor has, may be what they wait for. */
TIDE_API tide_device *tide_device_open(const char *name);

/* Closes a device once. The last close waits for what must be given back behind work on the device
 * (imported arrays, copies, graphs that were dropped), and releases the device; so it gives back the
 * memory of pools whose stream was gone. It returns TIDE_ERROR_STATE, nothing changed, while pools,
 * buffers or exported arrays are on the device. Once the process exits nobody waits any more. The
 * host and NULL: nothing to do, TIDE_OK. Any thread. */
TIDE_API tide_status tide_device_close(tide_device *device);

typedef struct tide_device_information {
    char name[32];        /* the name that it was opened by                                  */
    char description[96]; /* the driver's name for it                                        */
    tide_dl_device dl;    /* DLPack's name for it                                            */
    bool host;            /* the CPU may read and write its slots                            */
    bool integrated;      /* it shares the host's memory                                     */
    bool managed;         /* it has managed memory (TIDE_BUFFER_MANAGED)                     */
    bool concurrent;      /* the host may use that while the device works                    */
    bool exports;         /* it has memory for other processes (tidepool/device_ipc.h)       */
    bool lost;            /* it has failed for good; every call but a close is
                             refused. Once the last close has released it, it can be opened
                             anew                                                            */
    size_t bytes;         /* size of its memory; 0: not known                                */
    uint64_t allocations, releases, copies, fills, events, waits, launches; /* driver calls  */
    uint64_t bytes_copied;
    TIDE_GROWTH;
} tide_device_information;

/* Any thread. TIDE_ERROR_DEVICE for a device that is closed. */
TIDE_API tide_status tide_device_info(const tide_device *device, tide_device_information *out);

/* The driver's own handles, for work that Tidepool does not do. The device owns them. The context
 * is the primary CUcontext for CUDA, and the cl_context for OpenCL. The stream is OpenCL's queue
 * that a NULL stream means. NULL for the host, and once the device is closed. Any thread. */
TIDE_API void *tide_device_context(const tide_device *device);
TIDE_API void *tide_device_stream(const tide_device *device);

/* For an OpenCL device without shared virtual memory. There a pointer into a slot is no address, it
 * only stands for one. The result is the buffer (a cl_mem, which the pool owns) that `data` stands
 * for, and *offset is the place in it, in bytes. On other devices, and with shared virtual memory,
 * the result is NULL: kernels take the pointer itself. NULL with a message for NULLs. */
TIDE_API void *tide_device_buffer(tide_pool *pool, const void *data, size_t *offset);

/* ---- streams ---- */

/* Declares that the pool's arrays may be used on this stream, too. The declaration holds until the
 * level ends that is open now. The stream must exist until then, and the pool's own stream as long
 * as the pool.
 *
 * Work that is queued on this stream from now on comes after all work that was queued on the pool's
 * stream. Each rewind of this level, or of one inside it, orders the pool's stream after this one,
 * and, while the declaration holds, this one after the pool's. It takes one event for each stream
 * and direction, for any number of arrays. For an acquire the library may itself queue work on the
 * pool's stream (new memory, fills); this stream comes after that, too, and after copies, frames
 * and imports. Each of these calls fails with TIDE_ERROR_DEVICE where that order cannot be had; its
 * bytes may have been written by then.
 *
 * A stream that is declared to a captured pool joins the capture here. While the declaration holds
 * begin no capture on either stream, unless the other joins it before the level ends: the driver
 * ends a capture whose stream is ordered with one outside. The legacy stream counts as captured
 * while any blocking stream is.
 *
 * TIDE_ERROR_STATE at the root of the pool, and for a stream that is captured while the pool's is
 * not; TIDE_ERROR_LIMIT beyond 16 streams or when the log is full; TIDE_ERROR_DEVICE on a device
 * that is lost and once the process exits. */
TIDE_API tide_status tide_pool_use_on(tide_pool *pool, void *stream);

/* The calling thread's own pool of a device and one stream of it: created on first use, destroyed
 * when the thread ends or gives it up. Another stream has another pool. The host with a NULL
 * stream: tide_pool_local. It asks the driver which stream the handle means, so keep the result
 * where that is too slow. NULL with a message when it cannot be created; else as for
 * tide_pool_local. */
TIDE_API tide_pool *tide_pool_local_on(tide_device *device, void *stream);

/* Destroys the calling thread's own pools of the device, which could not be closed before that.
 * TIDE_ERROR_STATE, nothing changed, while a scope or mark of one is open or its stream is
 * captured; TIDE_ERROR_ARGUMENT for the host and NULL. */
TIDE_API tide_status tide_pool_local_end(tide_device *device);

/* The calling thread waits until everything that is queued on the pool's stream is over. */
TIDE_API tide_status tide_pool_wait(tide_pool *pool);

/* ---- graphs ---- */

/* A graph that is captured on a stream keeps the addresses of the arrays that it uses. It can be
 * launched at any time, so no stream orders its launches before what the pool does with that memory
 * later. Therefore say which arrays are the graph's:
 *
 *   tide_capture_begin(pool);                 // before the driver's call, see below
 *   cuStreamBeginCapture(stream, mode);
 *   …                                         // scopes, frames, kernels
 *   cuStreamEndCapture(stream, &graph);
 *   tide_capture *capture = tide_capture_end(pool);
 *   …                                         // launch the graph, use the pool for other things
 *   cuGraphExecDestroy(exec);
 *   tide_capture_drop(capture, stream);       // the stream of the last launch
 *
 * Buffers (tidepool/buffers.h) that a graph uses are the program's to keep until the graph is gone.
 *
 * Inside of the capture the pool re-uses memory as always; the graph orders that. It may acquire new
 * memory, too, which is allocated beside the stream; a warm pool is quicker.
 *
 * The graph orders nothing that was queued before it. So tide_capture_begin orders all of that, on
 * the pool's stream and on declared ones, before what is queued on these streams next. After that
 * call queue nothing that uses the pool's arrays on the pool's stream until it is captured, nor on
 * a declared stream that will join the capture until it has.
 *
 * Buffers that are released on a captured stream are refused between tide_capture_begin and
 * tide_capture_end of any pool of the device; in a capture that the library was not told of they
 * are re-used, which the program must not let happen. */
typedef struct tide_capture tide_capture;

/* From now on the pool notes which memory it hands out, and until tide_capture_end it gives none
 * away: to trim, compact or empty it is TIDE_ERROR_STATE; what others asked of it waits no longer.
 * TIDE_ERROR_STATE if a capture has begun already, TIDE_ERROR_ARGUMENT for a pool of the host,
 * TIDE_ERROR_MEMORY where there is none to note what is handed out; TIDE_ERROR_DEVICE on a device
 * that is lost, and once the process exits. After an error no capture has begun. */
TIDE_API tide_status tide_capture_begin(tide_pool *pool);

/* Takes what was handed out since the beginning, what slots gave up, and the memory of all live
 * arrays, out of the pool: the capture has it. Live arrays keep their address, and are valid until
 * their level ends, as ever. The pool allocates anew what it needs. `bytes_exported` of the
 * statistics counts the memory of live arrays. Call it after the driver's capture has ended, valid
 * or not. NULL with a message, and the capture has not ended: none has begun, or no memory. */
TIDE_API tide_capture *tide_capture_end(tide_pool *pool);

/* The graph is gone, or will not be launched again: its memory goes back to the device, behind the
 * work that is queued on `stream` now. Launches on other streams must be over, or be ordered before
 * that. Any thread, even after the pool is gone. TIDE_ERROR_STATE, nothing changed, while a graph
 * is captured on the stream; TIDE_ERROR_DEVICE, nothing changed, once the process exits. NULL:
 * nothing to do, TIDE_OK. */
TIDE_API tide_status tide_capture_drop(tide_capture *capture, void *stream);

/* ---- copies, on the pool's stream ---- */

/* All of these come after the work that is queued on the pool's stream and on declared streams, and
 * before the work that will be queued there. While a graph is captured, only copies within the
 * device and fills are allowed; the others return TIDE_ERROR_STATE. */

/* Copy between host memory and an array of the pool, or a part of it. The host memory may be of any
 * kind: it is copied through pinned memory of the pool's own (four chunks; setting `staging`). What
 * the CUDA driver knows as pinned is copied as it is: downloads of any size, uploads of more than
 * the four chunks hold. An upload returns when `from` may be overwritten, a download when the data
 * has arrived. An upload waits for the device only if all four chunks are in use, or the data
 * exceeds them. A pool with a check level refuses device memory that lies in a slot but not in a
 * live array: TIDE_ERROR_STALE, TIDE_ERROR_SIZE. */
TIDE_API tide_status tide_upload(tide_pool *pool, void *to, const void *from, size_t bytes);
TIDE_API tide_status tide_download(tide_pool *pool, void *to, const void *from, size_t bytes);

/* Copies between two arrays of the pool's device, asynchronously. They must not overlap
 * (TIDE_ERROR_ARGUMENT). */
TIDE_API tide_status tide_copy(tide_pool *pool, void *to, const void *from, size_t bytes);

/* Copies from an array of another pool, `source`, which may be on another device of the same kind
 * (CUDA) or on the same one. The calling thread owns both. It comes after the work that is queued
 * on both pools' streams; work that is queued on either from now on comes after the copy. Devices
 * that reach each other copy directly, for others the driver goes through the host. Pools in memory given are the
 * host's. TIDE_ERROR_ARGUMENT between devices of two kinds, and for the host and a device;
 * TIDE_ERROR_STATE, nothing changed, while a graph is captured on one of the streams and the other
 * is not part of the same capture. */
TIDE_API tide_status tide_copy_from(tide_pool *pool, void *to, tide_pool *source, const void *from,
                                    size_t bytes);

/* Lets kernels of `device` use the memory of `other`, all that its pools and buffers have and will
 * have (but memory of the kind TIDE_BUFFER_IPC, which the driver opens by other means), or forbids
 * it again. One direction; how their work is ordered is the program's to say.
 * TIDE_ERROR_DEVICE with a message where the driver allows no such access. TIDE_ERROR_ARGUMENT
 * where the two are not both CUDA devices. Any thread. */
TIDE_API tide_status tide_device_reach(tide_device *device, tide_device *other, bool allow);

/* A part of a frame: one array, for the calls below. */
typedef struct tide_part {
    void *data; /* device memory          */
    void *host; /* source or target of a copy; for fills the value of one element, NULL: zero */
    tide_type type;
    size_t count; /* elements */
} tide_part;

/* Copy all parts in one transfer. An upload packs them on the host, and one launch of a kernel
 * unpacks them on the device. If the device has no such kernels (jit/kernels), copies within the
 * device do it. The first frame of a device has the kernels compiled, which takes a fraction of a
 * second on this thread. A download does the same in the other direction. Frames of more than 16 MiB are
 * copied part by part, because packing them would gain nothing. */
TIDE_API tide_status tide_upload_frame(tide_pool *pool, const tide_part *parts, size_t count);
TIDE_API tide_status tide_download_frame(tide_pool *pool, const tide_part *parts, size_t count);

/* Fills all parts, each with its own value. One launch of a kernel does it; if the device has no
 * such kernels, the driver's fills do it. */
TIDE_API tide_status tide_fill_frame(tide_pool *pool, const tide_part *parts, size_t count);

/* Writes a 64-bit hash of each part's content to `hashes`, which has room for `count`. The hash is
 * the same on every device. For TIDE_BIT, bits beyond the end do not count. The host computes it, of
 * copies in pieces, and the call waits for the result. The hash finds differences that arise by
 * accident, not those that somebody makes on purpose. */
TIDE_API tide_status tide_hash_frame(tide_pool *pool, const tide_part *parts, size_t count,
                                     uint64_t *hashes);

TIDE_END_DECLS

#endif
#endif

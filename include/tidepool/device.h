/* SPDX-License-Identifier: MIT */
/* Devices: where the slots of a pool live. Pools, scopes, plans and arrays are the same on all
 * devices; only the memory differs.
 *
 *   tide_device *gpu = tide_device_open("cuda:0");
 *   tide_pool *pool = tide_pool_create(&(tide_pool_options){.device = gpu, .stream = stream});
 *   TIDE_FRAME(pool, (float, x, n), (float, y, n));     device pointers, given back with the scope
 *
 * A device pool belongs to one thread, one device and one stream. The stream itself orders two uses of
 * a slot, so a rewind only moves pointers on the host, without a driver call, while kernels that use
 * the arrays still run. Work on another stream is declared (tide_pool_use_on); then rewinds order the
 * streams by events, and the host never waits.
 *
 * A stream is for CUDA a CUstream (cudaStream_t is the same; NULL: the legacy default stream), for
 * OpenCL an in-order cl_command_queue of the device's context (tide_device_context; NULL: the device's
 * own), for the host NULL. A handle is trusted: only a pool with a check level looks at what it names.
 *
 * Calls that take a pool come from its owner. TIDE_ERROR_DEVICE: the device is lost;
 * TIDE_ERROR_ARGUMENT: a NULL. */
#ifndef TIDEPOOL_DEVICE_H
#define TIDEPOOL_DEVICE_H

#include <tidepool/array.h>
#include <tidepool/pool.h>
#include <tidepool/status.h>

TIDE_BEGIN_DECLS

/* Opens a device: "host"; "cuda:0" … through the CUDA driver (libcuda.so.1); "opencl:0" …, counted
 * over all platforms, through the ICD loader (libOpenCL.so.1). Neither library is linked; each is
 * loaded when it is first needed. A name gives the same device as long as it is open: call
 * tide_device_close once for each open. NULL with a message that says what is missing, or why the one
 * that is open is lost (also in a child of fork): TIDE_ERROR_DEVICE, TIDE_ERROR_NAME,
 * TIDE_ERROR_MEMORY. Any thread.
 *
 * Nobody resets a device (cudaDeviceReset) that is open: what becomes of its memory is undefined.
 * Threads open and close devices in turn, and a driver that is opened loads libraries. So no constructor
 * or destructor of a library that is loaded while other threads do this opens or closes a device: they
 * may wait for the linker's lock, which it has. */
TIDE_API tide_device *tide_device_open(const char *name);

/* Closes a device once. The last close waits for what must be given back behind work on the device
 * (imported arrays, copies, dropped graphs), and releases the device. TIDE_ERROR_STATE, nothing
 * changed, while pools, buffers or exported arrays are on it. Nobody waits once the process exits. The
 * host and NULL: TIDE_OK. Any thread. */
TIDE_API tide_status tide_device_close(tide_device *device);

typedef struct tide_device_information {
    char name[32];        /* the name that it was opened by                                  */
    char description[96]; /* the driver's name for it                                        */
    tide_dl_device dl;    /* DLPack's name for it                                            */
    bool host;            /* the CPU may read and write its slots                            */
    bool integrated;      /* it shares the host's memory                                     */
    bool managed;         /* it has managed memory (TIDE_BUFFER_MANAGED)                     */
    bool concurrent;      /* the host may use that while the device works                    */
    bool exports;         /* it has memory for other processes (TIDE_BUFFER_IPC)             */
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

/* The driver's own handles, which the device owns: the primary CUcontext or the cl_context;
 * OpenCL's queue that a NULL stream means. NULL for the host; with a message once the device is closed,
 * and for no device. Any thread. */
TIDE_API void *tide_device_context(const tide_device *device);
TIDE_API void *tide_device_stream(const tide_device *device);

/* For an OpenCL device without shared virtual memory, where a pointer into a slot is no address:
 * the cl_mem, the pool's, that `data` stands for, and in *offset the place in it, in bytes. On
 * other devices NULL: kernels take the pointer itself. NULL with a message for NULLs. */
TIDE_API void *tide_device_buffer(tide_pool *pool, const void *data, size_t *offset);

/* ---- streams ---- */

/* Declares that the pool's arrays may be used on this stream, too, until the level ends that is
 * open now. The stream exists until then, the pool's own as long as the pool.
 *
 * Work that is queued on this stream from now on comes after all that was queued on the pool's, and
 * after what the library itself queues there (new memory, fills, copies, frames, imports). Each
 * rewind of this level, or of one inside it, orders the pool's stream after this one and, while the
 * declaration holds, this one after the pool's: one event for each stream and direction. A call
 * that cannot have that order fails with TIDE_ERROR_DEVICE; its bytes may have been written by
 * then.
 *
 * A stream that is declared to a captured pool joins the capture here. While the declaration holds
 * begin no capture on either stream, unless the other joins it before the level ends: the driver
 * ends a capture that is ordered with a stream outside. The legacy stream counts as captured while
 * any blocking stream is.
 *
 * TIDE_ERROR_STATE at the pool's root, and for a stream that is captured while the pool's is not;
 * TIDE_ERROR_LIMIT beyond 16 streams or when the log is full; TIDE_ERROR_DEVICE once the process
 * exits. */
TIDE_API tide_status tide_pool_use_on(tide_pool *pool, void *stream);

/* The calling thread's own pool of a device and one stream of it: created on first use, destroyed
 * when the thread ends or gives it up. The host with a NULL stream: tide_pool_local. NULL with a
 * message as for tide_pool_local. */
TIDE_API tide_pool *tide_pool_local_on(tide_device *device, void *stream);

/* Destroys the calling thread's own pools of the device, which could not be closed before that.
 * TIDE_ERROR_STATE, nothing changed, while a scope or mark of one is open; TIDE_ERROR_ARGUMENT for the
 * host and NULL. */
TIDE_API tide_status tide_pool_local_end(tide_device *device);

/* The calling thread waits until everything that is queued on the pool's stream is over. */
TIDE_API tide_status tide_pool_wait(tide_pool *pool);

/* ---- graphs ---- */

/* A captured graph keeps the addresses of its arrays and may be launched at any time, so no stream
 * orders its launches before later uses of that memory. Therefore say which arrays are the graph's:
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
 * Several graphs that never run at once share memory: capture them one after the other between one
 * beginning and one end, the largest first, for what a slot outgrows stays the earlier graphs'. A
 * server that captures a graph for each batch size so holds what the largest takes, not the sum. No
 * graph finds what another has left in the arrays.
 *
 * Inside the capture the pool uses memory again as always, which the graph orders, and may acquire new
 * memory; a warm pool is quicker. What was queued before on the pool's and declared streams, which the
 * graph cannot order, tide_capture_begin orders before what is queued there next: from then on queue
 * nothing that uses the pool's arrays on a stream until it is captured.
 *
 * Buffers that a graph uses are the program's to keep. Releases on a captured stream are refused
 * between begin and end of any pool of the device; in a capture that the library was not told of they
 * are used again, which the program must not let happen. */
typedef struct tide_capture tide_capture;

/* Is a graph captured on the stream? One question to the driver; the legacy stream counts as captured
 * while any blocking stream is. Any thread. False for the host, and with a message for a device that is
 * not open. */
TIDE_API bool tide_stream_captured(tide_device *device, void *stream);

/* From now on, until tide_capture_end, the pool notes which memory it hands out and gives none
 * away: to trim, compact or empty it is TIDE_ERROR_STATE. After an error no capture has begun:
 * TIDE_ERROR_STATE: one has already; TIDE_ERROR_ARGUMENT: a pool of the host; TIDE_ERROR_MEMORY;
 * TIDE_ERROR_DEVICE once the process exits. */
TIDE_API tide_status tide_capture_begin(tide_pool *pool);

/* Takes what was handed out since the beginning, what slots gave up, and the memory of all live
 * arrays (`bytes_exported`) out of the pool: the capture has it. Live arrays stay valid until their
 * level ends; the pool allocates anew what it needs. Call it when the driver's capture has ended,
 * valid or not. NULL with a message, the capture not ended: none has begun, or no memory. */
TIDE_API tide_capture *tide_capture_end(tide_pool *pool);

/* Before a graph of the capture is launched on a stream: what is queued there from now on comes after
 * the launches on the stream that was named last, so graphs that share memory do not run at once. It
 * may be left out where all launches are on one stream. The stream outlives the capture, or is there
 * until another is named. A call and its launch belong together: threads take turns.
 * TIDE_ERROR_STALE: tide_capture_drop has given the memory back, and the launch must not be; told until
 * another capture has the same handle. TIDE_ERROR_STATE, nothing changed: one of the two streams is
 * captured. Any thread. */
TIDE_API tide_status tide_capture_use_on(tide_capture *capture, void *stream);

/* The graphs are gone: their memory goes back to the device, behind the work that is queued now on
 * `stream` and on the one that tide_capture_use_on named last; launches elsewhere are over, or
 * ordered before that. Any thread, even after the pool is gone. Nothing changed: TIDE_ERROR_STATE
 * while the stream is captured, TIDE_ERROR_STALE the second time, TIDE_ERROR_DEVICE once the process
 * exits. NULL: TIDE_OK. */
TIDE_API tide_status tide_capture_drop(tide_capture *capture, void *stream);

/* ---- copies, on the pool's stream ---- */

/* All of these come after the work that is queued on the pool's stream and on declared streams, and
 * before the work that will be queued there. While a graph is captured, only copies within the
 * device and fills are allowed; the others return TIDE_ERROR_STATE. */

/* Copy between host memory of any kind and an array of the pool, or a part of it. A download returns
 * when the data is there, an upload when `from` may be overwritten. It goes through four chunks of
 * pinned memory of the pool's own (setting `staging`) and waits for the device only while all are in
 * use; more than these hold is copied as it is, and waited for. A pool with a check level refuses device
 * memory that lies in a slot but in no live array (TIDE_ERROR_STALE, TIDE_ERROR_SIZE), memory of another
 * CUDA device, and on the side of the host what only a device has (TIDE_ERROR_ARGUMENT; not told of
 * OpenCL's shared virtual memory). */
TIDE_API tide_status tide_upload(tide_pool *pool, void *to, const void *from, size_t bytes);
TIDE_API tide_status tide_download(tide_pool *pool, void *to, const void *from, size_t bytes);

/* Copies between two arrays of the pool's device, asynchronously. They must not overlap
 * (TIDE_ERROR_ARGUMENT). */
TIDE_API tide_status tide_copy(tide_pool *pool, void *to, const void *from, size_t bytes);

/* Copies from an array of another pool, `source`, of the same thread, on the same device or another
 * one of its kind (CUDA): after the work that is queued on both pools' streams, and before what is
 * queued on either next. Devices that reach each other copy directly, others through the host.
 * Pools in memory given are the host's. TIDE_ERROR_ARGUMENT between devices of two kinds;
 * TIDE_ERROR_STATE, nothing changed, while one of the streams is captured and the other not with
 * it. */
TIDE_API tide_status tide_copy_from(tide_pool *pool, void *to, tide_pool *source, const void *from,
                                    size_t bytes);

/* A part of a frame: one array, for the calls below. */
typedef struct tide_part {
    void *data; /* device memory          */
    void *host; /* source or target of a copy; for fills the value of one element, NULL: zero */
    tide_type type;
    size_t count; /* elements */
} tide_part;

/* Copy all parts in one transfer, packed on the host and unpacked by one kernel, or the other way
 * round. If the device has no such kernels (OpenCL; no NVRTC), and beyond 16 MiB, they go part by part. A device's
 * first frame has them compiled, a fraction of a second on this thread. */
TIDE_API tide_status tide_upload_frame(tide_pool *pool, const tide_part *parts, size_t count);
TIDE_API tide_status tide_download_frame(tide_pool *pool, const tide_part *parts, size_t count);

/* Fills all parts, each with its own value. One launch of a kernel does it; if the device has no
 * such kernels, the driver's fills do it. */
TIDE_API tide_status tide_fill_frame(tide_pool *pool, const tide_part *parts, size_t count);

TIDE_END_DECLS

#endif

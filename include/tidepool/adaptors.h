/* SPDX-License-Identifier: MIT */
/* Functions in the form that other libraries call for device memory: each library names the shared
 * object and two symbols. All memory comes from the device's shared buffers (tide_buffers_shared,
 * TIDE_BUFFER_DEVICE), so limits, statistics and the program's function on a full device
 * (tidepool/device_memory.h) hold for it.
 *
 *   torch.cuda.memory.CUDAPluggableAllocator("libtidepool.so", "tide_torch_malloc",
 *                                            "tide_torch_free")
 *   cupy.cuda.CFunctionAllocator(stream_pointer, malloc_address, free_address, owner)
 *
 * The device is "cuda:0" … by its number, opened at the first call and open until the process ends.
 * Work that is queued on the stream from the call on may use the memory; released memory goes to
 * the next owner behind the work that was queued on the stream before. The host waits for neither.
 *
 * On a lost device each call that wants memory fails, TIDE_ERROR_DEVICE; what was handed out may be
 * given back.
 *
 * NULL with a message (tide_error_message) on failure. Any thread. */
#ifndef TIDEPOOL_ADAPTORS_H
#define TIDEPOOL_ADAPTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <tidepool/inline/config.h>
#include <tidepool/status.h>

TIDE_BEGIN_DECLS

/* PyTorch's. `stream` is a cudaStream_t. NULL without a message for a size of 0. A graph that is
 * captured on the stream gets memory of its pool where PyTorch has told of the capture (below),
 * else what is cached for the stream, or new memory. */
TIDE_API void *tide_torch_malloc(ssize_t size, int device, void *stream);

/* NULL: nothing to do. A pointer of neither tide_torch_malloc nor tide_cupy_malloc leaves
 * TIDE_ERROR_ARGUMENT. What is freed on a stream whose capture nobody has told of stays the graph's
 * as long as the process runs (TIDE_ERROR_STATE). */
TIDE_API void tide_torch_free(void *data, ssize_t size, int device, void *stream);

/* ---- what PyTorch tells ----
 *
 * The Python package connects these with PyTorch's allocator (tidepool.torch.allocator). Memory of a pool of
 * graphs serves the captures of that pool only, as PyTorch has it: its graphs never run at once. What
 * is freed in a capture serves what follows in it; what is freed later stays the pool's. */

typedef struct tide_torch_pool {
    uint64_t first, second; /* PyTorch's MempoolId_t */
} tide_torch_pool;

/* A capture, or a thread that allocates to a pool. `takes`: does memory for that stream come from the
 * pool now? It is called by whoever wants memory, on any thread, with no lock of the library held, and
 * calls nothing of the library. `end` (NULL: nothing) is called once, on any thread, when `takes` is not
 * called any more. */
typedef struct tide_torch_capture {
    bool (*takes)(void *user, void *stream);
    void (*end)(void *user);
    void *user;
} tide_torch_capture;

/* From now on PyTorch tells of each capture, so nobody asks the driver when memory is freed. Captures of
 * other libraries are not for memory of PyTorch's. */
TIDE_API void tide_torch_told(void);

/* A capture to the pool begins, ends; the pool is not used any more, once for each beginning. A pool that
 * was released keeps its memory, for later captures to it, until none of it is live and memory of the
 * device is short or trimmed (tide_device_memory_trim, tide_torch_empty_cache). Then the host waits for
 * the device, and the memory goes back; while a capture is under way that the library was told of, here
 * or by tide_capture_begin, or if the wait fails, it stays for the next time. This wait ends a capture
 * on the device that nobody has told of, or that begins meanwhile, and another thread that wants this
 * memory meanwhile is refused. On TIDE_ERROR_MEMORY and TIDE_ERROR_DEVICE the capture has not begun,
 * and `end` is not called. */
TIDE_API tide_status tide_torch_pool_begin(int device, tide_torch_pool pool,
                                           const tide_torch_capture *capture);
TIDE_API void tide_torch_pool_end(int device, tide_torch_pool pool);
TIDE_API void tide_torch_pool_release(int device, tide_torch_pool pool);

/* torch.cuda.empty_cache: what is cached for PyTorch and CuPy goes back to the system, as by
 * tide_buffers_trim and tide_device_memory_trim, on each device that they have used. */
TIDE_API void tide_torch_empty_cache(void);

/* torch.cuda.set_per_process_memory_fraction: the limit of tide_device_memory_set, as a part of the
 * device's memory, which all pools and buffers on it share. The program's function stays. */
TIDE_API void tide_torch_memory_fraction(double fraction, int device);

/* Tensor.record_stream: the memory is used on that stream, too. Where it is freed, its own stream comes
 * after what is queued there by then. Nothing for memory that is not ours, or a graph's. */
TIDE_API void tide_torch_record_stream(void *data, void *stream);

typedef struct tide_torch_statistics {
    size_t live, bytes_live, bytes_cached; /* allocations; rounded up */
    size_t pools,
        bytes_graphs;      /* of graphs, dropped ones too: of the bytes above, live and cached */
    uint64_t hits, misses; /* allocations that were cached, and that were not */
} tide_torch_statistics;

/* What PyTorch and CuPy hold on the device, and what is cached for them. Opens the device. */
TIDE_API tide_status tide_torch_stats(int device, tide_torch_statistics *out);

typedef struct tide_torch_block {
    void *data;
    size_t bytes;
    bool live;            /* or cached */
    tide_torch_pool pool; /* of graphs, or zeros */
} tide_torch_block;

/* The same block by block, in no order: the first `room` of `*count`. */
TIDE_API tide_status tide_torch_blocks(int device, tide_torch_block *out, size_t room,
                                       size_t *count);

/* CuPy's. The first argument is the stream on which the memory will be used, which CuPy hands on
 * from the constructor; NULL: the legacy default stream. */
TIDE_API void *tide_cupy_malloc(void *stream, size_t size, int device);
TIDE_API void tide_cupy_free(void *stream, void *data, int device);

TIDE_END_DECLS

#endif

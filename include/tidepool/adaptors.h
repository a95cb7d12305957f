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
 * After somebody has reset the device (cudaDeviceReset) the first call that asks the driver fails,
 * TIDE_ERROR_DEVICE, and so does each call from then on, until all that was handed out before has
 * been given back; its contents are gone. The next call then opens the device anew, if nobody else
 * in the process has it open.
 *
 * NULL with a message (tide_error_message) on failure. Any thread. */
#ifndef TIDEPOOL_ADAPTORS_H
#define TIDEPOOL_ADAPTORS_H

#include <sys/types.h>
#include <tidepool/inline/config.h>
#include <tidepool/status.h>
#ifdef TIDE_LANGUAGE_OK

TIDE_BEGIN_DECLS

/* PyTorch's. `stream` is a cudaStream_t. NULL without a message for a size of 0. While a graph is
 * captured on the stream, in any mode, it gives what is cached for the stream, or new memory. */
TIDE_API void *tide_torch_malloc(ssize_t size, int device, void *stream);

/* NULL: nothing to do. A pointer that is not of tide_torch_malloc or tide_cupy_malloc leaves a
 * message, TIDE_ERROR_ARGUMENT. While a graph is captured on the stream the memory stays the
 * graph's: it is not given back as long as the process runs (TIDE_ERROR_STATE). `size` is not
 * looked at. */
TIDE_API void tide_torch_free(void *data, ssize_t size, int device, void *stream);

/* CuPy's. The first argument is the stream on which the memory will be used, which CuPy hands on
 * from the constructor; NULL: the legacy default stream. */
TIDE_API void *tide_cupy_malloc(void *stream, size_t size, int device);
TIDE_API void tide_cupy_free(void *stream, void *data, int device);

TIDE_END_DECLS

#endif
#endif

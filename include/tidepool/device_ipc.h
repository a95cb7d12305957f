/* SPDX-License-Identifier: MIT */
/* Memory of a CUDA device in several processes: one exports it, others open it.
 *
 *   tide_buffers *buffers =
 *       tide_buffers_create(gpu, &(tide_buffers_options){.flags = TIDE_BUFFER_IPC});
 *   tide_buffer b = tide_buffer_acquire(buffers, bytes);
 *   tide_ipc_memory memory;
 *   tide_ipc_export_buffer(buffers, b, &memory);    // plain bytes: by a pipe, a socket, MPI …
 *
 *   void *x = tide_ipc_open(gpu, &memory);          // in the other process
 *   tide_ipc_close(gpu, &memory, x);
 *
 * Only memory of the kind TIDE_BUFFER_IPC can be exported, of buffers and of pools that draw from such.
 * It comes from cuMemAlloc, so a miss costs more. The driver shares whole blocks of 2 MiB: a process
 * that opens a small buffer can reach what else of the exporter's cuMemAlloc lies there.
 *
 *   until when     the exporter releases the buffer, or its array's level ends, when all others have
 *                  closed it. Later the memory is another owner's, or gone
 *   in what order  no stream orders work of two processes: the exporter waits for its work
 *                  (tide_pool_wait) before it tells others to begin, and they before they say that
 *                  they are done, each by means of its own
 *   where not      TIDE_ERROR_DEVICE: the host, OpenCL, devices without `exports`
 *                  (tide_device_information). TIDE_ERROR_STATE: memory of another kind, and arrays of
 *                  a pool between tide_capture_begin and its end
 *
 * Any thread; calls that take a pool come from its owner. */
#ifndef TIDEPOOL_DEVICE_IPC_H
#define TIDEPOOL_DEVICE_IPC_H

#include <tidepool/buffers.h>
#include <tidepool/pool.h>
#include <tidepool/status.h>

TIDE_BEGIN_DECLS

/* What one process tells others of its memory. To copy it copies no memory. */
typedef struct tide_ipc_memory {
    unsigned char handle[64]; /* the driver's: names the whole allocation     */
    uint64_t offset;          /* of what was exported, in that, in bytes      */
    uint64_t bytes;           /* from there on, all that the buffer or slot has */
    TIDE_GROWTH;
} tide_ipc_memory;

/* Fills in `out` for a live buffer, or for a place in a live array of the pool. Nothing is queued
 * and nothing copied; the memory stays where it is. TIDE_ERROR_STALE: no such buffer;
 * TIDE_ERROR_ARGUMENT: the pointer lies in no live array, or a NULL. Consumers of DLPack or graphs
 * may hold the array, too. */
TIDE_API tide_status tide_ipc_export_buffer(tide_buffers *buffers, tide_buffer buffer,
                                            tide_ipc_memory *out);
TIDE_API tide_status tide_ipc_export(tide_pool *pool, const void *data, tide_ipc_memory *out);

/* The memory in this process, at an address of its own: on the device that it is on, or one that
 * can reach that. The device cannot be closed for good before a tide_ipc_close for each call. NULL
 * with a message: TIDE_ERROR_DEVICE where the driver refuses, as for memory of this very
 * process. */
TIDE_API void *tide_ipc_open(tide_device *device, const tide_ipc_memory *memory);

/* Ends one tide_ipc_open; `data` is what that returned. All work that uses it is over. On a device
 * that is lost too, where it only lets go of the device. TIDE_ERROR_DEVICE, nothing changed, where
 * the driver knows no such memory, or the device is closed. */
TIDE_API tide_status tide_ipc_close(tide_device *device, const tide_ipc_memory *memory, void *data);

TIDE_END_DECLS

#endif

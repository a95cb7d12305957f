/* SPDX-License-Identifier: MIT */
/* The memory of one device: how much pools and buffers hold of it, how much they may, what happens
 * when there is none, and what the driver keeps of it for the process.
 *
 *   held      what the slots of pools and the buffers have of the device's memory, live or not,
 *             until it is released. Pinned and managed memory is not counted
 *   reserved  what the driver's memory pool has taken from the device for the process
 *   used      the part of it that is handed out, or that work in flight may still use
 *
 * Before a request is refused, by a limit or by the driver, it is tried again after each of these:
 *
 *   1. free slots of the pool that wants the memory, first the one that a larger one replaces
 *   2. free slots of the calling thread's other pools on the device, then what buffers have cached (a
 *      pool that draws from buffers has that go before 1)
 *   3. what is on its way back: the host waits for the work that uses it
 *   4. the program's function is asked, below
 *
 * By a limit no more goes than is missing; a driver that refuses twice gets all of it. Nothing goes, and
 * nobody is asked, where a request for the device's own memory is for more than it has. Left alone are
 * pools of other threads, whatever they keep free; pools that a capture has begun on; and, in 2, pools
 * with a check level, a hook or buffers of their own, and all pools where memory is wanted that lies
 * elsewhere (pinned, or managed and moved by the driver). The message of a refusal says how much pools
 * and buffers hold, and which pool most.
 *
 * Any thread, all functions, and for a device that is open: else TIDE_ERROR_DEVICE.
 * TIDE_ERROR_ARGUMENT for NULLs. */
#ifndef TIDEPOOL_DEVICE_MEMORY_H
#define TIDEPOOL_DEVICE_MEMORY_H

#include <tidepool/pool.h>
#include <tidepool/status.h>

TIDE_BEGIN_DECLS

/* Called when `wanted` bytes of the device, or of pinned or managed memory for its work, are not to
 * be had, by the driver or the limit, even after all that stands above. It may give memory back
 * (tide_buffers_trim, tide_pool_trim of another pool of its thread, tide_device_memory_trim, memory of
 * its own) and returns true if the library is to try again, false if the request fails. `times`: how
 * often it was called for this request before; after 16 the request fails. It is not asked for what a
 * call can do without.
 *
 * It runs on the thread that wants the memory, with no lock of the library held, and never inside
 * itself: its own requests fail at once. The pool that wants the memory refuses it
 * (TIDE_ERROR_STATE); the buffers that want it may be trimmed, not acquired from or released to. */
typedef bool (*tide_device_full_function)(tide_device *device, size_t wanted, unsigned times,
                                          void *user);

/* All zero: no limit, and nobody is called. */
typedef struct tide_device_memory_options {
    size_t limit_bytes TIDE_ZERO;             /* most that may be held, else TIDE_ERROR_LIMIT */
    tide_device_full_function full TIDE_ZERO; /* NULL: none                                   */
    void *user TIDE_ZERO;                     /* given to the function                        */
    TIDE_GROWTH TIDE_ZERO;
} tide_device_memory_options;

/* Sets both for this device, until it is closed for good; NULL: neither. What is held stays. Other
 * threads may for a moment see the new function with the old limit; what the old function needs
 * outlives calls that have begun. TIDE_ERROR_ARGUMENT for the host (tide_limit_set). */
TIDE_API tide_status tide_device_memory_set(tide_device *device,
                                            const tide_device_memory_options *options);

typedef struct tide_device_memory {
    size_t bytes_held, bytes_peak; /* by pools and buffers, now; the most so far       */
    size_t limit_bytes;            /* 0: none                                          */
    uint64_t refused;              /* requests that the limit refused, repeated ones too */
    uint64_t asked;                /* calls of the program's function                  */
    bool driver_known;             /* the driver keeps a memory pool; else what follows is 0 */
    void *driver_pool;             /* the device's own CUmemoryPool, for the driver's calls */
    size_t driver_reserved, driver_reserved_peak, driver_used, driver_used_peak; /* bytes; with
                                      the setting `cuda_memory` what is mapped by the page, too:
                                      of both peaks the larger one, so it was as much at least */
    TIDE_GROWTH;
} tide_device_memory;

/* The pool's handle is valid until the device is closed, and is not to be destroyed. Kernels of another
 * GPU may use the pool's memory, what is mapped by the page and buffers of the kinds TIDE_BUFFER_IPC and
 * TIDE_BUFFER_MANAGED apart, once the program has called cuMemPoolSetAccess(driver_pool, &access, 1) with
 * a CUmemAccessDesc that names that GPU. For the host and for OpenCL only the first numbers are there; the
 * host's are the process's (tide_limit_stats). */
TIDE_API tide_status tide_device_memory_stats(tide_device *device, tide_device_memory *out);

/* Gives what the driver keeps beyond `keep_bytes`, and nobody uses, back to the system; waits for
 * released memory that work in flight still uses, and for the device where there is memory of dropped
 * graphs (tidepool/adaptors.h). Trim pools and buffers first: that does the same with `keep_bytes` 0 and
 * without a wait. Where the driver keeps nothing (the host; OpenCL; devices without memory pools):
 * TIDE_OK. */
TIDE_API tide_status tide_device_memory_trim(tide_device *device, size_t keep_bytes);

TIDE_END_DECLS

#endif

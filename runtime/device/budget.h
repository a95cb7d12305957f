/* SPDX-License-Identifier: MIT */
/* Memory of devices: counted for each device, limited, and asked for of the program where there is
 * none. Pinned and managed memory of other devices than the host is not counted, and asked for all the
 * same. The limit of the host is that of the process (runtime/device/limit.h). */
#ifndef TIDEPOOL_RUNTIME_DEVICE_BUDGET_H
#define TIDEPOOL_RUNTIME_DEVICE_BUDGET_H

#include "runtime/device/device.h"

/* The device's methods of these names, counted. Also TIDE_ERROR_LIMIT, without a message, where the
 * device's limit leaves no room, and TIDE_ERROR_DEVICE where it does not align memory so far. */
tide_status tide_budget_allocate(tide_device *device, void *stream, int memory, size_t bytes,
                                 size_t align, void **data);
void tide_budget_release(tide_device *device, void *stream, int memory, void *data, size_t bytes);

/* The same of the device's method `extend`, for memory that had so many bytes. */
tide_status tide_budget_extend(tide_device *device, void *data, size_t had, size_t bytes);

/* Of what was counted, so many bytes are not there any more. */
void tide_budget_give(tide_device *device, size_t bytes);

/* What pools and buffers hold of the device's memory. */
static inline size_t tide_budget_held(const tide_device *device)
{
    return __atomic_load_n(&device->held, __ATOMIC_RELAXED);
}

/* Is more than a quarter held of what a limit lets the device have? */
bool tide_budget_is_near(const tide_device *device);

/* An allocation of `bytes` ended with `status`, for the first time or `again`. How many bytes must be
 * given back before it is tried again? 0: giving back cannot help. Then the allocation is larger than
 * the whole limit of the device, or of the process; or the system has no memory, and all that the
 * process holds is less than `bytes`. SIZE_MAX: all there are. A driver does not say how much it
 * lacks, and what it has may be in pieces: once `bytes` were not enough, everything goes. */
size_t tide_budget_missing(const tide_device *device, tide_status status, size_t bytes, bool again);

/* Does such memory (TIDE_MEMORY_…) lie where that of the device's pools does? */
bool tide_budget_is_own(const tide_device *device, int memory);

/* Has no such device so much of its own? Then nobody gives anything up for it, or is asked. */
bool tide_budget_never(const tide_device *device, int memory, size_t bytes);

/* Has pools and buffers give back so many bytes of what they keep free, before such memory is refused;
 * pools where that may help. Returns how many bytes came. Any thread, nothing locked. */
size_t tide_press(tide_device *device, int memory, size_t bytes);

/* The message of who then gives up, and after it who holds how much. Nothing is locked. Returns the
 * status. */
__attribute__((format(printf, 4, 5), cold)) tide_status tide_budget_fail(const tide_device *device,
                                                                         tide_status status,
                                                                         const char *call,
                                                                         const char *format, ...);

/* The same where a limit says no: TIDE_ERROR_LIMIT. */
tide_status tide_budget_refuse(const tide_device *device, size_t bytes, const char *call);

/* Asks who may have more, where no lock is held, and what wants the memory is shut. Deferred releases go first
 * (runtime/device/deferred.h); where there were none, the program is asked, and counted in `asked`,
 * at first 0. True: something was given back. Where two threads find no memory at once, one of them
 * may be refused what the other's wait has just given back. */
bool tide_budget_ask(tide_device *device, size_t bytes, unsigned *asked);

/* Free memory that the driver keeps goes back to the system, without a wait. */
void tide_budget_trimmed(tide_device *device);

#endif

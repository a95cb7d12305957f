/* SPDX-License-Identifier: MIT */
/* Memory of devices other than the host: counted for each device, limited, and asked for of the
 * program where there is none. Pinned and managed memory is not counted, and asked for all the
 * same. The host has a limit of the process instead (runtime/device/limit.h). */
#ifndef TIDEPOOL_RUNTIME_DEVICE_BUDGET_H
#define TIDEPOOL_RUNTIME_DEVICE_BUDGET_H

#include "runtime/device/device.h"

/* The device's methods of these names, counted. Also TIDE_ERROR_LIMIT, without a message, where the
 * device's limit leaves no room. */
tide_status tide_budget_allocate(tide_device *device, void *stream, int memory, size_t bytes,
                                 size_t align, void **data);
void tide_budget_release(tide_device *device, void *stream, int memory, void *data, size_t bytes);

/* Has the device a limit by which memory is refused? */
bool tide_budget_limited(const tide_device *device);

/* The message of who then gives up, for the host and for any other device. TIDE_ERROR_LIMIT. */
tide_status tide_budget_refuse(const tide_device *device, size_t bytes, const char *call);

/* Is there somebody to ask after an allocation of any kind of memory (TIDE_MEMORY_…) that ended so?
 * ask: where no lock is held, and what wants the memory is shut. Deferred releases go first
 * (runtime/device/deferred.h); where there were none, the program is asked, and counted in `asked`,
 * at first 0. True: something was given back. Where two threads find no memory at once, one of them
 * may be refused what the other's wait has just given back. */
bool tide_budget_asks(const tide_device *device, tide_status status, unsigned asked);
bool tide_budget_ask(tide_device *device, size_t bytes, unsigned *asked);

/* Free memory that the driver keeps goes back to the system, without a wait. */
void tide_budget_trimmed(tide_device *device);

#endif

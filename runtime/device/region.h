/* SPDX-License-Identifier: MIT */
/* Memory of the caller's as a device: the host, but for where memory comes from.
 *
 * Free pieces are a list in the order of their addresses; each begins with its own entry, so there
 * are no books beside the memory. Only the owner of the one pool that uses the device allocates.
 * Anybody may release: what a consumer held goes on a stack without a lock, and the next allocation
 * takes it from there. */
#ifndef TIDEPOOL_RUNTIME_DEVICE_REGION_H
#define TIDEPOOL_RUNTIME_DEVICE_REGION_H

#include "runtime/device/device.h"

/* A device over these bytes, held once. It goes with its last hold; the memory stays the caller's.
 * NULL with a message when it holds no piece, or memory for the device itself is short. */
tide_device *tide_region_create(void *memory, size_t bytes, const char *call);

/* Bytes that can be handed out, of a device made by tide_region_create. */
size_t tide_region_bytes(const tide_device *device);

#endif

/* SPDX-License-Identifier: MIT */
/* Where slot memory comes from. The bookkeeping of a pool is the same for every device. */
#ifndef TIDEPOOL_RUNTIME_DEVICE_H
#define TIDEPOOL_RUNTIME_DEVICE_H

#include <tidepool/pool.h>

struct tide_device {
    const char *name;
    /* `align` is a power of two; NULL when there is no memory (no message). */
    void *(*allocate)(tide_device *device, size_t bytes, size_t align);
    void (*release)(tide_device *device, void *data, size_t bytes);
    bool host; /* the CPU may read and write slots: poison and fills go straight there */
};

/* The memory of this process. Always there. */
extern tide_device tide_device_host;

#endif

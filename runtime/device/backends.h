/* SPDX-License-Identifier: MIT */
/* The kinds of device that there are beside the host: a tide_backend's `open` of each. */
#ifndef TIDEPOOL_RUNTIME_DEVICE_BACKENDS_H
#define TIDEPOOL_RUNTIME_DEVICE_BACKENDS_H

#include "runtime/device/device.h"

/* TIDE_X(the prefix of names, the function). */
#define TIDE_BACKENDS_EACH(TIDE_X)  \
    TIDE_X("cuda:", tide_cuda_open) \
    TIDE_X("opencl:", tide_opencl_open)

#define TIDE_X(prefix, open) tide_status open(tide_device *device, unsigned ordinal);
TIDE_BACKENDS_EACH(TIDE_X)
#undef TIDE_X

#endif

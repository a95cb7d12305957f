/* SPDX-License-Identifier: MIT */
/* The kinds of device that there are beside the host: a tide_backend's `open` of each. */
#ifndef TIDEPOOL_RUNTIME_DEVICE_BACKENDS_H
#define TIDEPOOL_RUNTIME_DEVICE_BACKENDS_H

#include "runtime/device/device.h"

tide_status tide_cuda_open(tide_device *device, unsigned ordinal);
tide_status tide_opencl_open(tide_device *device, unsigned ordinal);

#endif

/* SPDX-License-Identifier: MIT */
/* What the rest of the library sees of CUDA devices. */
#ifndef TIDEPOOL_RUNTIME_DEVICE_CUDA_BACKEND_H
#define TIDEPOOL_RUNTIME_DEVICE_CUDA_BACKEND_H

#include "runtime/device/device.h"

/* Registers what is done around fork. While the library is attached. */
void tide_cuda_prepare(void);

/* A tide_backend's `open`. */
tide_status tide_cuda_open(tide_device *device, unsigned ordinal);

#endif

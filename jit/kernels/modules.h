/* SPDX-License-Identifier: MIT */
/* The kernels of each CUDA device. The first frame of a device has NVRTC compile them, on the thread
 * that fills or copies it. A frame that another thread has meanwhile waits for nothing and goes part
 * by part. So do all where the kernels cannot be had; that is said on stderr, and not tried again. */
#ifndef TIDEPOOL_JIT_KERNELS_MODULES_H
#define TIDEPOOL_JIT_KERNELS_MODULES_H

#include <tidepool/device.h>

/* Has frames ask for the kernels. */
void tide_modules_attach(void);

/* The hook: the device was closed. */
void tide_modules_close(tide_device *device);

/* A module of the CUDA device, of CUDA C that is compiled for it; NULL with a message. */
void *tide_modules_compile(tide_device *device, const char *source);

/* Their text, with a 0 behind it. */
extern const char tide_kernels_text[];

#endif

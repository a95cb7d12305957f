/* SPDX-License-Identifier: MIT */
/* Orders for kernels of devices, among those for sites. */
#ifndef TIDEPOOL_JIT_STAGE_KERNELS_H
#define TIDEPOOL_JIT_STAGE_KERNELS_H

#include <stdbool.h>

#include "jit/stage/compile.h"

/* Does this request order kernels? Its head is that of any request. */
bool stage_orders_kernels(const char *text);

/* Compiles them into a file (jit/kernels/code.h). False: one line in `error`. */
bool stage_kernels(const char *text, const char *path, char error[STAGE_ERROR_BYTES]);

/* tidepool-stage --kernels cuda|opencl [ARCHITECTURE [DRIVER]]: the source, or what becomes of it
 * for a device whose driver knows that CUDA (12040: 12.4), on stdout. `--architectures`: those that
 * NVRTC knows. The program's exit status. */
int stage_kernels_show(int count, char **args);

#endif

/* SPDX-License-Identifier: MIT */
/* The generator: from one description of the kernels, their text as CUDA C or as OpenCL C. Neither
 * needs a header. */
#ifndef TIDEPOOL_JIT_KERNELS_SOURCE_H
#define TIDEPOOL_JIT_KERNELS_SOURCE_H

#include "jit/kernels/kernels.h"

enum { TIDE_KERNELS_SOURCE_BYTES = 16 << 10 }; /* more than any text takes */

/* Writes the text and a final 0; the bytes without it. */
size_t tide_kernels_source(tide_kernels_language language, char *out, size_t room);

#endif

/* SPDX-License-Identifier: MIT */
/* The CUDA run-time compiler: loaded into the program if it is there, never linked, never unloaded.
 * It needs neither driver nor device, and works on the thread that calls. */
#ifndef TIDEPOOL_JIT_KERNELS_NVRTC_H
#define TIDEPOOL_JIT_KERNELS_NVRTC_H

#include <tidepool/inline/config.h>

typedef struct tide_cuda_code {
    char *code; /* a cubin; to be freed with tide_os_free */
    size_t bytes;
} tide_cuda_code;

/* What code is for. */
typedef struct tide_cuda_target {
    unsigned architecture; /* 90: compute capability 9.0                    */
    unsigned driver;       /* 12040: it knows CUDA 12.4; 0: it does not say */
} tide_cuda_target;

/* Names the library instead of the usual ones; NULL: those. While attaching, before anything is
 * compiled. */
void tide_nvrtc_set(const char *name);

/* Compiles CUDA C by the compiler of the driver's major version, or an older one. False: one line in `error`,
 * with the first of the compiler's own complaints. Any thread. */
bool tide_nvrtc_compile(const char *source, tide_cuda_target target, tide_cuda_code *out,
                        char *error, size_t room);

#endif

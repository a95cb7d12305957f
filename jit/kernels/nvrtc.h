/* SPDX-License-Identifier: MIT */
/* The CUDA run-time compiler: loaded into the program if it is there, never linked, never unloaded.
 * It needs neither driver nor device, and works on the thread that calls. */
#ifndef TIDEPOOL_JIT_KERNELS_NVRTC_H
#define TIDEPOOL_JIT_KERNELS_NVRTC_H

#include <tidepool/inline/config.h>

/* Names the library instead of the usual ones; NULL: those. While attaching, before anything is
 * compiled. */
void tide_nvrtc_set(const char *name);

/* Compiles CUDA C for an architecture (90: compute capability 9.0) by the compiler of the driver's major version
 * (13000: it knows CUDA 13.0; 0: any), or an older one. A cubin of so many bytes, to be freed with tide_os_free; NULL
 * with a message of one line, with the first of the compiler's own complaints. Any thread. */
void *tide_nvrtc_compile(const char *source, unsigned architecture, unsigned driver, size_t *bytes);

#endif

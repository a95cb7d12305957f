/* SPDX-License-Identifier: MIT */
/* The CUDA run-time compiler: loaded if it is there, never linked. It needs neither
 * driver nor device. */
#ifndef TIDEPOOL_JIT_STAGE_NVRTC_H
#define TIDEPOOL_JIT_STAGE_NVRTC_H

#include <tidepool/config.h>

typedef struct stage_cuda_code {
    char *code; /* to be freed with free() */
    size_t bytes;
    const char *kind;   /* "cubin"; "ptx" for a device that the compiler does not know */
    char compiler[120]; /* its version and options, for a person and a digest  */
} stage_cuda_code;

/* What code is for: 90 for sm_90; 12040 for a driver of CUDA 12.4, 0 where that is not known. */
typedef struct stage_cuda_device {
    unsigned architecture, driver;
} stage_cuda_device;

/* Compiles CUDA C by the newest compiler whose code the driver loads, cancelled after so many
 * milliseconds of the processor's time where the compiler can be. False: one line in `error`, with
 * the first of the compiler's own complaints. */
bool stage_nvrtc_compile(const char *source, const stage_cuda_device *device, int deadline_ms,
                         stage_cuda_code *out, char *error, size_t room);

/* The architectures that the newest compiler knows, ascending; 0 and one line in `error` if there
 * is no compiler. */
size_t stage_nvrtc_architectures(int *out, size_t most, char *error, size_t room);

#endif

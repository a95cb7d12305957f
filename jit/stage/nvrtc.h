/* SPDX-License-Identifier: MIT */
/* The CUDA run-time compiler: loaded if it is there, never linked. It needs neither
 * driver nor device. */
#ifndef TIDEPOOL_JIT_STAGE_NVRTC_H
#define TIDEPOOL_JIT_STAGE_NVRTC_H

#include <tidepool/config.h>

typedef struct stage_cuda_code {
    char *code; /* to be freed with free() */
    size_t bytes;
    const char *kind;   /* "cubin"; "ptx" for a device newer than the compiler */
    char compiler[120]; /* its version and options, for a person and a digest  */
} stage_cuda_code;

/* Compiles CUDA C for an architecture (90: sm_90), cancelled after so many milliseconds of
 * the processor's time where the compiler can be. False: one line in `error`, with the first of the
 * compiler's own complaints. */
bool stage_nvrtc_compile(const char *source, unsigned architecture, int deadline_ms,
                         stage_cuda_code *out, char *error, size_t room);

/* The architectures it compiles for, ascending; 0 and one line in `error` if there
 * is no compiler. */
size_t stage_nvrtc_architectures(int *out, size_t most, char *error, size_t room);

#endif

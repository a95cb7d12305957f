/* SPDX-License-Identifier: MIT */
/* Compiled kernels as a file, and the order for one: the stager writes the file, the library reads
 * it and may cache it between runs. A file is believed whole or not at all:
 *
 *   tidepool-kernels 1
 *   kernels cuda 90 12040 3f0e…  what was ordered: language, architecture, driver, hash of the
 *   source compiler nvrtc 13.0 -arch=sm_90 …
 *   code cubin 24680             what follows after the digest, and its bytes
 *   digest 0f1e…                 XXH3, 128 bits, of all lines above and of the code
 *
 * The digest is against damage; that nobody else could write is a matter of where files lie. */
#ifndef TIDEPOOL_JIT_KERNELS_CODE_H
#define TIDEPOOL_JIT_KERNELS_CODE_H

#include "jit/kernels/kernels.h"

enum {
    TIDE_KERNELS_LINE = 80,      /* an order, its end and the 0 included */
    TIDE_KERNELS_COMPILER = 120, /* what made the code, likewise         */
    TIDE_KERNELS_HEAD = 512,     /* all lines before the code            */
    TIDE_KERNELS_CODE_MAX = 16 << 20
};

/* What kernels are for. */
typedef struct tide_kernels_target {
    unsigned architecture; /* 90: compute capability 9.0                   */
    unsigned driver;       /* 12040: it knows CUDA 12.4; 0: it does not say */
} tide_kernels_target;

/* The order's one line, "kernels cuda 90 12040 …\n", for the kernels that this build knows. */
void tide_kernels_order_write(tide_kernels_target target, char out[TIDE_KERNELS_LINE]);

/* Reads it, and nothing after it. False: one line in `error`. */
bool tide_kernels_order_read(const char *text, tide_kernels_target *target, char *error,
                             size_t room);

/* The lines that stand before the code; their bytes. `compiler` has no line's end. */
size_t tide_kernels_head_write(tide_kernels_target target, const char *compiler, const char *kind,
                               const void *code, size_t bytes, char out[TIDE_KERNELS_HEAD]);

typedef struct tide_kernels_code {
    const char *code; /* within the file */
    size_t bytes;
    char compiler[TIDE_KERNELS_COMPILER];
} tide_kernels_code;

/* Is this, all of it, a file of the kernels for this target? `file` is followed by a 0.
 * False: one line in `error`. */
bool tide_kernels_code_read(const char *file, size_t bytes, tide_kernels_target target,
                            tide_kernels_code *out, char *error, size_t room);

#endif

/* SPDX-License-Identifier: MIT */
/* From the text of specs to a code object. */
#ifndef TIDEPOOL_JIT_STAGE_COMPILE_H
#define TIDEPOOL_JIT_STAGE_COMPILE_H

#include "jit/spec/spec.h"

/* What is made of a text. */
typedef enum stage_output {
    STAGE_OUTPUT_LIBRARY, /* a shared object to be loaded         */
    STAGE_OUTPUT_ASM,     /* its assembler text                    */
    STAGE_OUTPUT_C        /* what libgccjit was told, in a C dress */
} stage_output;

/* The sites of a request. */
typedef struct stage_request {
    uint32_t count;
    tide_spec specs[TIDE_SPEC_SITES];
} stage_request;

enum { STAGE_ERROR_BYTES = 400, STAGE_PATH_BYTES = 4096 };

/* Both give false with one line in `error`. The first refuses text for another library. The second
 * leaves what it makes on the way beside `path`, if it is cut short. */
bool stage_read(const char *text, stage_request *out, char error[STAGE_ERROR_BYTES]);
bool stage_compile(const stage_request *request, stage_output output, const char *path,
                   char error[STAGE_ERROR_BYTES]);

#endif

/* SPDX-License-Identifier: MIT */
/* From assembler text to a code object, by the system's assembler and linker. */
#ifndef TIDEPOOL_JIT_STAGE_ASSEMBLE_H
#define TIDEPOOL_JIT_STAGE_ASSEMBLE_H

#include "jit/stage/compile.h"

/* Makes the library `path` of the text in PATH.s. False: one line in `error`. */
bool stage_assemble(const char *path, char error[STAGE_ERROR_BYTES]);

#endif

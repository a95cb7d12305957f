/* SPDX-License-Identifier: MIT */
/* From assembler text to a code object, by the system's assembler and linker. */
#ifndef TIDEPOOL_JIT_STAGE_ASSEMBLE_H
#define TIDEPOOL_JIT_STAGE_ASSEMBLE_H

#include "jit/stage/compile.h"

/* Writes what every code object exports before and behind the functions of one. */
void stage_assemble_begin(FILE *out);
void stage_assemble_end(FILE *out);

/* Makes the library `path` of the text in PATH.s; what is made on the way but the text is removed.
 * False: one line in `error`. */
bool stage_assemble(const char *path, char error[STAGE_ERROR_BYTES]);

#endif

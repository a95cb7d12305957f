/* SPDX-License-Identifier: MIT */
/* The stager by hand: specs from files, for a person. */
#ifndef TIDEPOOL_JIT_STAGE_EXPLAIN_H
#define TIDEPOOL_JIT_STAGE_EXPLAIN_H

#include <stdbool.h>

/* Both return what main should, with a message on stderr if it is not 0. "-" is stdin. */
int stage_explain(const char *spec_file, bool assembler);
int stage_compile_file(const char *spec_file, const char *library_file);

#endif

/* SPDX-License-Identifier: MIT */
/* An artefact that no stager made: right, or wrong in one way. */
#include "runtime/scope/compiled.h"

extern uint64_t tide_artefact_magic, tide_artefact_layout;
extern const tide_runtime *tide_artefact_table;
const tide_runtime *x_enter(void);
const tide_runtime *y_enter(void);

#ifdef WRONG_MAGIC
uint64_t tide_artefact_magic = TIDE_ARTEFACT_MAGIC + 1;
#else
uint64_t tide_artefact_magic = TIDE_ARTEFACT_MAGIC;
#endif

/* A real one has it as a constant. */
#ifndef NO_LAYOUT
uint64_t tide_artefact_layout;

__attribute__((constructor)) static void begin(void)
{
    tide_artefact_layout = tide_compiled_layout();
#ifdef WRONG_LAYOUT
    tide_artefact_layout ^= 1;
#endif
}
#endif

#ifndef NO_TABLE
const tide_runtime *tide_artefact_table;
#define TABLE tide_artefact_table
#else
#define TABLE NULL
#endif

const tide_runtime *x_enter(void)
{
    return TABLE;
}

const tide_runtime *y_enter(void)
{
    return TABLE;
}

/* Its code is said to be sixteen bytes of the first function. */
#ifndef NO_RANGE
__asm__(".globl tide_artefact_code\n"
        ".set tide_artefact_code, x_enter\n"
        ".globl tide_artefact_code_end\n"
        ".set tide_artefact_code_end, x_enter + 16\n");
#endif

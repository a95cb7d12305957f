/* SPDX-License-Identifier: MIT */
/* A code object that no stager made: right, or wrong in one way. */
#include "runtime/scope/compiled.h"

extern uint64_t tide_artefact_magic, tide_artefact_layout;
extern const tide_runtime *tide_artefact_table;
const tide_runtime *x_enter(void);

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

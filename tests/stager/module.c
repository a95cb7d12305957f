/* SPDX-License-Identifier: MIT */
/* A code object that no stager made: right, or wrong in one way. */
#include "runtime/scope/compiled.h"

extern uint64_t tide_object_magic, tide_object_layout;
extern const tide_runtime *tide_object_table;
const tide_runtime *x_enter(void);
void x_leave(void);

#ifdef WRONG_MAGIC
uint64_t tide_object_magic = TIDE_CODE_MAGIC + 1;
#else
uint64_t tide_object_magic = TIDE_CODE_MAGIC;
#endif

/* A real one has it as a constant. */
#ifndef NO_LAYOUT
uint64_t tide_object_layout;

__attribute__((constructor)) static void begin(void)
{
    tide_object_layout = tide_compiled_layout();
#ifdef WRONG_LAYOUT
    tide_object_layout ^= 1;
#endif
}
#endif

#ifndef NO_TABLE
const tide_runtime *tide_object_table;
#define TABLE tide_object_table
#else
#define TABLE NULL
#endif

const tide_runtime *x_enter(void)
{
    return TABLE;
}

void x_leave(void)
{
}

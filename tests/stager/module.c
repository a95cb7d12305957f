/* SPDX-License-Identifier: MIT */
/* An artefact that no stager made: right, or wrong in one way. */
#include <stdlib.h>

#include "runtime/scope/compiled.h"

extern uint64_t tide_artefact_magic, tide_artefact_layout;
void tide_artefact_attach(const tide_runtime *runtime);
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

static const tide_runtime *attached;

#ifndef NO_ATTACH
void tide_artefact_attach(const tide_runtime *runtime)
{
#ifndef RIGHT
    abort(); /* it should have been refused before */
#endif
    attached = runtime;
}
#endif

const tide_runtime *x_enter(void)
{
    return attached;
}

const tide_runtime *y_enter(void)
{
    return attached;
}

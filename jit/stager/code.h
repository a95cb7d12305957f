/* SPDX-License-Identifier: MIT */
/* Code objects: the shared objects that the stager makes, loaded into the process, and the code in
 * them. Each is loaded once and stays until the process ends, so nobody has to know who is inside
 * its code, and sites for which the same code would be made share it. The sizes of the objects
 * are added up: once the next one would take them beyond the setting `code_bytes`, nothing more is
 * loaded.
 *
 * Loading takes the dynamic linker's lock, under which a module's constructor takes the registry's:
 * so the first two are not called with the registry locked. All are called by whoever has the round
 * (jit/learn/round.h), the figures by any thread. */
#ifndef TIDEPOOL_JIT_STAGER_CODE_H
#define TIDEPOOL_JIT_STAGER_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jit/spec/spec.h"

/* Loads the file (an absolute path), checks its magic and layout, and hands it the runtime's table.
 * NULL: one line in `error`, and nothing stays loaded. */
void *tide_code_load(const char *path, char *error, size_t room);

/* The functions of one form: what scopes of the same types share. */
typedef struct tide_code {
    struct tide_code *next;
    uint64_t form;
    void *enter, *leave;
} tide_code;

/* Looks up what an object has for the spec, and keeps it for who asks next. NULL: not all of it is
 * there, or memory is short. */
const tide_code *tide_code_find(void *object, uint64_t form, const tide_spec *spec);

/* What was found before; NULL: nothing. */
const tide_code *tide_code_known(uint64_t form);

/* Is there no room left for another object? */
bool tide_code_full(void);

/* Objects that are loaded, and what their files take. */
uint64_t tide_code_objects(void);
uint64_t tide_code_bytes(void);

#endif

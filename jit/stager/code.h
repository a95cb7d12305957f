/* SPDX-License-Identifier: MIT */
/* Code objects: the shared objects that the stager makes, loaded into the process. Each is loaded
 * once and stays until the process ends, so nobody has to know who is inside its code. Their sizes
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

/* The address of STEM followed by suffix ("_enter"); NULL: there is none. */
void *tide_code_find(void *object, const char *stem, const char *suffix);

/* Is there no room left for another object? */
bool tide_code_full(void);

/* Objects that are loaded, and what their files take. */
uint64_t tide_code_objects(void);
uint64_t tide_code_bytes(void);

#endif

/* SPDX-License-Identifier: MIT */
/* Artefacts: shared objects made by the stager, loaded into the process.
 *
 * None of these may be called with the registry locked: loading and unloading take the dynamic
 * linker's lock, under which a module's constructor takes the registry's. */
#ifndef TIDEPOOL_JIT_CACHE_ARTEFACT_H
#define TIDEPOOL_JIT_CACHE_ARTEFACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tide_artefact tide_artefact;

/* Loads the file (an absolute path), checks its magic and layout, and hands it the runtime's table.
 * NULL: one line in `error`; nothing stays loaded. `temporary`: it lies in the private directory,
 * or is refused; unless that one keeps its code, it is removed with the artefact, or at once where
 * it cannot be loaded. Starts with one use. Any thread. */
tide_artefact *tide_artefact_load(const char *path, bool temporary, char *error, size_t room);

/* The address of STEM followed by suffix ("_enter"); NULL when there is none. */
void *tide_artefact_find(const tide_artefact *artefact, const char *stem, const char *suffix);

/* Where its code lies, from the first byte to behind the last one. */
void tide_artefact_range(const tide_artefact *artefact, uintptr_t *first, uintptr_t *last);

/* Each site that uses its code holds a use; with the last one it is unloaded. */
void tide_artefact_use(tide_artefact *artefact);
void tide_artefact_drop(tide_artefact *artefact);

/* A label by which an artefact that is loaded already can be found again (with one use more). */
typedef struct tide_artefact_label {
    unsigned char bytes[16];
} tide_artefact_label;

void tide_artefact_set_label(tide_artefact *artefact, const tide_artefact_label *label);
tide_artefact *tide_artefact_labelled(const tide_artefact_label *label);

/* Loaded now. */
size_t tide_artefact_count(void);

/* Registers what is done around fork. While the library is attached. */
void tide_artefacts_prepare(void);

#endif

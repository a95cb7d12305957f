/* SPDX-License-Identifier: MIT */
/* A cache of artefacts between runs, off unless the setting `artefact_cache` is 1. Its rules:
 *
 *  - It lies under $XDG_CACHE_HOME (or ~/.cache), never in /tmp.
 *  - It is refused under raised privileges, and where an owner, a mode or any folder above
 *    is wrong.
 *  - Files are opened without following links; they are written to a temporary name, synced
 *    and renamed.
 *  - The digest is checked before the code is mapped, and what is mapped is a private copy of the
 *    very bytes that were checked.
 *  - The key is library build, processor, layout and spec. An entry is used only if it names the
 *    compiler that is in use.
 *
 * Whoever holds the round lock (jit/learn/round.h) calls these. */
#ifndef TIDEPOOL_JIT_CACHE_CACHE_H
#define TIDEPOOL_JIT_CACHE_CACHE_H

#include "jit/cache/artefact.h"
#include "jit/spec/spec.h"

/* An artefact that holds this spec's code, loaded and with one use for the caller; NULL: there is
 * none that can be trusted. */
tide_artefact *tide_artefact_cache_find(const tide_spec *spec);

/* Stores the artefact's file under the key of each spec. A failure is harmless: it is counted and
 * nothing is said. At most TIDE_SPEC_SITES specs. */
void tide_artefact_cache_store(const char *path, const tide_spec *specs, size_t count);

typedef struct tide_artefact_cache_figures {
    uint64_t found, missing, refused, stored, failed;
} tide_artefact_cache_figures;

void tide_artefact_cache_figures_get(tide_artefact_cache_figures *out);

#endif

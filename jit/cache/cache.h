/* SPDX-License-Identifier: MIT */
/* Artefacts kept between runs: off unless the setting `artefact_cache` is 1. The rules: under
 * $XDG_CACHE_HOME (or ~/.cache), never in /tmp; refused under raised privileges and where owner,
 * mode or any ancestor is wrong; opened without following links; written to a temporary name,
 * synced, renamed; the digest is checked before the code is mapped, and what is mapped is a private
 * copy of the very bytes that were checked; keyed by library build, CPU, layout and spec, and used
 * only if it names the compiler that is in use.
 *
 * Whoever holds the round lock (jit/learn/round.h) calls these. */
#ifndef TIDEPOOL_JIT_CACHE_CACHE_H
#define TIDEPOOL_JIT_CACHE_CACHE_H

#include "jit/cache/artefact.h"
#include "jit/spec/spec.h"

/* An artefact that holds this spec's code, loaded and with one use for the caller; NULL: there is
 * none that can be trusted. */
tide_artefact *tide_artefact_cache_find(const tide_spec *spec);

/* Keeps the artefact's file under each of the specs' keys. Failing is harmless and silent but for
 * the count. */
void tide_artefact_cache_store(const char *path, const tide_spec *specs, size_t count);

typedef struct tide_artefact_cache_figures {
    uint64_t found, missing, refused, stored, failed;
} tide_artefact_cache_figures;

void tide_artefact_cache_figures_get(tide_artefact_cache_figures *out);

#endif

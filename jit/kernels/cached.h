/* SPDX-License-Identifier: MIT */
/* A cache of compiled kernels between runs, under the same rules as artefacts (jit/cache/cache.h):
 * off unless the setting `artefact_cache` is 1; believed only where nobody else could have written;
 * the digest is checked before a driver sees the code, and what it sees are the very bytes that
 * were checked.
 *
 * Whoever holds the round lock (jit/learn/round.h) calls these. */
#ifndef TIDEPOOL_JIT_KERNELS_CACHED_H
#define TIDEPOOL_JIT_KERNELS_CACHED_H

#include "jit/kernels/code.h"

/* A file of kernels, read and checked. */
typedef struct tide_kernels_file {
    char *bytes; /* to be freed with tide_os_free; NULL: none */
    tide_kernels_code code;
} tide_kernels_file;

/* The cached file for this architecture. NULL bytes: there is none that can be trusted. */
tide_kernels_file tide_kernels_cached_find(tide_kernels_target target);

/* Stores a file that was checked. A failure is harmless, and nothing is said. */
void tide_kernels_cached_store(tide_kernels_target target, const tide_kernels_file *file);

/* The file at a path in the process's private directory, checked and removed. */
tide_kernels_file tide_kernels_fetch(const char *path, tide_kernels_target target, char *error,
                                     size_t room);

#endif

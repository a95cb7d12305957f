/* SPDX-License-Identifier: MIT */
/* Other people's allocators. */
#ifndef TIDEPOOL_BENCH_PEERS_H
#define TIDEPOOL_BENCH_PEERS_H

#include "bench.h"

/* Why a peer is not here; NULL: it is. */
#if BENCH_SANITIZED
#define BENCH_MISSING(path, package) "a sanitizer watches malloc in this build"
#else
#define BENCH_MISSING(path, package) (sizeof(path) > 1 ? NULL : "built without " package)
#endif
#define BENCH_MISSING_glibc    NULL
#define BENCH_MISSING_jemalloc BENCH_MISSING(BENCH_JEMALLOC, "libjemalloc-dev")
#define BENCH_MISSING_mimalloc BENCH_MISSING(BENCH_MIMALLOC, "libmimalloc-dev")
#define BENCH_MISSING_tcmalloc BENCH_MISSING(BENCH_TCMALLOC, "libgoogle-perftools-dev")

/* An allocator in the manner of malloc, as two functions. */
typedef struct bench_malloc {
    const char *name;
    const char *library; /* path of its shared object; NULL: the process's own */
    const char *take_name;
    const char *give_name;
    const char *proof; /* a symbol that only this library has */
    void *(*take)(size_t bytes);
    void (*give)(void *data);
} bench_malloc;

/* The allocator of that name, loaded; NULL with a complaint. The library is loaded privately:
 * malloc() in this process stays the C library's. */
const bench_malloc *bench_malloc_find(const char *name);

/* Restarts the program, once, with the thread-local room that late-loaded allocators need. */
void bench_make_room_for_peers(char **arguments);

extern const bench_variant bench_glibc;
extern const bench_variant bench_jemalloc;
extern const bench_variant bench_mimalloc;
extern const bench_variant bench_tcmalloc;
extern const bench_variant bench_pmr;

#endif

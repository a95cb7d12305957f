/* SPDX-License-Identifier: MIT */
/* malloc and free by other names: the C library's, jemalloc, mimalloc, tcmalloc.
 *
 * Each peer is loaded with dlopen(RTLD_LOCAL), so that none of them becomes the process's malloc,
 * and its functions are taken from its own handle and checked to lie in its own file. All four
 * are called through pointers, as they would be through a shared library. */
#define _GNU_SOURCE
#include "peers.h"
#include "scope4.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bench_malloc table[] = {
    {"glibc", NULL, "malloc", "free", NULL, malloc, free},
    {"jemalloc", BENCH_JEMALLOC, "malloc", "free", "mallctl", NULL, NULL},
    {"mimalloc", BENCH_MIMALLOC, "mi_malloc", "mi_free", "mi_version", NULL, NULL},
    {"tcmalloc", BENCH_TCMALLOC, "tc_malloc", "tc_free", "tc_version", NULL, NULL},
};

/* The named function, if it is really this library's. */
static void *function_of(void *handle, const bench_malloc *peer, const char *name)
{
    Dl_info proof, found;
    void *anchor = dlsym(handle, peer->proof);
    void *function = dlsym(handle, name);
    if (anchor == NULL || function == NULL || !dladdr(anchor, &proof) ||
        !dladdr(function, &found) || proof.dli_fbase != found.dli_fbase ||
        dlsym(RTLD_DEFAULT, name) == function) {
        bench_complain("%s: %s does not give a %s of its own", peer->name, peer->library, name);
        return NULL;
    }
    return function;
}

static bool load(bench_malloc *peer)
{
    void *handle = dlopen(peer->library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        bench_complain("%s: %s", peer->name, dlerror());
        return false;
    }
    void *take = function_of(handle, peer, peer->take_name);
    void *give = function_of(handle, peer, peer->give_name);
    if (take == NULL || give == NULL)
        return false;
    memcpy(&peer->give, &give, sizeof give); /* ISO C has no cast from data to function */
    memcpy(&peer->take, &take, sizeof take);
    return true;
}

const bench_malloc *bench_malloc_find(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        bench_malloc *peer = &table[i];
        if (strcmp(peer->name, name) != 0)
            continue;
        return peer->take != NULL || load(peer) ? peer : NULL;
    }
    return NULL;
}

/* tcmalloc takes its memory from brk unless told otherwise; so does the C library, and each would
 * keep the other from giving any back. jemalloc's thread-local data need 2.6 KiB of the room that
 * the loader reserves for libraries that come late, which it settles before main. */
void bench_make_room_for_peers(char **arguments)
{
    static const char room[] = "glibc.rtld.optional_static_tls=16384";
    const char *tunables = getenv("GLIBC_TUNABLES");
    char text[1024];
    setenv("TCMALLOC_SKIP_SBRK", "1", 1);
    if (tunables != NULL && strstr(tunables, room) != NULL)
        return;
    snprintf(text, sizeof text, "%s%s%s", room, tunables ? ":" : "", tunables ? tunables : "");
    setenv("GLIBC_TUNABLES", text, 1);
    char self[4096] = "";
    if (readlink("/proc/self/exe", self, sizeof self - 1) >
        0) /* under Valgrind too, only this says */
        execv(self, arguments);
    bench_complain("cannot restart; jemalloc may not load");
}

/* --- the variant, the same for all four ------------------------------------------------- */

typedef struct malloc_state {
    const bench_sizes *sizes;
    void *(*take)(size_t bytes);
    void (*give)(void *data);
} malloc_state;

static void *setup(const bench_case *job, const char *name)
{
    const bench_malloc *peer = bench_malloc_find(name);
    if (peer == NULL)
        return NULL;
    malloc_state *s = bench_state_make(sizeof *s);
    s->sizes = job->sizes;
    s->take = peer->take;
    s->give = peer->give;
    return s;
}

static void teardown(void *state)
{
    bench_state_free(state, sizeof(malloc_state));
}

/* clang-format off */
BENCH_SCOPE4(malloc_free, malloc_state,
    double *a = s->take(n->count[0] * sizeof *a);
    int32_t *b = s->take(n->count[1] * sizeof *b);
    double *c = s->take(n->count[2] * sizeof *c);
    int32_t *d = s->take(n->count[3] * sizeof *d);
    BENCH_USE(a, b, c, d);
    s->give(d);
    s->give(c);
    s->give(b);
    s->give(a);
)
/* clang-format on */

/* What was loaded is what is called, and the process's own malloc is still the C library's. */
static bool verify(void *state, uint64_t operations)
{
    (void)operations;
    malloc_state *s = state;
    Dl_info own;
    void *own_malloc = dlsym(RTLD_DEFAULT, "malloc");
#if !BENCH_SANITIZED
    if (!dladdr(own_malloc, &own) || strstr(own.dli_fname, "libc.so") == NULL) {
        bench_complain("malloc of this process is not the C library's");
        return false;
    }
#else
    (void)own;
    (void)own_malloc;
#endif
    return s->take != NULL;
}

#define MALLOC_VARIANT(name)                                                   \
    static void *name##_setup(const bench_case *job)                           \
    {                                                                          \
        return setup(job, #name);                                              \
    }                                                                          \
    const bench_variant bench_##name = {#name,           BENCH_MISSING_##name, \
                                        name##_setup,    malloc_free_prove,    \
                                        malloc_free_run, verify,               \
                                        teardown,        NULL};

MALLOC_VARIANT(glibc)
MALLOC_VARIANT(jemalloc)
MALLOC_VARIANT(mimalloc)
MALLOC_VARIANT(tcmalloc)

/* SPDX-License-Identifier: MIT */
/* Buffers against allocators in the manner of malloc: one buffer of a few KiB, its size from a
 * table, its first and last word written; released at once. The threads of a case share one
 * instance. */
#include "buffers.h"

#include <pthread.h>
#include <string.h>
#include <tidepool/buffers.h>
#include <tidepool/tidepool.h>

#include "peers.h"

typedef struct buffers_state {
    const bench_sizes *sizes;
    void *(*take)(size_t bytes);
    void (*give)(void *data);
    tide_buffers *buffers;
} buffers_state;

/* ---- one instance for all threads of a case and policy ----------------------------------------
 */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct shared {
    tide_buffers *buffers;
    uint32_t users;
} shared;

static tide_buffers *join(void)
{
    pthread_mutex_lock(&lock);
    if (shared.users++ == 0)
        shared.buffers = tide_buffers_create(NULL, NULL);
    pthread_mutex_unlock(&lock);
    if (shared.buffers == NULL)
        bench_die("%s", tide_error_message());
    return shared.buffers;
}

static void part(void)
{
    pthread_mutex_lock(&lock);
    if (--shared.users == 0 && tide_buffers_destroy(shared.buffers) != TIDE_OK)
        bench_complain("%s", tide_error_message());
    pthread_mutex_unlock(&lock);
}

/* ---- the operation ------------------------------------------------------------------------------
 */

BENCH_INLINE void touch(void *data, size_t bytes)
{
    char *at = data;
    at[0] = 1;
    at[bytes - 1] = 2;
    __asm__ volatile("" ::"r"(at) : "memory");
}

static uint64_t run_buffers(void *state, uint64_t operations)
{
    buffers_state *s = state;
    uint64_t done = 0;
    for (uint64_t i = 0; i < operations; i++) {
        size_t bytes = 8 * (size_t)s->sizes[i % BENCH_SIZES].count[0];
        tide_buffer b = tide_buffer_acquire(s->buffers, bytes);
        touch(tide_buffer_pointer(s->buffers, b), bytes);
        done += tide_buffer_release(s->buffers, b) == TIDE_OK;
    }
    return done;
}

static uint64_t run_malloc(void *state, uint64_t operations)
{
    buffers_state *s = state;
    uint64_t done = 0;
    for (uint64_t i = 0; i < operations; i++) {
        size_t bytes = 8 * (size_t)s->sizes[i % BENCH_SIZES].count[0];
        void *data = s->take(bytes);
        touch(data, bytes);
        s->give(data);
        done++;
    }
    return done;
}

/* Two at a time, filled: they must not share a byte. */
static void prove_buffers(void *state, uint64_t operations)
{
    buffers_state *s = state;
    for (uint64_t i = 0; i < operations; i++) {
        size_t bytes = 8 * (size_t)s->sizes[i % BENCH_SIZES].count[0];
        tide_buffer a = tide_buffer_acquire(s->buffers, bytes);
        tide_buffer b = tide_buffer_acquire(s->buffers, bytes);
        unsigned char *x = tide_buffer_pointer(s->buffers, a),
                      *y = tide_buffer_pointer(s->buffers, b);
        if (x == NULL || y == NULL)
            bench_die("%s", tide_error_message());
        memset(x, 1, bytes);
        memset(y, 2, bytes);
        if (x[0] != 1 || x[bytes - 1] != 1 || y[0] != 2)
            bench_die("two buffers share memory");
        if (tide_buffer_release(s->buffers, a) != TIDE_OK ||
            tide_buffer_release(s->buffers, b) != TIDE_OK)
            bench_die("%s", tide_error_message());
    }
}

static void prove_malloc(void *state, uint64_t operations)
{
    (void)run_malloc(state, operations);
}

/* ---- made and verified
 * --------------------------------------------------------------------------- */

static void *setup_buffers(const bench_case *job)
{
    buffers_state *s = bench_state_make(sizeof *s);
    s->sizes = job->sizes;
    s->buffers = join();
    return s;
}

static void *setup_malloc(const bench_case *job, const char *name)
{
    const bench_malloc *peer = bench_malloc_find(name);
    if (peer == NULL)
        return NULL;
    buffers_state *s = bench_state_make(sizeof *s);
    s->sizes = job->sizes;
    s->take = peer->take;
    s->give = peer->give;
    return s;
}

/* Nearly everything must have been a hit. */
static bool verify(void *state, uint64_t operations)
{
    const buffers_state *s = state;
    tide_buffers_statistics now;
    (void)operations;
    if (s->buffers == NULL)
        return s->take != NULL;
    if (tide_buffers_stats(s->buffers, &now, NULL, 0) == TIDE_OK && now.live <= now.misses &&
        now.misses < 1000 && now.refused == 0 && now.dropped < 1000)
        return true;
    bench_complain("buffers: %llu misses, %llu dropped, %llu refused",
                   (unsigned long long)now.misses, (unsigned long long)now.dropped,
                   (unsigned long long)now.refused);
    return false;
}

static void teardown(void *state)
{
    buffers_state *s = state;
    if (s->buffers != NULL)
        part();
    bench_state_free(s, sizeof *s);
}

#define MALLOC_VARIANT(peer)                                                                   \
    static void *peer##_setup(const bench_case *job)                                           \
    {                                                                                          \
        return setup_malloc(job, #peer);                                                       \
    }                                                                                          \
    static const bench_variant peer = {                                                        \
        #peer, BENCH_MISSING_##peer, peer##_setup, prove_malloc, run_malloc, verify, teardown, \
        NULL};

static const bench_variant tide = {"tide",      NULL,   setup_buffers, prove_buffers,
                                   run_buffers, verify, teardown,      NULL};

MALLOC_VARIANT(glibc)
MALLOC_VARIANT(jemalloc)
MALLOC_VARIANT(mimalloc)
MALLOC_VARIANT(tcmalloc)
MALLOC_VARIANT(tbb)

const bench_variant *const bench_buffers_variants[] = {&tide,     &glibc, &jemalloc, &mimalloc,
                                                       &tcmalloc, &tbb,   NULL};

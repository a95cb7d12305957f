/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "patterns.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/buffers.h>
#include <tidepool/tidepool.h>

enum { BLOCKS_MAX = 1000, THREADS_MAX = 8, SIZES = 4096, PAGE = 4096, PIPE = 64 };

typedef struct block {
    char *data;         /* NULL: none */
    tide_buffer buffer; /* where it came from buffers */
} block;

struct pattern_user {
    const pattern *p;
    tide_buffers *buffers; /* NULL: malloc */
    size_t sizes[SIZES];   /* drawn beforehand, equally likely by their logarithm */
    block blocks[THREADS_MAX][BLOCKS_MAX];
    pthread_barrier_t barrier;
    uint64_t rounds, each; /* of each thread, of a round */
    block pipe[PIPE];
    uint64_t sent, received; /* atomic */
};

static void pattern_die(const char *what)
{
    fprintf(stderr, "tidepool-patterns: %s\n", what);
    exit(1);
}

static uint64_t pattern_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* ---- one block ------------------------------------------------------------------------------ */

static inline void block_touch(const pattern *p, char *data, size_t bytes)
{
    if (p->touches)
        for (size_t at = 0; at < bytes; at += PAGE)
            data[at] = 1;
    data[0] = 1;
    data[bytes - 1] = 2;
    __asm__ volatile("" ::"r"(data) : "memory");
}

/* Member by member: a block that is copied whole right after its members were written waits for
 * them, and that would be timed, too. */
static inline void block_acquire(pattern_user *u, size_t bytes, block *b)
{
    void *data;
    if (u->buffers != NULL)
        b->buffer = tide_buffer_acquire_pointer(u->buffers, bytes, &data);
    else
        data = malloc(bytes);
    if (data == NULL)
        pattern_die("no memory");
    b->data = data;
    block_touch(u->p, data, bytes);
}

static inline void block_release(pattern_user *u, block *b)
{
    if (u->buffers == NULL)
        free(b->data);
    else if (tide_buffer_release(u->buffers, b->buffer) != TIDE_OK)
        pattern_die(tide_error_message());
    b->data = NULL;
}

/* ---- threads that each replace blocks at random ---------------------------------------------- */

typedef struct pattern_thread {
    pattern_user *u;
    unsigned number;
    pthread_t thread;
} pattern_thread;

/* After each round the blocks go on to the next thread. */
static void *pattern_replace(void *argument)
{
    pattern_thread *t = argument;
    pattern_user *u = t->u;
    uint64_t random = 88172645463325252u + t->number;
    for (uint64_t round = 0; round < u->rounds; round++) {
        block *blocks = u->blocks[(t->number + round) % u->p->threads];
        for (uint64_t i = 0; i < u->each; i++) {
            uint64_t drawn = pattern_random(&random);
            block *b = &blocks[drawn % u->p->blocks];
            if (b->data != NULL)
                block_release(u, b);
            block_acquire(u, u->sizes[(drawn >> 32) % SIZES], b);
        }
        if (u->rounds > 1)
            pthread_barrier_wait(&u->barrier);
    }
    return NULL;
}

static void pattern_start(pattern_user *u, void *(*work)(void *), unsigned threads)
{
    pattern_thread all[THREADS_MAX];
    for (unsigned i = 0; i < threads; i++) {
        all[i] = (pattern_thread){.u = u, .number = i};
        if (pthread_create(&all[i].thread, NULL, work, &all[i]) != 0)
            pattern_die("no thread");
    }
    for (unsigned i = 0; i < threads; i++)
        pthread_join(all[i].thread, NULL);
}

static uint64_t run_mixed(const pattern *p, pattern_user *u, uint64_t operations)
{
    u->rounds = 1;
    u->each = (operations + p->threads - 1) / p->threads;
    if (p->threads == 1)
        pattern_replace(&(pattern_thread){.u = u});
    else
        pattern_start(u, pattern_replace, p->threads);
    return u->each * p->threads;
}

static uint64_t run_larson(const pattern *p, pattern_user *u, uint64_t operations)
{
    u->each = (uint64_t)p->blocks * 8;
    u->rounds = operations / p->threads / u->each;
    pattern_start(u, pattern_replace, p->threads);
    return u->rounds * u->each * p->threads;
}

/* ---- one thread, all blocks, then none ------------------------------------------------------- */

/* The same sizes in the same order each time, smallest and largest among them; released in
 * reverse. */
static uint64_t run_training(const pattern *p, pattern_user *u, uint64_t operations)
{
    uint64_t done = 0;
    double step = log((double)p->bytes_max / (double)p->bytes_min) / (p->blocks - 1);
    while (done < operations) {
        for (unsigned i = 0; i < p->blocks; i++) /* 29 has no divisor of 48: a mixed order */
            block_acquire(u, (size_t)((double)p->bytes_min * exp(step * (i * 29 % p->blocks))),
                          &u->blocks[0][i]);
        for (unsigned i = p->blocks; i-- > 0;)
            block_release(u, &u->blocks[0][i]);
        done += p->blocks;
    }
    return done;
}

static uint64_t run_live(const pattern *p, pattern_user *u, uint64_t operations)
{
    uint64_t done = 0;
    for (; done < operations; done += p->blocks) {
        for (unsigned i = 0; i < p->blocks; i++)
            block_acquire(u, p->bytes_max, &u->blocks[0][i]);
        for (unsigned i = 0; i < p->blocks; i++)
            block_release(u, &u->blocks[0][i]);
    }
    return done;
}

static uint64_t run_pairs(const pattern *p, pattern_user *u, uint64_t operations)
{
    (void)p;
    for (uint64_t i = 0; i < operations; i++) {
        block b;
        block_acquire(u, u->sizes[i % SIZES], &b);
        block_release(u, &b);
    }
    return operations;
}

/* ---- one thread acquires, another releases --------------------------------------------------- */

static void *pattern_drain(void *argument)
{
    pattern_user *u = ((pattern_thread *)argument)->u;
    for (uint64_t i = 0; i < u->each; i++) {
        while (__atomic_load_n(&u->sent, __ATOMIC_ACQUIRE) == i)
            sched_yield();
        block_release(u, &u->pipe[i % PIPE]);
        __atomic_store_n(&u->received, i + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

static uint64_t run_pipe(const pattern *p, pattern_user *u, uint64_t operations)
{
    (void)p;
    pattern_thread drain = {.u = u};
    u->each = operations;
    u->sent = u->received = 0;
    if (pthread_create(&drain.thread, NULL, pattern_drain, &drain) != 0)
        pattern_die("no thread");
    for (uint64_t i = 0; i < operations; i++) {
        block b;
        block_acquire(u, u->sizes[i % SIZES], &b);
        while (i - __atomic_load_n(&u->received, __ATOMIC_ACQUIRE) == PIPE)
            sched_yield();
        u->pipe[i % PIPE] = b;
        __atomic_store_n(&u->sent, i + 1, __ATOMIC_RELEASE);
    }
    pthread_join(drain.thread, NULL);
    return operations;
}

/* ---- the table ------------------------------------------------------------------------------- */

enum { KIB = 1 << 10, MIB = 1 << 20 };

static const pattern patterns[] = {
    {"mixed", run_mixed, 64, MIB, 8, 64, false},
    {"larson", run_larson, 4 * KIB, 256 * KIB, 2, 64, false},
    {"touched", run_mixed, 4 * KIB, 4 * MIB, 1, 64, true},
    {"training", run_training, 64 * KIB, 64 * MIB, 1, 48, true},
    {"training-small", run_training, 64, 64 * KIB, 1, 48, false},
    {"live-1000", run_live, 4 * KIB, 4 * KIB, 1, 1000, false},
    {"live-24", run_live, 64 * KIB, 64 * KIB, 1, 24, false},
    {"larson-small", run_larson, 64, KIB, 2, 1000, false},
    {"pipe", run_pipe, 64, 64 * KIB, 2, PIPE, false},
    {"pipe-small", run_pipe, 16, 128, 2, PIPE, false},
    {"pairs", run_pairs, 4 * KIB, 16 * KIB, 1, 1, false},
};

const pattern *pattern_find(const char *name)
{
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (strcmp(patterns[i].name, name) == 0)
            return &patterns[i];
    return NULL;
}

static void pattern_draw_sizes(pattern_user *u)
{
    uint64_t random = 2463534242u;
    double span = log((double)u->p->bytes_max / (double)u->p->bytes_min);
    for (size_t i = 0; i < SIZES; i++) {
        double at = (double)(pattern_random(&random) >> 11) / (double)(UINT64_C(1) << 53);
        u->sizes[i] = (size_t)((double)u->p->bytes_min * exp(span * at));
    }
}

pattern_user *pattern_open(const pattern *p, bool buffers)
{
    pattern_user *u = calloc(1, sizeof *u);
    if (u == NULL)
        pattern_die("no memory");
    u->p = p;
    pattern_draw_sizes(u);
    pthread_barrier_init(&u->barrier, NULL, p->threads);
    if (buffers && (u->buffers = tide_buffers_create(NULL, NULL)) == NULL)
        pattern_die(tide_error_message());
    return u;
}

void pattern_close(pattern_user *u)
{
    for (size_t t = 0; t < THREADS_MAX; t++)
        for (size_t i = 0; i < BLOCKS_MAX; i++)
            if (u->blocks[t][i].data != NULL)
                block_release(u, &u->blocks[t][i]);
    if (tide_buffers_destroy(u->buffers) != TIDE_OK)
        pattern_die(tide_error_message());
    pthread_barrier_destroy(&u->barrier);
    free(u);
}

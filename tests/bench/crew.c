/* SPDX-License-Identifier: MIT */
/* Threads that wait at a barrier for their next block, start it together, and are timed apart. */
#define _GNU_SOURCE
#include "crew.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

typedef struct worker {
    bench_crew *crew;
    pthread_t thread;
    void *state;
    double ns;
    bool good;
} worker;

struct bench_crew {
    const bench_case *job;
    const bench_variant *variant;
    uint64_t operations; /* of the next block; 0: end          */
    uint64_t total;      /* what verify is told                */
    atomic_uint arrived; /* threads that stand at the start    */
    uint32_t count;
    pthread_barrier_t begin, end;
    worker workers[];
};

enum { SPINS_BEFORE_YIELD = 1000 };

/* The barrier wakes threads one after another, tens of microseconds apart; this lets them go
 * within a cache miss of each other, if there is a core for each. */
static void line_up(bench_crew *crew)
{
    unsigned all = crew->count;
    unsigned target = (atomic_fetch_add(&crew->arrived, 1) / all + 1) * all;
    for (unsigned spins = 0; atomic_load(&crew->arrived) < target; spins++)
        if (spins > SPINS_BEFORE_YIELD)
            sched_yield();
}

static void timed_block(worker *w)
{
    bench_crew *crew = w->crew;
    line_up(crew);
    double start = bench_now();
    uint64_t done = crew->variant->run(w->state, crew->operations);
    w->ns = bench_now() - start;
    if (done != crew->operations)
        bench_die("%s: %llu operations instead of %llu", crew->variant->name,
                  (unsigned long long)done, (unsigned long long)crew->operations);
}

static void *work(void *argument)
{
    worker *w = argument;
    bench_crew *crew = w->crew;
    w->state = crew->variant->setup(crew->job);
    if (w->state != NULL)
        crew->variant->prove(w->state, crew->total);
    pthread_barrier_wait(&crew->end);
    for (;;) {
        pthread_barrier_wait(&crew->begin);
        if (crew->operations == 0)
            break;
        timed_block(w);
        pthread_barrier_wait(&crew->end);
    }
    if (w->state != NULL) {
        w->good = crew->variant->verify(w->state, crew->total);
        crew->variant->teardown(w->state);
    }
    return NULL;
}

static size_t crew_bytes(uint32_t count)
{
    return sizeof(bench_crew) + count * sizeof(worker);
}

bench_crew *bench_crew_start(const bench_case *job, const bench_variant *variant, uint64_t proof)
{
    assert(job->threads > 0);
    bench_crew *crew = bench_allocate(crew_bytes(job->threads));
    bool ready = true;
    crew->job = job;
    crew->variant = variant;
    crew->count = job->threads;
    crew->total = proof;
    pthread_barrier_init(&crew->begin, NULL, crew->count + 1);
    pthread_barrier_init(&crew->end, NULL, crew->count + 1);
    for (uint32_t i = 0; i < crew->count; i++) {
        crew->workers[i].crew = crew;
        if (pthread_create(&crew->workers[i].thread, NULL, work, &crew->workers[i]) != 0)
            bench_die("no thread %u of %u", i + 1, crew->count);
    }
    pthread_barrier_wait(&crew->end);
    for (uint32_t i = 0; i < crew->count; i++)
        ready = ready && crew->workers[i].state != NULL;
    if (ready)
        return crew;
    bench_crew_end(crew, 0);
    return NULL;
}

double bench_crew_run(bench_crew *crew, uint64_t operations)
{
    assert(operations > 0);
    double slowest = 0;
    crew->operations = operations;
    pthread_barrier_wait(&crew->begin);
    pthread_barrier_wait(&crew->end);
    for (uint32_t i = 0; i < crew->count; i++)
        if (crew->workers[i].ns > slowest)
            slowest = crew->workers[i].ns;
    return slowest;
}

bool bench_crew_end(bench_crew *crew, uint64_t operations)
{
    bool good = true;
    crew->operations = 0;
    crew->total = operations;
    pthread_barrier_wait(&crew->begin);
    for (uint32_t i = 0; i < crew->count; i++) {
        pthread_join(crew->workers[i].thread, NULL);
        good = good && crew->workers[i].good;
    }
    pthread_barrier_destroy(&crew->begin);
    pthread_barrier_destroy(&crew->end);
    bench_release(crew, crew_bytes(crew->count));
    return good;
}

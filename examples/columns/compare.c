/* SPDX-License-Identifier: MIT */
/* Comparing where temporaries come from.
 *
 * Each way runs in a process of its own, forked from this one, so that the memory it takes can
 * be told from the others'. The processes run in turn, one run at a time, so that what else
 * happens on the machine hits all of them; the best time of each counts. What the result takes
 * is the same for all and not counted. */
#include "compare.h"

#include "error.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 15 };

/* What a worker reports after each run. */
typedef struct sample {
    bool ok;
    columns_error error;
    double seconds;
    uint64_t allocations; /* of temporaries, since the worker began             */
    size_t bytes;         /* most that the temporaries took, as the source counts */
    long resident;        /* KiB by which the process grew at most, as the system counts */
} sample;

/* One source of temporaries, in its worker. */
typedef struct source {
    const char *name;
    columns_table *(*run)(columns_job *job, sample *s, columns_error *error);
} source;

/* ---- the three ways ---- */

static columns_table *run_heap(columns_job *job, sample *s, columns_error *error)
{
    (void)s;
    const columns_heap heap = {malloc, free};
    return columns_run_heap(job, &heap, error);
}

static columns_region region; /* of the worker that uses it */

static columns_table *run_static(columns_job *job, sample *s, columns_error *error)
{
    s->allocations = 1;
    s->bytes = region.bytes;
    return columns_run_static(job, &region, error);
}

static columns_table *run_tide(columns_job *job, sample *s, columns_error *error)
{
    static tide_pool *pool; /* a new one, whose figures start at zero */
    if (pool == NULL)
        pool = tide_pool_create(NULL);
    if (pool == NULL) {
        columns_fail(error, "%s", tide_error_message());
        return NULL;
    }
    columns_table *result = columns_run_tide(job, pool, error);
    tide_pool_statistics stats;
    tide_pool_stats(pool, &stats);
    s->allocations = stats.allocations;
    s->bytes = stats.bytes_peak;
    return result;
}

static const source sources[] = {
    {"malloc", run_heap},
    {"static", run_static},
    {"Tidepool", run_tide},
};
enum { SOURCES = sizeof sources / sizeof *sources, STATIC = 1 };

/* ---- workers ---- */

typedef struct worker {
    pid_t pid;
    int ask, answer; /* pipe ends of this process */
} worker;

static long resident(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A run for each byte that comes in, until the pipe is closed. */
static void work(const source *how, columns_job *job, int ask, int answer)
{
    char byte;
    malloc_trim(0); /* so that free memory of the parent's heap does not hide what is taken */
    long before = resident();
    while (read(ask, &byte, 1) == 1) {
        sample s = {.ok = false};
        double start = now();
        columns_table *result = how->run(job, &s, &s.error);
        s.seconds = now() - start;
        s.resident = resident() - before;
        s.ok = result != NULL;
        columns_table_destroy(result);
        if (write(answer, &s, sizeof s) != sizeof s)
            break;
    }
}

/* The child drops its copies of the others' pipe ends: each must see its own pipe close. */
static void become_worker(const worker *others, size_t index, columns_job *job, int ask,
                          int answer)
{
    for (size_t i = 0; i < index; i++) {
        close(others[i].ask);
        close(others[i].answer);
    }
    work(&sources[index], job, ask, answer);
    _exit(0);
}

static bool start(worker *workers, size_t index, columns_job *job, columns_error *error)
{
    worker *w = &workers[index];
    int ask[2], answer[2];
    if (pipe(ask) != 0 || pipe(answer) != 0)
        return columns_fail(error, "pipe: %s", strerror(errno));
    fflush(NULL);
    w->pid = fork();
    if (w->pid == 0) {
        close(ask[1]);
        close(answer[0]);
        become_worker(workers, index, job, ask[0], answer[1]);
    }
    close(ask[0]);
    close(answer[1]);
    w->ask = ask[1];
    w->answer = answer[0];
    return w->pid > 0 || columns_fail(error, "fork: %s", strerror(errno));
}

static void stop(worker *w)
{
    close(w->ask);
    close(w->answer);
    if (w->pid > 0) /* and not -1: fork failed */
        waitpid(w->pid, NULL, 0);
}

static bool one_run(const worker *w, sample *s, columns_error *error)
{
    if (write(w->ask, "r", 1) != 1 || read(w->answer, s, sizeof *s) != sizeof *s)
        return columns_fail(error, "a run of the comparison died");
    if (!s->ok)
        *error = s->error;
    return s->ok;
}

/* The first run of each warms up; of the others the best time counts. */
static bool rounds(worker *workers, sample *first, sample *best, columns_error *error)
{
    for (int round = 0; round <= ROUNDS; round++) {
        for (size_t i = 0; i < SOURCES; i++) {
            sample s;
            if (!one_run(&workers[i], &s, error))
                return false;
            if (round == 0)
                first[i] = s;
            else if (round == 1 || s.seconds < best[i].seconds)
                best[i].seconds = s.seconds;
            best[i].allocations = s.allocations;
            best[i].bytes = s.bytes;
            best[i].resident = s.resident;
            columns_step("comparing", (size_t)round * SOURCES + i, (ROUNDS + 1) * SOURCES);
        }
    }
    return true;
}

/* ---- the table ---- */

static void print_samples(FILE *out, const sample *first, const sample *last)
{
    fprintf(out, "%-12s  %8s  %9s  %20s  %22s\n", "temporaries", "time", "ratio", "allocations",
            "peak of temporaries");
    fprintf(out, "%-12s  %8s  %9s  %10s %9s  %11s %10s\n", "from", "of a run", "to static",
            "first run", "each later", "counted", "resident");
    for (size_t i = 0; i < SOURCES; i++) {
        uint64_t later = last[i].allocations - first[i].allocations;
        fprintf(out, "%-12s  %5.0f ms  %9.3f  %10llu %9llu  %7zu KiB %6ld KiB\n",
                sources[i].name, 1e3 * last[i].seconds, last[i].seconds / last[STATIC].seconds,
                (unsigned long long)first[i].allocations, (unsigned long long)later / ROUNDS,
                last[i].bytes >> 10, last[i].resident);
    }
}

bool compare(FILE *out, columns_job *job, columns_error *error)
{
    worker workers[SOURCES] = {{0}};
    sample first[SOURCES], last[SOURCES];
    columns_need need;
    if (!columns_count(job, &need, error))
        return false;
    region.bytes = need.bytes > 0 ? need.bytes : 64;
    region.memory = aligned_alloc(64, region.bytes);
    if (region.memory == NULL)
        return columns_no_memory(error);
    bool ok = true;
    for (size_t i = 0; ok && i < SOURCES; i++)
        ok = start(workers, i, job, error);
    ok = ok && rounds(workers, first, last, error);
    for (size_t i = 0; i < SOURCES; i++)
        if (workers[i].pid != 0)
            stop(&workers[i]);
    free(region.memory);
    if (!ok)
        return false;
    first[0].allocations = need.allocations; /* malloc's were counted beforehand */
    last[0].allocations = need.allocations * (ROUNDS + 1);
    last[0].bytes = need.bytes;
    print_samples(out, first, last);
    return true;
}

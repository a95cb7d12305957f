/* SPDX-License-Identifier: MIT */
/* Comparing where temporaries come from.
 *
 * Times are taken in this process, the ways in turn, so that what else happens on the machine
 * hits all of them; the best of each counts. Memory is taken in a process of its own for each
 * way, forked before anything ran here, so that one cannot hide behind what another left. What
 * the result takes is the same for all, and counted only in what the system says. */
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

enum { ROUNDS = 40 };

/* What is needed to run a job each way. */
typedef struct means {
    columns_job *job;
    columns_region region;
    tide_pool *pool; /* a new one, whose figures start at zero */
} means;

/* What the temporaries took so far. */
typedef struct taken {
    uint64_t allocations;
    size_t bytes; /* at most at a time */
} taken;

typedef struct way {
    const char *name;
    columns_table *(*run)(means *m, columns_error *error);
    bool (*count)(means *m, taken *t, columns_error *error);
} way;

/* What is known of a way in the end. */
typedef struct figures {
    double seconds;
    taken first, second; /* after one run, after two */
    long resident;       /* KiB that the process grew by in these, as the system saw it */
} figures;

/* ---- the three ways ---- */

static columns_table *run_heap(means *m, columns_error *error)
{
    const columns_heap heap = {malloc, free};
    return columns_run_heap(m->job, &heap, error);
}

/* Each run of the same job takes the same. */
static bool count_heap(means *m, taken *t, columns_error *error)
{
    columns_need need;
    if (!columns_count(m->job, &need, error))
        return false;
    t->allocations += need.allocations;
    t->bytes = need.bytes;
    return true;
}

static columns_table *run_static(means *m, columns_error *error)
{
    return columns_run_static(m->job, &m->region, error);
}

static bool count_static(means *m, taken *t, columns_error *error)
{
    (void)error;
    *t = (taken){.allocations = 1, .bytes = m->region.bytes};
    return true;
}

static columns_table *run_tide(means *m, columns_error *error)
{
    return columns_run_tide(m->job, m->pool, error);
}

static bool count_tide(means *m, taken *t, columns_error *error)
{
    tide_pool_statistics stats;
    if (tide_pool_stats(m->pool, &stats) != TIDE_OK)
        return columns_exhaust(error, "no figures of the pool", tide_error_message());
    *t = (taken){.allocations = stats.allocations, .bytes = stats.bytes_peak};
    return true;
}

static const way ways[] = {
    {"malloc", run_heap, count_heap},
    {"static", run_static, count_static},
    {"Tidepool", run_tide, count_tide},
};
enum { WAYS = sizeof ways / sizeof *ways, STATIC = 1 };

static bool run_once(const way *w, means *m, columns_error *error)
{
    columns_table *result = w->run(m, error);
    columns_table_destroy(result);
    return result != NULL;
}

/* ---- memory ---- */

static long resident(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* Two runs. The system is asked before what we count ourselves disturbs anything. */
static bool take(const way *w, means *m, figures *f, columns_error *error)
{
    malloc_trim(0); /* free memory of the parent's heap would hide what is taken */
    long before = resident();
    if (!run_once(w, m, error))
        return false;
    f->resident = resident() - before;
    return w->count(m, &f->first, error) && run_once(w, m, error) &&
           (f->second = f->first, w->count(m, &f->second, error));
}

/* What a child says. */
typedef struct report {
    bool ok, exhausted;
    figures figures;
    columns_error error;
} report;

static void be_child(const way *w, means *m, int answer)
{
    report r = {.ok = false};
    columns_watch(NULL); /* the parent shows the progress */
    r.ok = take(w, m, &r.figures, &r.error);
    r.exhausted = columns_exhausted();
    _exit(write(answer, &r, sizeof r) == sizeof r ? 0 : 1);
}

static bool take_in_child(const way *w, means *m, figures *f, columns_error *error)
{
    int ends[2];
    report r;
    if (pipe(ends) != 0)
        return columns_exhaust(error, "a run of the comparison", strerror(errno));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        be_child(w, m, ends[1]);
    close(ends[1]);
    bool heard = child > 0 && read(ends[0], &r, sizeof r) == sizeof r;
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    if (!heard)
        return columns_exhaust(error, "a run of the comparison",
                               child < 0 ? "no new process" : "it died");
    *f = r.figures;
    return r.ok || (r.exhausted ? columns_exhaust(error, "a run of the comparison", r.error.text)
                                : columns_fail(error, "%s", r.error.text));
}

/* ---- time ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool time_ways(means *m, figures *all, columns_error *error)
{
    for (size_t i = 0; i < WAYS; i++) /* to warm up */
        if (!run_once(&ways[i], m, error))
            return false;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < WAYS; i++) {
            double start = now();
            if (!run_once(&ways[i], m, error))
                return false;
            double seconds = now() - start;
            if (round == 0 || seconds < all[i].seconds)
                all[i].seconds = seconds;
        }
        columns_step("comparing", (size_t)round, ROUNDS);
    }
    return true;
}

/* ---- the table ---- */

static void print_figures(FILE *out, const figures *all)
{
    fprintf(out, "%-12s  %8s  %9s  %21s  %22s\n", "temporaries", "time", "ratio", "allocations",
            "peak memory");
    fprintf(out, "%-12s  %8s  %9s  %10s %10s  %11s %10s\n", "from", "of a run", "to static",
            "first run", "later runs", "of these", "process");
    for (size_t i = 0; i < WAYS; i++) {
        const figures *f = &all[i];
        fprintf(out, "%-12s  %5.1f ms  %9.3f  %10llu %10llu  %7zu KiB %6ld KiB\n", ways[i].name,
                1e3 * f->seconds, f->seconds / all[STATIC].seconds,
                (unsigned long long)f->first.allocations,
                (unsigned long long)(f->second.allocations - f->first.allocations),
                f->second.bytes >> 10, f->resident);
    }
}

static bool compare_with(FILE *out, means *m, columns_error *error)
{
    figures all[WAYS] = {{0}};
    for (size_t i = 0; i < WAYS; i++)
        if (!take_in_child(&ways[i], m, &all[i], error))
            return false;
    if (!time_ways(m, all, error))
        return false;
    print_figures(out, all);
    return true;
}

bool compare(FILE *out, columns_job *job, columns_error *error)
{
    size_t need = columns_region_need(job, error);
    if (need == 0)
        return false;
    means m = {.job = job, .region = {aligned_alloc(64, need), need}};
    m.pool = tide_pool_create(NULL);
    bool ok = m.region.memory != NULL && m.pool != NULL ? compare_with(out, &m, error)
                                                        : columns_no_memory(error);
    free(m.region.memory);
    tide_pool_destroy(m.pool);
    return ok;
}

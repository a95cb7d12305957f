/* SPDX-License-Identifier: MIT */
/* Rounds: in each, one short block of every pair, in shuffled order, so that whatever the machine
 * is busy with meanwhile falls on all alike. The figure is per operation: least and median. */
#define _GNU_SOURCE
#include "bench.h"
#include "compiled.h"

#include <assert.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct pair {
    bench_result *result;
    const bench_case *job;
    const bench_variant *variant;
    void *state;
    uint64_t block; /* operations           */
    uint64_t total; /* done since the proof */
    double *ns;     /* by round             */
} pair;

bool bench_selected(const bench_options *options, const bench_case *job,
                    const bench_variant *variant)
{
    return fnmatch(options->case_glob, job->name, 0) == 0 &&
           fnmatch(options->variant_glob, variant->name, 0) == 0;
}

/* --- one pair --------------------------------------------------------------------------- */

enum { PROOF_PASSES = 4 }; /* slots may change places on the way to their sizes */

static bool open_pair(pair *p)
{
    uint64_t proof = PROOF_PASSES * p->job->step;
    p->state = p->variant->setup(p->job);
    if (p->state == NULL)
        return false;
    p->variant->prove(p->state, proof);
    return true;
}

/* Nanoseconds of `operations` operations. */
static double block(pair *p, uint64_t operations)
{
    p->total += operations;
    double start = bench_now();
    uint64_t done = p->variant->run(p->state, operations);
    double ns = bench_now() - start;
    if (done != operations)
        bench_die("%s %s: %llu operations instead of %llu", p->job->name, p->variant->name,
                  (unsigned long long)done, (unsigned long long)operations);
    return ns;
}

/* Long enough that the clock's own cost (some 30 ns) does not show. */
static void calibrate(pair *p, double wanted_ns)
{
    p->block = p->job->step;
    while (block(p, p->block) < wanted_ns && p->block < (UINT64_C(1) << 40))
        p->block *= 2;
}

/* A part of the block before it is timed: the caches hold another variant's data. */
static double warm_block(pair *p)
{
    uint64_t warm = p->block / p->job->step / 8 * p->job->step;
    if (warm > 0)
        block(p, warm);
    return block(p, p->block) / (double)p->block;
}

static bool close_pair(pair *p)
{
    bench_result *result = p->result;
    bool good = p->variant->verify(p->state, p->total);
    if (p->variant->figures != NULL)
        result->figure_count =
            p->variant->figures(p->state, p->total, result->figures,
                                sizeof result->figures / sizeof result->figures[0]);
    p->variant->teardown(p->state);
    return good;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summarise(pair *p, uint32_t rounds)
{
    bench_result *result = p->result;
    qsort(p->ns, rounds, sizeof *p->ns, ascending);
    result->ran = true;
    result->ns_min = p->ns[0];
    result->ns_median = (p->ns[(rounds - 1) / 2] + p->ns[rounds / 2]) / 2;
    result->operations = p->block * rounds;
    result->rounds = rounds;
}

/* --- all pairs of a group --------------------------------------------------------------- */

static void run_rounds(pair *pairs, size_t count, uint32_t rounds)
{
    size_t *order = bench_allocate(count * sizeof *order);
    uint64_t random = 88172645463325252;
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    for (uint32_t round = 0; round < rounds; round++) {
        for (size_t i = count; i > 1; i--) {
            size_t j = (size_t)(bench_random(&random) % i);
            size_t swapped = order[i - 1];
            order[i - 1] = order[j];
            order[j] = swapped;
        }
        for (size_t i = 0; i < count; i++)
            pairs[order[i]].ns[round] = warm_block(&pairs[order[i]]);
    }
    bench_release(order, count * sizeof *order);
}

static bool measure(bench_result *results, size_t count, const bench_options *options)
{
    size_t ready = 0;
    bool good = true;
    size_t round_bytes = options->rounds * sizeof(double);
    pair *pairs = bench_allocate((count + 1) * sizeof *pairs);
    assert(options->rounds > 0);
    for (size_t i = 0; i < count; i++) {
        pair *p = &pairs[ready];
        if (results[i].variant->missing != NULL)
            continue;
        *p = (pair){.result = &results[i], .job = results[i].job, .variant = results[i].variant};
        if (open_pair(p)) {
            p->ns = bench_allocate(round_bytes);
            ready++;
        } else {
            bench_complain("%s %s could not be set up", p->job->name, p->variant->name);
            good = false;
        }
    }
    for (size_t i = 0; i < ready; i++)
        calibrate(&pairs[i], options->block_ns);
    if (ready > 0)
        run_rounds(pairs, ready, options->rounds);
    for (size_t i = 0; i < ready; i++) {
        if (!close_pair(&pairs[i])) {
            bench_complain("%s %s was not what its name says", pairs[i].job->name,
                           pairs[i].variant->name);
            good = false;
        }
        summarise(&pairs[i], options->rounds);
        bench_release(pairs[i].ns, round_bytes);
    }
    bench_release(pairs, (count + 1) * sizeof *pairs);
    return good;
}

bool bench_measure(bench_result *results, size_t count, const bench_options *options)
{
    int status = 0;
#if BENCH_SANITIZED
    bench_learning_prepare();
    return measure(results, count, options);
#endif
    fflush(NULL); /* this process must not have used the library: its children would not learn */
    pid_t child = fork();
    if (child < 0)
        bench_die("cannot fork");
    if (child == 0) {
        bench_learning_prepare();
        bool good = measure(results, count, options);
        exit(good ? 0 : 1); /* not _exit: the library removes its code objects */
    }
    while (waitpid(child, &status, 0) < 0)
        continue;
    if (WIFSIGNALED(status))
        bench_complain("group %s ended by signal %d", results[0].job->group, WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* SPDX-License-Identifier: MIT */
/* The benchmark's side of patterns/main.c: a child for each pair, with the malloc of its variant
 * preloaded. It is told how many operations to do, and answers with its processor time and the most
 * memory it held. */
#define _GNU_SOURCE
#include "patterns.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "patterns/patterns.h"

/* A step is as much as the pattern does at least. */
const bench_pattern bench_patterns[] = {
    {"buffers-mixed", "64 B to 1 MiB replaced at random, 64 held by each of 8 threads", 8 * 64},
    {"buffers-larson", "4 to 256 KiB, 2 threads that hand their 64 on", 2 * 8 * 64},
    {"buffers-touched", "4 KiB to 4 MiB replaced at random, 64 held, all pages written", 64},
    {"buffers-training", "48 sizes from 64 KiB to 64 MiB, released in reverse, all pages", 48},
    {"buffers-training-small", "48 sizes from 64 B to 64 KiB, released in reverse", 48},
    {"buffers-live-1000", "1000 of 4 KiB acquired, then all released", 1000},
    {"buffers-live-24", "24 of 64 KiB acquired, then all released", 24},
    {"buffers-larson-small", "64 B to 1 KiB, 2 threads that hand their 1000 on", 2 * 8 * 1000},
    {"buffers-pipe", "64 B to 64 KiB, one thread acquires, another releases", 64},
    {"buffers-pipe-small", "16 to 128 B, one thread acquires, another releases", 64},
    {"buffers-pairs", "4 to 16 KiB acquired and released by one thread", 64},
    {NULL, NULL, 0},
};

typedef struct patterns_state {
    pid_t child;
    int to, from;
    bool good;
    double cpu_ns, peak_mib;
} patterns_state;

/* ---- the child ------------------------------------------------------------------------------- */

static void patterns_exec(const bench_case *job, const char *how, const char *preload, int in,
                          int out)
{
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    unsetenv("TCMALLOC_SKIP_SBRK"); /* which only peers in this process need */
    if (preload != NULL)
        setenv("LD_PRELOAD", preload, 1);
    execl(BENCH_PATTERNS, "tidepool-patterns", job->name + strlen("buffers-"), how, (char *)NULL);
    _exit(127);
}

static void *patterns_setup(const bench_case *job, const char *how, const char *preload)
{
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
        bench_die("no pipe");
    patterns_state *s = bench_state_make(sizeof *s);
    s->child = fork();
    if (s->child < 0)
        bench_die("cannot fork");
    if (s->child == 0)
        patterns_exec(job, how, preload, to[0], from[1]);
    close(to[0]);
    close(from[1]);
    s->to = to[1];
    s->from = from[0];
    s->good = true;
    return s;
}

static uint64_t patterns_run(void *state, uint64_t operations)
{
    patterns_state *s = state;
    pattern_reply reply = {0};
    if (write(s->to, &operations, sizeof operations) != sizeof operations ||
        read(s->from, &reply, sizeof reply) != sizeof reply)
        bench_die("the child does not answer");
    if (s->cpu_ns == 0 || reply.cpu_ns < s->cpu_ns)
        s->cpu_ns = reply.cpu_ns;
    s->peak_mib = reply.peak_mib;
    return reply.done;
}

static void patterns_prove(void *state, uint64_t operations)
{
    if (patterns_run(state, operations) < operations)
        bench_die("the child did less than it was told");
}

static bool patterns_verify(void *state, uint64_t operations)
{
    const patterns_state *s = state;
    return operations > 0 && s->cpu_ns > 0 && s->peak_mib > 0;
}

static size_t patterns_figures(void *state, uint64_t operations, bench_figure *out, size_t room)
{
    const patterns_state *s = state;
    (void)operations;
    if (room < 2)
        return 0;
    out[0] = (bench_figure){"cpu_ns", s->cpu_ns};
    out[1] = (bench_figure){"peak_mib", s->peak_mib};
    return 2;
}

static void patterns_teardown(void *state)
{
    patterns_state *s = state;
    int status = 0;
    close(s->to);
    while (waitpid(s->child, &status, 0) < 0)
        continue;
    close(s->from);
    if (status != 0)
        bench_die("the child ended with %d", status);
    bench_state_free(s, sizeof *s);
}

/* ---- the variants ---------------------------------------------------------------------------- */

#if BENCH_SANITIZED
#define PRELOAD_MISSING(path, package) "a sanitizer watches malloc in this build"
#else
#define PRELOAD_MISSING(path, package) (sizeof(path) > 1 ? NULL : "built without " package)
#endif

#define PATTERNS_VARIANT(id, how, preload, missing)                       \
    static void *id##_setup(const bench_case *job)                        \
    {                                                                     \
        return patterns_setup(job, how, preload);                         \
    }                                                                     \
    static const bench_variant id = {                                     \
        #id,          missing,         id##_setup,        patterns_prove, \
        patterns_run, patterns_verify, patterns_teardown, patterns_figures};

PATTERNS_VARIANT(buffers, "buffers", NULL, NULL)
PATTERNS_VARIANT(glibc, "malloc", NULL, NULL)
PATTERNS_VARIANT(tcmalloc, "malloc", BENCH_PRELOAD_TCMALLOC,
                 PRELOAD_MISSING(BENCH_PRELOAD_TCMALLOC, "libtcmalloc-minimal4"))
PATTERNS_VARIANT(mimalloc, "malloc", BENCH_PRELOAD_MIMALLOC,
                 PRELOAD_MISSING(BENCH_PRELOAD_MIMALLOC, "libmimalloc2.0"))
PATTERNS_VARIANT(jemalloc, "malloc", BENCH_PRELOAD_JEMALLOC,
                 PRELOAD_MISSING(BENCH_PRELOAD_JEMALLOC, "libjemalloc2"))

const bench_variant *const bench_patterns_variants[] = {&buffers,  &glibc,    &tcmalloc,
                                                        &mimalloc, &jemalloc, NULL};

/* SPDX-License-Identifier: MIT */
/* Instructions per operation: a figure that does not depend on what else the machine does.
 *
 * Callgrind counts exactly, whatever the processor. Each pair runs one step and then two steps
 * of operations, each counted on its own; the difference is the cost of one step, free of what
 * the call and the counting cost. The processor's own counter serves where Valgrind is missing. */
#define _GNU_SOURCE
#include "bench.h"

#include <assert.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if BENCH_HAVE_CALLGRIND_H
#include <valgrind/callgrind.h>
#endif

enum { PROOF_PASSES = 4, MOST_ARGUMENTS = 32, PATH_ROOM = 256 };

typedef struct counter {
    void (*start)(struct counter *c);
    void (*stop)(struct counter *c, size_t pair, int steps);
    int descriptor;
    uint64_t count;
} counter;

static bool countable(const bench_result *result)
{
    const bench_case *job = result->job;
    return result->variant->missing == NULL && job->before == NULL && !job->uncounted;
}

/* Runs one and two steps of a pair under the counter; difference[0..1] get what it says. */
static bool count_pair(const bench_result *result, size_t index, counter *c, uint64_t counts[2])
{
    const bench_variant *variant = result->variant;
    uint64_t step = result->job->step;
    void *state = variant->setup(result->job);
    if (state == NULL)
        return false;
    variant->prove(state, PROOF_PASSES * step);
    uint64_t total = variant->run(state, step);
    for (int steps = 1; steps <= 2; steps++) {
        c->start(c);
        total += variant->run(state, (uint64_t)steps * step);
        c->stop(c, index, steps);
        counts[steps - 1] = c->count;
    }
    bool good = total == 4 * step && variant->verify(state, total);
    variant->teardown(state);
    return good;
}

static void set_instructions(bench_result *result, const uint64_t counts[2])
{
    assert(counts[1] > counts[0]);
    result->counted = true;
    result->instructions = (double)(counts[1] - counts[0]) / (double)result->job->step;
}

/* --- under Valgrind --------------------------------------------------------------------- */

#if BENCH_HAVE_CALLGRIND_H

static void callgrind_start(counter *c)
{
    (void)c;
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
}

/* Each dump becomes a file of its own, in order; the text is written into it. */
static void callgrind_stop(counter *c, size_t pair, int steps)
{
    char text[64];
    (void)c;
    snprintf(text, sizeof text, "pair %zu steps %d", pair, steps);
    CALLGRIND_DUMP_STATS_AT(text);
    CALLGRIND_STOP_INSTRUMENTATION;
}

bool bench_count_under_valgrind(bench_result *results, size_t count)
{
    counter c = {callgrind_start, callgrind_stop, -1, 0};
    uint64_t unused[2];
    bool good = true;
    for (size_t i = 0; i < count; i++)
        if (countable(&results[i]))
            good = count_pair(&results[i], i, &c, unused) && good;
    return good;
}

/* One dump: which pair, how many steps, how many instructions. */
static bool read_dump(const char *path, size_t *pair, int *steps, uint64_t *instructions)
{
    char line[512];
    unsigned long long total = 0;
    bool named = false, summed = false;
    FILE *in = fopen(path, "r");
    if (in == NULL)
        return false;
    while (fgets(line, sizeof line, in) != NULL) {
        if (sscanf(line, "desc: Trigger: Client Request: pair %zu steps %d", pair, steps) == 2)
            named = true;
        else if (sscanf(line, "summary: %llu", &total) == 1)
            summed = true;
    }
    fclose(in);
    *instructions = total;
    return named && summed;
}

/* Reads out.1, out.2, … and removes them. */
static bool read_dumps(const char *folder, bench_result *results, size_t count)
{
    char path[PATH_ROOM];
    uint64_t counts[2] = {0, 0};
    size_t seen = 0, wanted = 0;
    for (size_t i = 0; i < count; i++)
        wanted += countable(&results[i]);
    for (size_t dump = 1; dump <= 2 * wanted; dump++) {
        size_t pair = 0;
        int steps = 0;
        uint64_t instructions = 0;
        snprintf(path, sizeof path, "%s/out.%zu", folder, dump);
        if (read_dump(path, &pair, &steps, &instructions) && pair < count &&
            (steps == 1 || steps == 2)) {
            counts[steps - 1] = instructions;
            if (steps == 2) {
                set_instructions(&results[pair], counts);
                seen++;
            }
        }
        unlink(path);
    }
    return seen == wanted;
}

/* True when the program ran under Valgrind and ended well. */
static bool run_valgrind(const char *folder, char **arguments)
{
    char self[4096] = "", out[PATH_ROOM];
    const char *command[MOST_ARGUMENTS] = {"valgrind",           "-q", "--tool=callgrind",
                                           "--instr-atstart=no", out,  self};
    size_t length = 6;
    int status = 0;
    pid_t child;
    snprintf(out, sizeof out, "--callgrind-out-file=%s/out", folder);
    if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0)
        return false;
    for (char **argument = arguments + 1; *argument != NULL && length < MOST_ARGUMENTS - 2;
         argument++)
        command[length++] = *argument;
    command[length++] = "--" BENCH_COUNTING;
    if (posix_spawnp(&child, command[0], NULL, NULL, (char *const *)(uintptr_t)command, environ) !=
        0)
        return false;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool count_with_valgrind(bench_result *results, size_t count, char **arguments)
{
    char folder[] = "/tmp/tidepool-bench-XXXXXX";
    char rest[PATH_ROOM];
    if (mkdtemp(folder) == NULL)
        return false;
    bool ran = run_valgrind(folder, arguments);
    bool good = read_dumps(folder, results, count) && ran;
    snprintf(rest, sizeof rest, "%s/out", folder);
    unlink(rest);
    rmdir(folder);
    return good;
}

#else

bool bench_count_under_valgrind(bench_result *results, size_t count)
{
    (void)results;
    (void)count;
    bench_complain("built without Valgrind's headers");
    return false;
}

static bool count_with_valgrind(bench_result *results, size_t count, char **arguments)
{
    (void)results;
    (void)count;
    (void)arguments;
    return false;
}

#endif

/* --- the processor's counter ------------------------------------------------------------ */

static uint64_t read_counter(const counter *c)
{
    uint64_t value = 0;
    return read(c->descriptor, &value, sizeof value) == sizeof value ? value : 0;
}

static void perf_start(counter *c)
{
    c->count = read_counter(c);
}

static void perf_stop(counter *c, size_t pair, int steps)
{
    (void)pair;
    (void)steps;
    c->count = read_counter(c) - c->count;
}

static bool count_with_perf(bench_result *results, size_t count)
{
    struct perf_event_attr attributes = {.type = PERF_TYPE_HARDWARE,
                                         .size = sizeof attributes,
                                         .config = PERF_COUNT_HW_INSTRUCTIONS,
                                         .exclude_kernel = 1,
                                         .exclude_hv = 1};
    counter c = {perf_start, perf_stop, -1, 0};
    uint64_t counts[2];
    bool good = true;
    c.descriptor = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0);
    if (c.descriptor < 0)
        return false;
    for (size_t i = 0; i < count && good; i++) {
        if (!countable(&results[i]))
            continue;
        good = count_pair(&results[i], i, &c, counts) && counts[1] > counts[0];
        if (good)
            set_instructions(&results[i], counts);
    }
    close(c.descriptor);
    return good;
}

bool bench_count(bench_result *results, size_t count, char **arguments)
{
    if (count_with_valgrind(results, count, arguments) || count_with_perf(results, count))
        return true;
    bench_complain(
        "instructions: Valgrind did not run, and the processor's counter does not count");
    return false;
}

/* SPDX-License-Identifier: MIT */
/* tidepool-patterns: one pattern of acquires and releases, by malloc or by buffers, in a process of
 * its own. So another malloc can be preloaded, and the peak of the memory is the pattern's alone.
 *
 *   tidepool-patterns PATTERN malloc|buffers [N [TIMES]]
 *
 * With N: does N acquires and their releases TIMES over, and prints the least processor time of
 * one, in nanoseconds, and the most memory that the process held, in MiB. Without: serves the
 * benchmark (patterns.c). It reads a number N (8 bytes) and answers with a pattern_reply, until the
 * input ends. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "patterns.h"

static double processor_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double peak_memory(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static pattern_reply run_once(const pattern *p, pattern_user *user, uint64_t operations)
{
    pattern_reply reply = {0};
    double start = processor_time();
    reply.done = p->run(p, user, operations);
    reply.cpu_ns = (processor_time() - start) / (double)(reply.done != 0 ? reply.done : 1);
    reply.peak_mib = peak_memory();
    return reply;
}

static int serve_bench(const pattern *p, pattern_user *user)
{
    uint64_t operations = 0;
    while (read(STDIN_FILENO, &operations, sizeof operations) == sizeof operations) {
        pattern_reply reply = run_once(p, user, operations);
        if (write(STDOUT_FILENO, &reply, sizeof reply) != sizeof reply)
            return 1;
    }
    return 0;
}

static int print_best(const pattern *p, pattern_user *user, uint64_t operations, unsigned times)
{
    pattern_reply best = {0};
    for (unsigned i = 0; i < times; i++) {
        pattern_reply reply = run_once(p, user, operations);
        if (i == 0 || reply.cpu_ns < best.cpu_ns)
            best.cpu_ns = reply.cpu_ns;
        best.peak_mib = reply.peak_mib;
    }
    printf("%s %.1f ns %.0f MiB\n", p->name, best.cpu_ns, best.peak_mib);
    return 0;
}

int main(int count, char **arguments)
{
    const pattern *p = count >= 3 ? pattern_find(arguments[1]) : NULL;
    if (p == NULL ||
        (strcmp(arguments[2], "malloc") != 0 && strcmp(arguments[2], "buffers") != 0)) {
        fputs("tidepool-patterns PATTERN malloc|buffers [N [TIMES]]\n", stderr);
        return 2;
    }
    pattern_user *user = pattern_open(p, strcmp(arguments[2], "buffers") == 0);
    int status = count == 3 ? serve_bench(p, user)
                            : print_best(p, user, strtoull(arguments[3], NULL, 10),
                                         count > 4 ? (unsigned)atoi(arguments[4]) : 3);
    pattern_close(user);
    return status;
}

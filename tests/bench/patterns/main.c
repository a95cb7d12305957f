/* SPDX-License-Identifier: MIT */
/* tidepool-patterns: one pattern of acquires and releases, by malloc or by buffers, in a process of
 * its own. So another malloc can be preloaded, and the peak of the memory is the pattern's alone.
 *
 *   tidepool-patterns PATTERN malloc|buffers N [TIMES]
 *
 * does N acquires and their releases TIMES over (3), and prints the least processor time of one, in
 * nanoseconds, and the most memory that the process held, in MiB. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

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

static void print_best(const pattern *p, pattern_user *user, uint64_t operations, unsigned times)
{
    double best = 0;
    for (unsigned i = 0; i < times; i++) {
        double start = processor_time();
        uint64_t done = p->run(p, user, operations);
        double ns = (processor_time() - start) / (double)(done != 0 ? done : 1);
        if (i == 0 || ns < best)
            best = ns;
    }
    printf("%s %.1f ns %.0f MiB\n", p->name, best, peak_memory());
}

int main(int count, char **arguments)
{
    const pattern *p = count >= 4 ? pattern_find(arguments[1]) : NULL;
    if (p == NULL ||
        (strcmp(arguments[2], "malloc") != 0 && strcmp(arguments[2], "buffers") != 0)) {
        fputs("tidepool-patterns PATTERN malloc|buffers N [TIMES]\n", stderr);
        return 2;
    }
    pattern_user *user = pattern_open(p, strcmp(arguments[2], "buffers") == 0);
    print_best(p, user, strtoull(arguments[3], NULL, 10),
               count > 4 ? (unsigned)atoi(arguments[4]) : 3);
    pattern_close(user);
    return 0;
}

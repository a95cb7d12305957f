/* SPDX-License-Identifier: MIT */
/* Each scope is timed by two looks at the clock, the same in both kinds of process. What the system
 * takes in between (a tick, another process) is in both as well: compare medians of many. */
#define _GNU_SOURCE
#include "slowest.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tidepool/callsite.h>
#include <tidepool/learn.h>
#include <tidepool/tune.h>

#include "programs.h"

enum { SCOPES = 10000000, PAIRS_MAX = 999 };

static const char *const words[] = {"without", "with"};

/* ---- the process -------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void scope(tide_pool *pool)
{
    TIDE_SCOPE_NAMED(pool, "slowest");
    PAYS_TAKE(pool, double, 100);
    PAYS_TAKE(pool, int32_t, 100);
}

/* The first scope makes the memory, with learning and without: it does not count. */
int pays_slowest_run(bool learning)
{
    uint64_t slowest = 0;
    if (!learning && tide_tune_set("learn", 0) != TIDE_OK)
        return 1;
    tide_pool *pool = tide_pool_create(NULL);
    if (pool == NULL)
        return 1;
    scope(pool);
    for (int i = 0; i < SCOPES; i++) {
        uint64_t begin = now_ns();
        scope(pool);
        uint64_t took = now_ns() - begin;
        slowest = took > slowest ? took : slowest;
    }
    printf("%llu\n", (unsigned long long)slowest);
    return tide_pool_destroy(pool) != TIDE_OK;
}

/* ---- the comparison ------------------------------------------------------------------------ */

/* Nanoseconds; negative: the process failed. */
static double slowest_of_process(const char *self, bool learning)
{
    int ends[2], status;
    char text[32] = "";
    if (pipe(ends) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        execl(self, self, "--run-slowest", words[learning], (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0 || got <= 0)
        return -1;
    return strtod(text, NULL);
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

bool pays_slowest_compare(int pairs, const char *self)
{
    static double ns[2][PAIRS_MAX];
    if (pairs < 1 || pairs > PAIRS_MAX)
        return false;
    for (int i = 0; i < 2 * pairs; i++) {
        bool learning = (i / 2 + i) % 2 != 0; /* who is first takes turns */
        if ((ns[learning][i / 2] = slowest_of_process(self, learning)) < 0)
            return false;
    }
    printf("%-8s %12s %12s %12s\n", "learning", "least us", "median us", "most us");
    for (int learning = 0; learning < 2; learning++) {
        double *figures = ns[learning];
        qsort(figures, (size_t)pairs, sizeof *figures, compare);
        printf("%-8s %12.1f %12.1f %12.1f\n", words[learning], figures[0] / 1e3,
               figures[pairs / 2] / 1e3, figures[pairs - 1] / 1e3);
    }
    printf("with / without: least %.2f, median %.2f\n", ns[1][0] / ns[0][0],
           ns[1][pairs / 2] / ns[0][pairs / 2]);
    return true;
}

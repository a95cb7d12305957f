/* SPDX-License-Identifier: MIT */
/* Each scope is timed by two looks at the clock, the same in both kinds of process. What the system
 * takes in between (a tick, another process) is in both as well: compare medians of many. */
#define _GNU_SOURCE
#include "slowest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tidepool/learn.h>
#include <tidepool/scope.h>
#include <tidepool/tune.h>

#include "programs.h"

enum { ROUNDS_MAX = 999 };

/* Without learning, with it, and with the background thread made beforehand. */
enum { WITHOUT, WITH, READY, WAYS };
static const char *const words[] = {"without", "with", "ready"};

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
int pays_slowest_run(const char *how, const char *scopes)
{
    uint64_t slowest = 0;
    if (tide_tune_set("learn", strcmp(how, words[WITHOUT]) != 0) != TIDE_OK ||
        (strcmp(how, words[READY]) == 0 && tide_background_start() != TIDE_OK))
        return 1;
    tide_pool *pool = tide_pool_create(NULL);
    if (pool == NULL)
        return 1;
    scope(pool);
    for (long left = strtol(scopes, NULL, 10); left > 0; left--) {
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
static double slowest_of_process(const char *self, const char *how, const char *scopes)
{
    int ends[2], status;
    char text[32] = "";
    if (pipe(ends) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        execl(self, self, "--run-slowest", how, scopes, (char *)NULL);
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

bool pays_slowest_compare(int rounds, const char *scopes, const char *self)
{
    static double ns[WAYS][ROUNDS_MAX];
    if (rounds < 1 || rounds > ROUNDS_MAX)
        return false;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < WAYS; i++) {
            int how = (i + round) % WAYS; /* who is first takes turns */
            if ((ns[how][round] = slowest_of_process(self, words[how], scopes)) < 0)
                return false;
        }
    printf("%-8s %10s %10s %10s  to the median without\n", "learning", "least us", "median us",
           "most us");
    for (int how = 0; how < WAYS; how++)
        qsort(ns[how], (size_t)rounds, sizeof *ns[how], compare);
    for (int how = 0; how < WAYS; how++)
        printf("%-8s %10.1f %10.1f %10.1f  %.2f\n", words[how], ns[how][0] / 1e3,
               ns[how][rounds / 2] / 1e3, ns[how][rounds - 1] / 1e3,
               ns[how][rounds / 2] / ns[WITHOUT][rounds / 2]);
    return true;
}

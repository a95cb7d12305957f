/* SPDX-License-Identifier: MIT */
/* steps FILE: a worker that does the same some thousand times a second. What each step took is written
 * to FILE: nanoseconds, of 32 bits. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tidepool/scope.h>
#include <tidepool/tidepool.h>
#include <tidepool/tunable.h>

TIDE_MEASURED(steps_measured, "round");

static volatile sig_atomic_t steps_ended;

static void steps_end(int number)
{
    (void)number;
    steps_ended = 1;
}

static int64_t steps_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void steps_work(tide_pool *pool)
{
    enum { N = 4096, TIMES = 20 };
    TIDE_SCOPE_NAMED(pool, "step");
    volatile double *x = tide_acquire(pool, double, N);
    if (x == NULL)
        abort();
    for (int k = 0; k < TIMES; k++)
        for (int i = 0; i < N; i++)
            x[i] = k + i * 0.5;
}

int main(int count, char **args)
{
    FILE *out = count > 1 ? fopen(args[1], "wb") : NULL;
    if (out == NULL)
        return 2;
    (void)signal(SIGTERM, steps_end);
    while (!steps_ended) {
        int64_t begun = steps_now();
        {
            TIDE_MEASURE(&steps_measured, 0, unused);
            steps_work(tide_pool_local());
        }
        uint32_t took = (uint32_t)(steps_now() - begun);
        (void)fwrite(&took, sizeof took, 1, out);
        (void)nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    return fclose(out) == 0 ? 0 : 1;
}

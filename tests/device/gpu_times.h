/* SPDX-License-Identifier: MIT */
/* Times in nanoseconds, and their order: for the programs that run-gpu builds by one command. */
#ifndef TIDEPOOL_TESTS_DEVICE_GPU_TIMES_H
#define TIDEPOOL_TESTS_DEVICE_GPU_TIMES_H

#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#endif

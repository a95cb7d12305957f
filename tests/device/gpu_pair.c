/* SPDX-License-Identifier: MIT */
/* gpu_pair: what one allocation and one release take that PyTorch makes, called from C: lines of JSON,
 * as the benchmark writes them. Exits 1 where there is no device. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include <tidepool/adaptors.h>
#include <tidepool/device.h>
#include <tidepool/status.h>

#include "gpu_times.h"

enum { ROUNDS = 31, PAIRS = 100000, MIXED = 256 };

/* `held`: so many of several sizes are held, and the oldest goes first. */
static double measure(size_t held)
{
    static void *ring[MIXED];
    double before = now();
    for (size_t i = 0; i < PAIRS; i++) {
        size_t size = held == 1 ? 1 << 20 : 512 + (i * 7919 % 64) * 4096;
        if (ring[i % held] != NULL)
            tide_torch_free(ring[i % held], 0, 0, NULL);
        ring[i % held] = tide_torch_malloc((ssize_t)size, 0, NULL);
        if (ring[i % held] == NULL) {
            fprintf(stderr, "%s\n", tide_error_message());
            exit(EXIT_FAILURE);
        }
    }
    double after = now();
    for (size_t i = 0; i < held; i++) {
        tide_torch_free(ring[i], 0, 0, NULL);
        ring[i] = NULL;
    }
    return (after - before) / PAIRS;
}

static void report(const char *name, size_t held)
{
    double times[ROUNDS];
    (void)measure(held);
    for (int i = 0; i < ROUNDS; i++)
        times[i] = measure(held);
    qsort(times, ROUNDS, sizeof *times, compare);
    printf("{\"case\":\"%s\",\"variant\":\"tidepool\",\"ns_min\":%.1f,\"ns_median\":%.1f,"
           "\"unit\":\"pair\"}\n",
           name, times[0], times[ROUNDS / 2]);
}

int main(void)
{
    report("torch-pair-c", 1);
    report("torch-ring-c", MIXED);
    return EXIT_SUCCESS;
}

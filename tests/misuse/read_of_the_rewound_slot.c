/* SPDX-License-Identifier: MIT */
/* Acquires the same slot again, but shorter, and reads through the old pointer beyond that. */
#include "misuse.h"

static void acquire_shorter(tide_pool *pool, void *state)
{
    double **volatile kept = state;
    tide_fill(pool, double, 3, 3.0);
    volatile double seen = (*kept)[9];
    (void)seen;
}

static void misuse(const form *f, tide_pool *pool)
{
    double *kept = NULL;
    f->run(pool, misuse_acquire, &kept);
    f->run(pool, acquire_shorter, &kept);
}

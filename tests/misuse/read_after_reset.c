/* SPDX-License-Identifier: MIT */
/* Reads an array of a scope that is still open, after the pool was reset under it. */
#include "misuse.h"

static void reset_and_read(tide_pool *pool, void *state)
{
    double *volatile kept = NULL;
    (void)state;
    misuse_acquire(pool, (void *)(uintptr_t)&kept);
    tide_pool_reset(pool);
    volatile double seen = kept[0];
    (void)seen;
}

static void misuse(const form *f, tide_pool *pool)
{
    f->run(pool, reset_and_read, NULL);
}

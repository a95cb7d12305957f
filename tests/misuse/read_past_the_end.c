/* SPDX-License-Identifier: MIT */
/* Reads one element more than was asked for, in a slot that has room for it. */
#include "misuse.h"

static void read_too_far(tide_pool *pool, void *state)
{
    double *volatile kept = NULL;
    (void)state;
    misuse_acquire(pool, (void *)(uintptr_t)&kept);
    volatile double seen = kept[10];
    (void)seen;
}

static void misuse(const form *f, tide_pool *pool)
{
    f->run(pool, read_too_far, NULL);
}

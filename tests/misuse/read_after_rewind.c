/* SPDX-License-Identifier: MIT */
/* Reads an array whose scope has ended. */
#include "misuse.h"

static void misuse(const form *f, tide_pool *pool)
{
    double *volatile kept = NULL;
    f->run(pool, misuse_acquire, (void *)(uintptr_t)&kept);
    volatile double seen = kept[3];
    (void)seen;
}

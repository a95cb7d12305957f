/* SPDX-License-Identifier: MIT */
/* No mistake at all: whoever objects to this is wrong. */
#include "misuse.h"

static void misuse(const form *f, tide_pool *pool)
{
    double *outer = tide_fill(pool, double, 10, 1.0);
    double *kept = NULL;
    for (int i = 0; i < 3; i++) {
        f->run(pool, misuse_acquire, &kept);
        tide_mark mark = tide_checkpoint(pool);
        f->run(pool, misuse_acquire, &kept);
        double *inner = tide_fill(pool, double, 20, 2.0);
        volatile double seen = outer[9] + inner[19];
        tide_rewind(pool, mark);
        seen = outer[0];
        (void)seen;
    }
}

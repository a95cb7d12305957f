/* SPDX-License-Identifier: MIT */
/* Butterflies over a signal, in blocks: knob "block", variants "radix". */
#include <stdlib.h>

#include <tidepool/scope.h>
#include <tidepool/tunable.h>

#include "worker.h"

TIDE_VARIANTS(transform_radix, "radix", "2", "4");

static void transform_pass(double *x, size_t from, size_t to, size_t half)
{
    for (size_t i = from; i < to; i++) {
        size_t at = i / half * 2 * half + i % half;
        double a = x[at], b = x[at + half];
        x[at] = (a + b) / 2;
        x[at + half] = (a - b) / 2;
    }
}

/* Passes by one (radix 2) or by two at a time over a block, so that a block stays in the cache. */
void worker_work(tide_pool *pool)
{
    enum { N = 1 << 14 };
    TIDE_SCOPE_NAMED(pool, "transform");
    double *x = tide_acquire(pool, double, N);
    if (x == NULL)
        abort();
    for (size_t i = 0; i < N; i++)
        x[i] = (double)(i % 17);
    size_t block = (size_t)1 << tide_tunable("block", 4, 13);
    TIDE_MEASURE(&transform_radix, 0, which);
    for (size_t half = 1; half < N; half <<= 1 + which)
        for (size_t from = 0; from < N / 2; from += block) {
            size_t to = from + block < N / 2 ? from + block : N / 2;
            transform_pass(x, from, to, half);
            if (which == 1 && half * 2 < N)
                transform_pass(x, from, to, half * 2);
        }
}

/* SPDX-License-Identifier: MIT */
/* Uses int64_t for its two arrays: a third type, beside the caller's double and int32_t. */
#include "untracked_helper.h"

helper_pair helper_from_pool(tide_pool *pool, const bench_sizes *n)
{
    int64_t *c = tide_acquire(pool, int64_t, n->count[2]);
    int64_t *d = tide_acquire(pool, int64_t, n->count[3]);
    return (helper_pair){(double *)(void *)c, (int32_t *)(void *)d};
}

helper_pair helper_from_bump(bench_bump *bump, const bench_sizes *n)
{
    int64_t *c = bench_bump_take(bump, n->count[2] * sizeof *c);
    int64_t *d = bench_bump_take(bump, n->count[3] * sizeof *d);
    return (helper_pair){(double *)(void *)c, (int32_t *)(void *)d};
}

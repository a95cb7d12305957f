/* SPDX-License-Identifier: MIT */
/* A helper that acquires on its own account, in a file of its own: no scope can see its types. */
#ifndef TIDEPOOL_BENCH_UNTRACKED_HELPER_H
#define TIDEPOOL_BENCH_UNTRACKED_HELPER_H

#include "plain.h"

#include <tidepool/tidepool.h>

typedef struct helper_pair {
    double *c;
    int32_t *d;
} helper_pair;

helper_pair helper_from_pool(tide_pool *pool, const bench_sizes *n);
helper_pair helper_from_bump(bench_bump *bump, const bench_sizes *n);

#endif

/* SPDX-License-Identifier: MIT */
/* The bump arena: what the best hand-written arena costs, inlined, with a test for its end. */
#ifndef TIDEPOOL_BENCH_PLAIN_H
#define TIDEPOOL_BENCH_PLAIN_H

#include "bench.h"

#define BENCH_BUMP_ALIGN 64 /* what the pool guarantees */

typedef struct bench_bump {
    const bench_sizes *sizes;
    char *top; /* aligned */
    char *end;
    char *first;
} bench_bump;

bench_bump *bench_bump_make(const bench_case *job);
bool bench_bump_empty(const bench_bump *bump); /* else a complaint */
void bench_bump_free(void *bump);

/* Where an arena takes another chunk. In a file of its own: the compiler of a loop must think, as
 * of any arena, that it returns. */
void *bench_bump_full(bench_bump *bump, size_t bytes) __attribute__((cold, noinline));

BENCH_INLINE void *bench_bump_take(bench_bump *bump, size_t bytes)
{
    size_t rounded = (bytes + BENCH_BUMP_ALIGN - 1) & -(size_t)BENCH_BUMP_ALIGN;
    char *data = bump->top;
    if (__builtin_expect((size_t)(bump->end - data) < rounded, 0))
        return bench_bump_full(bump, rounded);
    bump->top = data + rounded;
    return data;
}

extern const bench_variant bench_floor;
extern const bench_variant bench_bump_variant;
extern const bench_variant bench_obstack;

#endif

/* SPDX-License-Identifier: MIT */
/* The body of every scope4 variant: four arrays of two types, first and last element written.
 *
 * BENCH_SCOPE4(name, state, statements) makes name_run and name_prove out of the same
 * statements. They see `s` (the state), `n` (this operation's sizes), and hand their arrays to
 * BENCH_USE once. The state has a field `sizes`. All variants are compiled from this text, so
 * they differ only in how the arrays come and go. */
#ifndef TIDEPOOL_BENCH_SCOPE4_H
#define TIDEPOOL_BENCH_SCOPE4_H

#include "bench.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills the four arrays, each with bytes of its own, then looks whether all are still so. */
void bench_fill_and_check(uint64_t row, const bench_sizes *n, void *const data[4]);

#ifdef __cplusplus
}
#endif

/* The empty assembly takes the arrays as the rest of a program would, forces every store out,
 * and makes the count opaque: the compiler cannot know it without doing each operation. */
BENCH_INLINE void bench_use(bool prove, uint64_t row, uint64_t *done, const bench_sizes *n,
                            double *a, int32_t *b, double *c, int32_t *d)
{
    if (prove) {
        void *const data[4] = {a, b, c, d};
        bench_fill_and_check(row, n, data);
    }
    a[0] = 1.0;
    a[n->count[0] - 1] = 2.0;
    b[0] = 3;
    b[n->count[1] - 1] = 4;
    c[0] = 5.0;
    c[n->count[2] - 1] = 6.0;
    d[0] = 7;
    d[n->count[3] - 1] = 8;
    *done += 1;
    __asm__ volatile("" : "+r"(*done) : "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

#define BENCH_USE(a, b, c, d) bench_use(prove, i, &done, n, (a), (b), (c), (d))

/* No locals, and an ordinary loop. */
#define BENCH_NONE
#define BENCH_FOR(i, operations) for (uint64_t i = 0; i < (operations); i++)

#define BENCH_SCOPE4(name, state, ...) \
    BENCH_SCOPE4_IN(BENCH_FOR, BENCH_NONE, name, state, __VA_ARGS__)

/* The same with what a program would hold in local variables across the loop, and with a loop of
 * the variant's own: LOOP(i, operations) { … }. */
#define BENCH_SCOPE4_IN(LOOP, LOCALS, name, state, ...)                                        \
    BENCH_INLINE uint64_t name##_block(state *s, uint64_t operations, bool prove)              \
    {                                                                                          \
        const bench_sizes *const sizes = s->sizes;                                             \
        uint64_t done = 0;                                                                     \
        LOCALS                                                                                 \
        LOOP(i, operations)                                                                    \
        {                                                                                      \
            const bench_sizes *n = &sizes[i % BENCH_SIZES];                                    \
            __VA_ARGS__                                                                        \
        }                                                                                      \
        return done;                                                                           \
    }                                                                                          \
    static __attribute__((noinline, unused)) uint64_t name##_run(void *s, uint64_t operations) \
    {                                                                                          \
        return name##_block((state *)s, operations, false);                                    \
    }                                                                                          \
    static __attribute__((noinline)) void name##_prove(void *s, uint64_t operations)           \
    {                                                                                          \
        if (name##_block((state *)s, operations, true) != operations)                          \
            bench_die(#name " lost operations");                                               \
    }

#endif

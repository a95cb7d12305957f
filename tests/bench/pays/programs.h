/* SPDX-License-Identifier: MIT */
/* Whole programs in small: each is run as a process of its own, from its first scope to its exit.
 *
 * The name of a scope's site is "program:letters", one letter for each type that its uses acquire.
 * So the mode `table` can tell the library what learning would have to find out. */
#ifndef TIDEPOOL_BENCH_PAYS_PROGRAMS_H
#define TIDEPOOL_BENCH_PAYS_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>

#include <tidepool/tidepool.h>

#define PAYS_INLINE static inline __attribute__((always_inline))

/* Acquires `n` elements, writes the first and the last; the compiler knows nothing of either. */
#define PAYS_TAKE(pool, T, n)                           \
    do {                                                \
        T *taken = tide_acquire(pool, T, n);            \
        taken[0] = (T)1;                                \
        taken[(n)-1] = (T)2;                            \
        __asm__ volatile("" : : "r"(taken) : "memory"); \
    } while (0)

typedef struct pays_program {
    const char *name, *meaning;
    void (*run)(tide_pool *pool, uint64_t uses);
    uint64_t uses; /* calls of the outermost function */
} pays_program;

extern const pays_program pays_programs[]; /* the last has no name */

void pays_sites_200(tide_pool *pool, uint64_t uses);

#endif

/* SPDX-License-Identifier: MIT */
/* What every file of the benchmark agrees on.
 *
 *   case        one job, measured per operation: "scope4-small"
 *   variant     one way to do that job: "bump", "glibc", "tide-types"
 *   pair        a case and a variant; the thing that has a figure
 *   group       cases that are measured in the same rounds, so that they can be compared
 *   round       one block of every pair of a group, in shuffled order
 *   block       some thousand operations, timed as one
 *
 * A variant is a row of functions over a state of its own. Nothing a variant claims is taken on
 * trust: `prove` fills and checks its arrays, `run` returns the operations that its body really
 * counted, `verify` says whether it was what its name says. */
#ifndef TIDEPOOL_BENCH_H
#define TIDEPOOL_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sanitizers watch malloc, and know nothing of what a fork does to locks. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BENCH_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BENCH_SANITIZED 1
#endif
#endif

#define BENCH_INLINE static inline __attribute__((always_inline, unused))

/* Sizes of the four arrays of one operation, in elements: double, int32_t, double, int32_t. */
typedef struct bench_sizes {
    uint32_t count[4];
} bench_sizes;

#define BENCH_SIZES 256 /* rows of a table of sizes; blocks are a multiple of it */

typedef struct bench_case bench_case;
typedef struct bench_variant bench_variant;

struct bench_case {
    const char *name;
    const char *unit;  /* what one operation is: "scope", "job"             */
    const char *about; /* one line for --list                               */
    const char *group;
    const char *base; /* ratios are given against this variant and `floor` */
    const bench_sizes *sizes;
    uint64_t step;                        /* blocks are a multiple of this many operations */
    const bench_variant *const *variants; /* up to NULL */
};

/* More than nanoseconds: figures by name, for the table and the JSON. */
typedef struct bench_figure {
    const char *name;
    double value;
} bench_figure;

struct bench_variant {
    const char *name;
    const char *missing; /* why it cannot run in this build; NULL: it can */
    /* May fail (a peer that does not load): NULL, with bench_complain. */
    void *(*setup)(const bench_case *job);
    /* Every array filled and checked against the others; also warms the state up. */
    void (*prove)(void *state, uint64_t operations);
    uint64_t (*run)(void *state, uint64_t operations);
    /* After the last round; false, with bench_complain, when it was not what its name says. */
    bool (*verify)(void *state, uint64_t operations);
    void (*teardown)(void *state);
    /* NULL, or: fills in some figures of its own, returns how many. */
    size_t (*figures)(void *state, uint64_t operations, bench_figure *out, size_t room);
};

/* cases.c */
size_t bench_case_count(void);
const bench_case *bench_case_at(size_t index);

/* support.c */
void *bench_allocate(size_t bytes);        /* zeroed, from the system itself: no malloc sees it */
void *bench_allocate_shared(size_t bytes); /* the same after a fork */
void bench_release(void *memory, size_t bytes);
void *bench_state_make(size_t bytes); /* zeroed; for what the loops look at */
void bench_state_free(void *state, size_t bytes);
uint64_t bench_random(uint64_t *state);
double bench_now(void); /* nanoseconds, monotonic */
void bench_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
const bench_sizes *bench_sizes_make(size_t least_bytes, size_t most_bytes);

/* measure.c */
typedef struct bench_options {
    const char *case_glob;
    const char *variant_glob;
    uint32_t rounds;
    double block_ns; /* how long a block should take; 0: as short as it can be */
} bench_options;

typedef struct bench_result {
    const bench_case *job;
    const bench_variant *variant;
    bool ran;
    double ns_min;
    double ns_median;
    uint64_t operations;
    uint32_t rounds;
    double ratio_base; /* by ns_min; 0: the base variant did not run */
    double ratio_floor;
    bench_figure figures[8];
    size_t figure_count;
} bench_result;

bool bench_selected(const bench_options *options, const bench_case *job,
                    const bench_variant *variant);
/* Measures every pair of one group in a process of its own, a copy of this one: what a group does
 * to the C library's heap (which learns from the sizes it frees) stays there. The results must
 * be shared memory. False when a pair failed or was not what it said. */
bool bench_measure(bench_result *results, size_t count, const bench_options *options);

#ifdef __cplusplus
}
#endif

#endif

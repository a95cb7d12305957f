/* SPDX-License-Identifier: MIT */
/* What the cases share that are written once for each form of forms.h: a state, the writing and
 * reading of their arrays, and the proof that all variants of a case do the same work.
 *
 * An operation returns a sum over what it read from its arrays. The sum of one step is taken when a
 * variant is proved; it must be that of the case's other variants, and must have come about in each
 * step until the end. Where arrays are only written and read at their ends (BENCH_WORK_WRITE), the
 * code exists twice: with `prove` they are also filled, and checked when they are read. */
#ifndef TIDEPOOL_BENCH_WORK_H
#define TIDEPOOL_BENCH_WORK_H

#include "forms.h"
#include "scope4.h"
#include "tide.h"

typedef struct bench_work {
    const bench_sizes *sizes;
    const bench_case *job;
    const void *context; /* the form's: a pool, an arena, an allocator */
    tide_site *sites;    /* of a variant that has call sites           */
    size_t site_count;
    tide_tier tier; /* where these were pinned */
    uint64_t sum;   /* since the proof         */
    uint64_t step;  /* of one step             */
    bench_tide *tide;
    bench_bump *bump;
} bench_work;

typedef uint64_t bench_work_run(void *state, uint64_t operations);

/* States: with a pool in which 16 types are in use; with an arena; with the C library's
 * malloc; with nothing. */
void *bench_work_pool(const bench_case *job);
void *bench_work_bump(const bench_case *job);
void *bench_work_glibc(const bench_case *job);
void *bench_work_stack(const bench_case *job);
void bench_work_free(void *state);

/* Gives the state these call sites, all at that tier. The i-th is told types[i], up to a
 * TIDE_NO_TYPE. */
enum { BENCH_WORK_TYPES = 8 };
typedef tide_type bench_work_row[BENCH_WORK_TYPES];
void bench_work_pin(bench_work *s, tide_site *sites, size_t count, tide_tier tier,
                    const bench_work_row *types);

/* After the arrays were proved: one step, whose sum is compared; from here on all is counted. */
void bench_work_proved(void *state, bench_work_run *run);

/* Right sums, sites at their tier, and what bench_tide_verify says of the pool. */
bool bench_work_verify(void *state, uint64_t operations);

void bench_work_fill(void *data, size_t bytes, int value);
void bench_work_check(const void *data, size_t bytes, int value); /* dies unless it is so filled */

/* The ends of each array (T, name, count) are written, and the arrays used as by the rest of a
 * program. `mode` is run or prove; `level` tells arrays of nested functions apart. */
#define BENCH_WORK_WRITE(mode, level, ...) \
    TIDE_MAP(BENCH_WORK_WRITE_##mode, level, __VA_ARGS__)((void)0)
#define BENCH_WORK_WRITE_run(i, level, item) BENCH_WORK_ENDS(FORM_BARE item)
#define BENCH_WORK_WRITE_prove(i, level, item)                     \
    BENCH_WORK_WHOLE(bench_work_fill, i, level, 0, FORM_BARE item) \
    BENCH_WORK_ENDS(FORM_BARE item)
#define BENCH_WORK_ENDS(...) BENCH_WORK_ENDS_(__VA_ARGS__)
#define BENCH_WORK_ENDS_(T, name, count)       \
    (name)[0] = (T)((count)&63);               \
    (name)[(count)-1] = (T)(((count)&63) + 1); \
    __asm__ volatile("" : : "r"(name) : "memory");
#define BENCH_WORK_WHOLE(function, i, level, ends, ...) \
    BENCH_WORK_WHOLE_(function, i, level, ends, __VA_ARGS__)
#define BENCH_WORK_WHOLE_(function, i, level, ends, T, name, count) \
    function((name) + (ends), ((count)-2 * (ends)) * sizeof(T), (int)(16 * (i) + (level)));

/* And read again, into `sum`. */
#define BENCH_WORK_READ(mode, level, ...) \
    TIDE_MAP(BENCH_WORK_READ_##mode, level, __VA_ARGS__)((void)0)
#define BENCH_WORK_READ_run(i, level, item) BENCH_WORK_SUM(FORM_BARE item)
#define BENCH_WORK_READ_prove(i, level, item)                       \
    BENCH_WORK_WHOLE(bench_work_check, i, level, 1, FORM_BARE item) \
    BENCH_WORK_SUM(FORM_BARE item)
#define BENCH_WORK_SUM(...) BENCH_WORK_SUM_(__VA_ARGS__)
#define BENCH_WORK_SUM_(T, name, count) \
    sum += (uint64_t)((int64_t)(name)[0] + (int64_t)(name)[(count)-1]);

/* Makes name_run and name_prove: a loop around `statements`, which add to `sum` and see `s`, the
 * context `c`, the number `i` and the sizes `n` of the i-th call, and MODE, which is run or prove.
 * `unit` operations are one call. */
#define BENCH_WORK_LOOP(LOOP, name, form, unit, ONCE)       \
    BENCH_WORK_LOOP_IN(LOOP, run, , name, form, unit, ONCE) \
    BENCH_WORK_LOOP_IN(LOOP, prove, , name, form, unit, ONCE)
#define BENCH_WORK_LOOP_IN(LOOP, mode, unused, name, form, unit, ONCE)                        \
    static __attribute__((noinline)) uint64_t name##_##mode(void *state, uint64_t operations) \
    {                                                                                         \
        bench_work *s = state;                                                                \
        FORM_CONTEXT(form) c = (FORM_CONTEXT(form))(uintptr_t)s->context;                     \
        const bench_sizes *const sizes = s->sizes;                                            \
        uint64_t done = 0, sum = 0;                                                           \
        LOOP(i, operations / (unit))                                                          \
        {                                                                                     \
            const bench_sizes *n = &sizes[i % BENCH_SIZES];                                   \
            ONCE(form, mode);                                                                 \
            done += (unit);                                                                   \
            __asm__ volatile("" : "+r"(done), "+r"(sum));                                     \
        }                                                                                     \
        s->sum += sum;                                                                        \
        return done;                                                                          \
    }

/* A variant of such a loop. */
#define BENCH_WORK_VARIANT(name, label, setup)                 \
    static void name##_proof(void *state, uint64_t operations) \
    {                                                          \
        if (name##_prove(state, operations) != operations)     \
            bench_die(#name " lost operations");               \
        bench_work_proved(state, name##_run);                  \
    }                                                          \
    static const bench_variant variant_##name = {              \
        label, NULL, setup, name##_proof, name##_run, bench_work_verify, bench_work_free, NULL};

#endif

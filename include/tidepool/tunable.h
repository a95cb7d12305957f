/* SPDX-License-Identifier: MIT */
/* Tunables: numbers that a program can run with, and several implementations of one operation, of
 * which the library or a tuner outside finds the best.
 *
 *   knob       an integer with a range; the program reads it by one load, a tuner sets it
 *   variants   implementations of one operation. The library makes real uses by each of them in
 *              turns, takes their time, and keeps the fastest, for each key apart
 *   key        a number of the program's that says which uses are alike: a class of sizes, say
 *   measured   a body of which only the time is taken: what a tuner of knobs looks at
 *
 *   TIDE_VARIANTS(product, "product", "8x8", "16x16", "32x32");
 *
 *   void multiply(size_t n, const double *a, const double *b, double *c)
 *   {
 *       TIDE_MEASURE(&product, size_class(n), which);        // to the end of the block
 *       shapes[which](n, a, b, c, tide_tunable("prefetch", 0, 16));
 *   }
 *
 * Tunables are listed when their module is loaded, before any use. What was found is in facts, on the
 * socket (tidepool/listen.h: ask, tell), and in profiles (tidepool/profile.h): the next run begins with
 * it. With TIDEPOOL_PROFILE=FILE in the environment a program loads FILE, if it is there, before its
 * main, and saves it when it exits (not the child of a fork, nor over a file that could not be loaded).
 *
 * Time is that of the calling thread's clock on the wall: a body that starts work on a device has to
 * wait for it. Of two variants that do the same for a key, one is kept by chance. Any thread. */
#ifndef TIDEPOOL_TUNABLE_H
#define TIDEPOOL_TUNABLE_H

#include <tidepool/inline/tunable.h>
#include <tidepool/status.h>

TIDE_BEGIN_DECLS

/* Measures to the end of the block, however that is left (not by longjmp). `which` is a new constant:
 * the number of the variant that this use is to run, 0 of what is only measured. A use that is not timed
 * costs a call; so many are timed that it costs a hundredth of a body of 2 µs or more. */
#define TIDE_MEASURE(tunable, key, which)                                                   \
    tide_measured_use TIDE_PASTE(which, _use) __attribute__((cleanup(tide_measure_leave))); \
    tide_measure_begin(&TIDE_PASTE(which, _use), (tunable), TIDE_AS(uint64_t, key));        \
    const uint32_t which __attribute__((unused)) = TIDE_PASTE(which, _use).variant

/* In such a block: this use counts as so many nanoseconds (0: as the clock says), be it what a
 * device's own events measured, or any other cost that is to be least. */
#define TIDE_MEASURE_AS(which, ns) TIDE_PASTE(which, _use).told = TIDE_AS(uint64_t, ns)

/* A knob where it is read, as an expression of type int64_t: tide_tunable("tile", 8, 64) is from 8
 * to 64, and 8 until somebody sets it; tide_tunable("tile", 8, 64, 32) is 32 until then. All are
 * constants, 0 or more, below TIDE_TUNABLE_LIMIT. */
#define tide_tunable(name, low, ...)                                          \
    __extension__({                                                           \
        static tide_tunable tide_tunable_ =                                   \
            TIDE_KNOB_VALUE(name, low, TIDE_KNOB_RANGE(__VA_ARGS__, low, ~)); \
        TIDE_TUNABLE_LIST_HERE(tide_tunable_);                                \
        tide_tunable_value(&tide_tunable_);                                   \
    })

/* Tunables of a file (outside of functions), by a name of C's: a knob, read by tide_tunable_value;
 * variants, one to 16 string literals; and a body that is only measured. */
#define TIDE_KNOB(variable, name, low, ...)                               \
    static tide_tunable variable =                                        \
        TIDE_KNOB_VALUE(name, low, TIDE_KNOB_RANGE(__VA_ARGS__, low, ~)); \
    TIDE_TUNABLE_LIST(variable)
#define TIDE_VARIANTS(variable, name, ...)                                                     \
    static const char *const TIDE_PASTE(variable, _variants)[] = {__VA_ARGS__};                \
    static tide_tunable variable = TIDE_VARIANTS_VALUE(name, TIDE_PASTE(variable, _variants)); \
    TIDE_TUNABLE_LIST(variable)
#define TIDE_MEASURED(variable, name) TIDE_VARIANTS(variable, name, "body")

/* ---- steering, from within ---- */

/* Calls `visit` for each tunable, those of the modules loaded last first, until it returns false. As
 * tide_site_each: the registry is locked, `visit` must not load libraries or wait. */
TIDE_API void tide_tunable_each(bool (*visit)(tide_tunable *tunable, void *user), void *user);

/* The tunable of that name, the first if there are several. NULL with a message. */
TIDE_API tide_tunable *tide_tunable_find(const char *name);

/* Sets a knob. TIDE_ERROR_SIZE: out of its range; TIDE_ERROR_ARGUMENT: NULL, or no knob. Readers
 * see it at their next load. */
TIDE_API tide_status tide_tunable_set(tide_tunable *tunable, int64_t value);

/* From now on uses of this key run that variant; its figures begin anew. TIDE_ERROR_NAME: no such
 * variant. TIDE_ERROR_ARGUMENT: NULL, or a knob. TIDE_ERROR_MEMORY. */
TIDE_API tide_status tide_tunable_pin(tide_tunable *tunable, uint64_t key, const char *variant);

/* A knob gets its initial value; figures and choices of all keys are forgotten, what was loaded too,
 * and variants are measured anew. */
TIDE_API tide_status tide_tunable_reset(tide_tunable *tunable);

typedef struct tide_candidate {
    const char *name; /* of the variant                       */
    uint64_t uses;    /* timed                                */
    double ns;        /* of one of them, their mean; 0: none  */
    double error_ns;  /* standard error of that               */
    bool loaded;      /* this process has not timed it: the figures are a profile's */
} tide_candidate;

/* What is known of one key. */
typedef struct tide_tunable_row {
    uint64_t key;
    uint64_t uses;   /* in this process, timed or not            */
    uint32_t choice; /* the variant that uses run, or the fastest so far */
    bool settled;    /* it is chosen: uses run nothing else      */
    bool pinned;     /* by tide_tunable_pin                      */
    uint32_t candidate_count;
    tide_candidate candidates[TIDE_VARIANTS_MAX];
    TIDE_GROWTH;
} tide_tunable_row;

/* Row `index` from 0 on, in no order; false: there are no more. */
TIDE_API bool tide_tunable_row_get(const tide_tunable *tunable, uint32_t index,
                                   tide_tunable_row *out);

TIDE_END_DECLS

#endif

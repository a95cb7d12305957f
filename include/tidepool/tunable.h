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
 * Tunables are listed when their module is loaded, before any use. What was found is in facts
 * (tidepool/facts.h), on the socket (tidepool/listen.h: ask, tell), and in profiles
 * (tidepool/profile.h): the next run begins with it. With TIDEPOOL_PROFILE=FILE in the environment
 * a program loads FILE, if it is there, before its main, and saves it when it exits.
 *
 * Time is that of the calling thread's clock on the wall: a body that starts work on a device has
 * to wait for it. Of two variants that do the same for a key, one is kept by chance. */
#ifndef TIDEPOOL_TUNABLE_H
#define TIDEPOOL_TUNABLE_H

#include <tidepool/inline/config.h>
#include <tidepool/status.h>
#include <tidepool/type.h>
#ifdef TIDE_LANGUAGE_OK

TIDE_BEGIN_DECLS

enum {
    TIDE_VARIANTS_MAX = 16,    /* of one tunable                                          */
    TIDE_TUNABLE_KEYS = 32,    /* that are kept apart; further ones are taken as one more */
    TIDE_TUNABLE_NAME_MAX = 63 /* bytes of a tunable's or variant's name that are kept    */
};

#define TIDE_TUNABLE_OTHER ((uint64_t)INT64_MAX) /* the key of further ones */
#define TIDE_TUNABLE_LIMIT (INT64_C(1) << 53)    /* of a knob's values: exact in JSON */

/* A tunable: static in the program. Programs read `name` to `initial`, and use `user`. */
typedef struct tide_tunable {
    const char *name;
    const char *const *variants; /* their names; NULL: a knob */
    uint32_t variant_count;      /* 0: a knob; 1: it is only measured */
    int64_t low, high, initial;  /* of a knob */
    const char *file;
    uint32_t line;
    uint32_t listed; /* the library's own, as the rest of these */
    int64_t value;   /* atomic: a knob's                                           */
    struct tide_tunable *next;
    struct tide_tuned *rows[TIDE_TUNABLE_KEYS + 1]; /* atomic */
    void *user; /* the tuner's own data: the library neither reads nor changes it. NULL at first */
} tide_tunable;

/* One use of a body that is measured. */
typedef struct tide_measured_use {
    struct tide_tuned *row; /* NULL: it is not timed */
    uint64_t started;
    uint32_t variant;
} tide_measured_use;

/* For the macros. Any thread; no call waits for another thread. */
TIDE_API void tide_measure_begin(tide_measured_use *use, tide_tunable *tunable, uint64_t key);
TIDE_API void tide_measure_end(tide_measured_use *use);
TIDE_API void tide_tunable_enter(tide_tunable *const *first, tide_tunable *const *last);
TIDE_API void tide_tunable_leave(tide_tunable *const *first, tide_tunable *const *last);

TIDE_INLINE int64_t tide_tunable_value(const tide_tunable *tunable)
{
    return __atomic_load_n(&tunable->value, __ATOMIC_RELAXED);
}

TIDE_INLINE void tide_measure_leave(tide_measured_use *use)
{
    if (TIDE_UNLIKELY(use->row != NULL))
        tide_measure_end(use);
}

/* Measures from here to the end of the block, however that is left (an exit by longjmp counts for
 * nothing). `which` is a new constant: the number of the variant that this use is to run, 0 of what
 * is only measured. A use that is not timed costs a call; so many are timed that it costs a
 * hundredth of a body of 2 µs or more. */
#define TIDE_MEASURE(tunable, key, which)                                                   \
    tide_measured_use TIDE_PASTE(which, _use) __attribute__((cleanup(tide_measure_leave))); \
    tide_measure_begin(&TIDE_PASTE(which, _use), (tunable), TIDE_AS(uint64_t, key));        \
    const uint32_t which __attribute__((unused)) = TIDE_PASTE(which, _use).variant

/* A knob where it is read, as an expression of type int64_t: tide_tunable("tile", 8, 64) is from 8
 * to 64, and 8 until somebody sets it; tide_tunable("tile", 8, 64, 32) is 32 until then. All are
 * constants, 0 or more, below TIDE_TUNABLE_LIMIT. */
#define tide_tunable(name, low, ...)                                                           \
    __extension__({                                                                            \
        TIDE_TUNABLE_STATIC(TIDE_KNOB_VALUE(name, low, TIDE_KNOB_RANGE(__VA_ARGS__, low, ~))); \
        tide_tunable_value(TIDE_TUNABLE_HERE);                                                 \
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

/* ---- for programs that steer, and for tuners within ---- */

/* Calls `visit` for each tunable, those of the modules loaded last first, until it returns false.
 * As tide_site_each: the registry is locked, `visit` must not load libraries or wait. Any thread. */
TIDE_API void tide_tunable_each(bool (*visit)(tide_tunable *tunable, void *user), void *user);

/* The tunable of that name, the first if there are several. NULL with a message. Any thread. */
TIDE_API tide_tunable *tide_tunable_find(const char *name);

/* Sets a knob. TIDE_ERROR_SIZE: out of its range; TIDE_ERROR_ARGUMENT: NULL, or no knob. Any
 * thread; readers see it at their next load. */
TIDE_API tide_status tide_tunable_set(tide_tunable *tunable, int64_t value);

/* From now on uses of this key run that variant; its figures begin anew. TIDE_ERROR_NAME: no such
 * variant. TIDE_ERROR_ARGUMENT: NULL, or a knob. TIDE_ERROR_MEMORY. Any thread. */
TIDE_API tide_status tide_tunable_pin(tide_tunable *tunable, uint64_t key, const char *variant);

/* A knob gets its initial value; figures and choices of all keys are forgotten, what was loaded
 * too, and variants are measured anew. Any thread. */
TIDE_API tide_status tide_tunable_reset(tide_tunable *tunable);

typedef struct tide_candidate {
    const char *name; /* of the variant                       */
    uint64_t uses;    /* timed                                */
    double ns;        /* of one of them, their mean; 0: none  */
    double error_ns;  /* standard error of that               */
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

/* Row `index` from 0 on, in no order; false: there are no more. Any thread. */
TIDE_API bool tide_tunable_row_get(const tide_tunable *tunable, uint32_t index,
                                   tide_tunable_row *out);

TIDE_END_DECLS

/* ---- what the macros are made of ---- */

#define TIDE_KNOB_RANGE(high, initial, ...) high, initial
#define TIDE_KNOB_VALUE(...)                TIDE_KNOB_VALUE_(__VA_ARGS__)
#define TIDE_KNOB_VALUE_(name, low, high, initial)                                                 \
    {                                                                                              \
        (name), NULL, 0, (low) + TIDE_KNOB_CHECK(low, high, initial), (high), (initial), __FILE__, \
            __LINE__, 0, (initial), NULL, {NULL}, NULL                                             \
    }
/* 0, or an error of the compiler: a knob's range is wrong. */
#define TIDE_KNOB_CHECK(low, high, initial)                                     \
    (0 * sizeof(char[(low) >= 0 && (low) <= (initial) && (initial) <= (high) && \
                             (high) < TIDE_TUNABLE_LIMIT                        \
                         ? 1                                                    \
                         : -1]))
#define TIDE_VARIANTS_VALUE(name, names)                                                    \
    {                                                                                       \
        (name), names, TIDE_VARIANTS_COUNT(names), 0, 0, 0, __FILE__, __LINE__, 0, 0, NULL, \
            {NULL}, NULL                                                                    \
    }
#define TIDE_VARIANTS_COUNT(names)                                                     \
    TIDE_AS(uint32_t, sizeof(char[sizeof(names) / sizeof *(names) <= TIDE_VARIANTS_MAX \
                                      ? sizeof(names) / sizeof *(names)                \
                                      : -1]))

/* In C the tunables of a module stand in a list in a section of the binary. In C++ statics of inline
 * functions and templates cannot; there each is listed by the initialisation of a static member of
 * a template, which is made with the function. */
#ifndef __cplusplus
#define TIDE_TUNABLE_STATIC(...)                  \
    static tide_tunable tide_here_ = __VA_ARGS__; \
    TIDE_TUNABLE_LIST(tide_here_)
#define TIDE_TUNABLE_HERE (&tide_here_)
#define TIDE_TUNABLE_LIST(tunable)                         \
    static tide_tunable *const TIDE_PASTE(tunable, _entry) \
        __attribute__((section("tide_tunables"), used, TIDE_RETAIN)) = &(tunable)
#else
namespace tidepool
{
struct tunable_entry {
    tide_tunable *const one;
    explicit tunable_entry(tide_tunable *tunable) noexcept : one(tunable)
    {
        tide_tunable_enter(&one, &one + 1);
    }
    tunable_entry(const tunable_entry &) = delete;
    tunable_entry &operator=(const tunable_entry &) = delete;
    ~tunable_entry()
    {
        tide_tunable_leave(&one, &one + 1);
    }
};
template <class Here> struct tunable_listed {
    static const tunable_entry entry;
};
template <class Here> const tunable_entry tunable_listed<Here>::entry(Here::get());
} /* namespace tidepool */
#define TIDE_TUNABLE_STATIC(...)                        \
    struct tide_here_ {                                 \
        static tide_tunable *get()                      \
        {                                               \
            static tide_tunable tunable_ = __VA_ARGS__; \
            return &tunable_;                           \
        }                                               \
    };                                                  \
    static_cast<void>(&tidepool::tunable_listed<tide_here_>::entry)
#define TIDE_TUNABLE_HERE (tide_here_::get())
#define TIDE_TUNABLE_LIST(tunable) \
    static const tidepool::tunable_entry TIDE_PASTE(tunable, _entry)(&(tunable))
#endif

#if !defined(__cplusplus) && !defined(TIDEPOOL_LIBRARY)
extern tide_tunable *const __start_tide_tunables[] __attribute__((weak, visibility("hidden")));
extern tide_tunable *const __stop_tide_tunables[] __attribute__((weak, visibility("hidden")));

/* Before the constructors of the program's own. */
static __attribute__((constructor(101), unused)) void tide_tunables_constructor_(void)
{
    tide_tunable_enter(__start_tide_tunables, __stop_tide_tunables);
}

static __attribute__((destructor(101), unused)) void tide_tunables_destructor_(void)
{
    tide_tunable_leave(__start_tide_tunables, __stop_tide_tunables);
}
#endif

#endif
#endif

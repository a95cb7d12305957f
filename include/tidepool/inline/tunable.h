/* SPDX-License-Identifier: MIT */
/* What the macros of tidepool/tunable.h are made of: a tunable, a use that is measured, and how a
 * module lists its tunables. */
#ifndef TIDEPOOL_INLINE_TUNABLE_H
#define TIDEPOOL_INLINE_TUNABLE_H

#include <tidepool/inline/config.h>

TIDE_BEGIN_DECLS

enum {
    TIDE_VARIANTS_MAX = 16,    /* of one tunable                                          */
    TIDE_TUNABLE_KEYS = 32,    /* that are kept apart; further ones are taken as one more */
    TIDE_TUNABLE_NAME_MAX = 63 /* bytes of a tunable's or variant's name that are kept    */
};

#define TIDE_TUNABLE_OTHER UINT64_C(0x7fffffffffffffff) /* the key of further ones */
#define TIDE_TUNABLE_LIMIT (INT64_C(1) << 53)           /* of a knob's values: exact in JSON */

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
    uint64_t told; /* nanoseconds that the program says; 0: the clock does */
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

TIDE_END_DECLS

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
#define TIDE_VARIANTS_COUNT(names)            \
    TIDE_AS(uint32_t,                         \
            sizeof(names) / sizeof *(names) + \
                0 * sizeof(char[sizeof(names) / sizeof *(names) <= TIDE_VARIANTS_MAX ? 1 : -1]))

/* As sites are listed (tidepool/inline/scope.h). */
#ifndef __cplusplus
#define TIDE_TUNABLE_LIST_HERE TIDE_TUNABLE_LIST
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
template <tide_tunable *tunable> struct tunable_listed {
    static const tunable_entry entry;
};
template <tide_tunable *tunable> const tunable_entry tunable_listed<tunable>::entry(tunable);
} /* namespace tidepool */
#define TIDE_TUNABLE_LIST_HERE(tunable) \
    static_cast<void>(&tidepool::tunable_listed<&(tunable)>::entry)
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

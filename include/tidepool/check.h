/* SPDX-License-Identifier: MIT */
/* Finding code that uses an array after its scope: reports, escape checks, TIDE_RETURN.
 *
 * While no pool has a check level above 0, TIDE_RETURN costs one load. Checking what a scope returns is
 * an idea of AdaptiveArrayPools.jl; guard pages for a sample of the arrays are one of GWP-ASan. */
#ifndef TIDEPOOL_CHECK_H
#define TIDEPOOL_CHECK_H

#include <tidepool/inline/config.h>

TIDE_BEGIN_DECLS

typedef enum tide_report_kind {
    TIDE_REPORT_MISUSE = 0,           /* a call was refused that returns no tide_status   */
    TIDE_REPORT_LEAK = 1,             /* a scope was left open; the one around it cleaned up   */
    TIDE_REPORT_ESCAPE = 2,           /* a pointer leaves the scope that will rewind its array */
    TIDE_REPORT_USE_AFTER_REWIND = 3, /* level 2: a rewound array was touched; SIGSEGV follows */
    TIDE_REPORT_OVERFLOW = 4          /* level 2: the page past an array's end was touched, SIGSEGV
                                         follows; or bytes closer to its end, or in the page that
                                         it begins in, were found changed when it was rewound  */
} tide_report_kind;

/* Sets the function that gets all reports; NULL: none. A report is printed on stderr, too, unless it
 * returns false. `text` may have several lines and is valid during the call. Any thread may call it, in
 * the middle of a rewind, and for the two kinds of level 2 inside a signal handler: it does not use
 * pools. Set it before other threads can report.
 *
 * Level 2 needs a handler of SIGSEGV, installed with the first pool of level 2. It passes every fault on
 * to the handler before it, as a later one must to it. On an alternate signal stack it takes up to
 * 6 KiB. Where the kernel accesses a rewound array, as in read(2), the call fails with EFAULT and nothing
 * is reported. Beyond some 30 000 live arrays further ones are not guarded. */
typedef bool (*tide_report_function)(tide_report_kind kind, const char *text, void *user);
TIDE_API void tide_report_set_handler(tide_report_function function, void *user);

/* How many pools exist whose check level is 1 or 2. Read it atomically; do not write it. */
extern TIDE_API_DATA int tide_checked_pools;

/* Does `pointer`, into an array or to a tide_array, survive the innermost open scope? False, with a
 * report of where it was acquired, if its array belongs to that of a pool of this thread that checks.
 * True for anything else, also for NULL. */
TIDE_API bool tide_escape_check(const void *pointer);

/* The same for a function that is about to return `pointer`: does it survive all scopes that end with
 * the function? These bear its name, one inside the other on later and later lines; those inside the
 * last that a longjmp skipped count, too. A mark, a skipped scope of another function, or a second scope
 * on one line ends the search. True where it has none open. Code that has scopes open stays loaded. */
TIDE_API bool tide_return_check(const void *pointer, const char *file, const char *function,
                                uint32_t line);

TIDE_END_DECLS

/* TIDE_RETURN(pointer): returns `pointer` from the function. If a pool checks, tide_return_check
 * looks at it first. */
#define TIDE_RETURN(...) TIDE_RETURN_AT(TIDE_UNIQUE(tide_returned_), __VA_ARGS__)
#define TIDE_RETURN_AT(returned, ...)                                                    \
    do {                                                                                 \
        TIDE_AUTO returned = (__VA_ARGS__);                                              \
        if (TIDE_UNLIKELY(__atomic_load_n(&tide_checked_pools, __ATOMIC_RELAXED) != 0))  \
            (void)tide_return_check(returned, __FILE__, __builtin_FUNCTION(), __LINE__); \
        return returned;                                                                 \
    } while (0)

#endif

/* SPDX-License-Identifier: MIT */
/* Finding code that uses an array after its scope: reports, escape checks, TIDE_RETURN.
 *
 * While no pool has a check level above 0, TIDE_RETURN costs one load. Checking what a scope
 * returns is an idea of AdaptiveArrayPools.jl; guard pages for a sample of the arrays are one of
 * GWP-ASan. */
#ifndef TIDEPOOL_CHECK_H
#define TIDEPOOL_CHECK_H

#include <tidepool/inline/config.h>
#ifdef TIDE_LANGUAGE_OK

TIDE_BEGIN_DECLS

typedef enum tide_report_kind {
    TIDE_REPORT_MISUSE = 0,           /* a call was refused that returns no tide_status   */
    TIDE_REPORT_LEAK = 1,             /* a scope was left open; the one around it cleaned up   */
    TIDE_REPORT_ESCAPE = 2,           /* a pointer leaves the scope that will rewind its array */
    TIDE_REPORT_USE_AFTER_REWIND = 3, /* level 2: a rewound array was touched; SIGSEGV follows */
    TIDE_REPORT_OVERFLOW = 4,         /* level 2: the page past an array's end was touched, SIGSEGV
                                         follows; or bytes closer to its end, or in the page that
                                         it begins in, were found changed when it was rewound  */
    TIDE_REPORT_MANY_LIVE = 5         /* any level: so many arrays of one type are live in a pool
                                         as the setting `live_warn` says; once for each         */
} tide_report_kind;

/* Sets the function that gets all reports. A report is printed on stderr, too, unless the function
 * returns false. NULL: stderr alone. `text` may have several lines and is valid during the call.
 * The function may be called by any thread, and in the middle of a rewind. For the two kinds of
 * level 2 it may be called inside a signal handler. So it must not use pools. Set it before other
 * threads can report, because function and `user` are not exchanged in one step.
 *
 * Level 2 needs a handler of SIGSEGV. It is installed when the first pool of level 2 is created. It
 * passes every fault on to the handler that was there before; a handler that is installed later
 * must do the same. On an alternate signal stack it takes up to 6 KiB. When the kernel accesses a
 * rewound array for the program, as in read(2), the call fails with EFAULT and nothing is reported.
 * When some 30 000 arrays are live at once, further ones are not guarded. */
typedef bool (*tide_report_function)(tide_report_kind kind, const char *text, void *user);
TIDE_API void tide_report_set_handler(tide_report_function function, void *user);

/* How many pools exist whose check level is 1 or 2. Read it atomically; do not write it. */
extern TIDE_API_DATA int tide_checked_pools;

/* Does `pointer` survive the innermost open scope? `pointer` points into an array, or is a
 * tide_array. False if the array belongs to the innermost open scope of a pool of this thread that
 * checks; a report then says where the array was acquired. True for anything else, also for
 * NULL. */
TIDE_API bool tide_escape_check(const void *pointer);

/* The same for a function that is about to return `pointer`: does it survive all scopes that end
 * with the function? These are the scopes that it opened, one inside the other on later and later
 * lines, and those inside the last of them that a longjmp skipped. (They are found by the
 * function's name. A mark, or a scope of another function that was skipped between two of its own,
 * ends the search, and so does a second scope on one line. Where it has none open, the innermost
 * scope is asked about, and so it is in a visitor of tide_site_each, where names are not looked
 * at.) */
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
#endif

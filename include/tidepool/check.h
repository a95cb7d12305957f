/* SPDX-License-Identifier: MIT */
/* Finding out when someone holds on to an array: reports, escape checks, TIDE_RETURN.
 *
 * At check level 0 nothing here costs more than a load. The idea of checking what a scope
 * returns is AdaptiveArrayPools.jl's; that of sampled guard pages is GWP-ASan's. */
#ifndef TIDEPOOL_CHECK_H
#define TIDEPOOL_CHECK_H

#include <tidepool/config.h>

TIDE_BEGIN_DECLS

typedef enum tide_report_kind {
    TIDE_REPORT_MISUSE = 0,           /* a refused call that has nobody to return a status to  */
    TIDE_REPORT_LEAK = 1,             /* a scope was left open; the one around it cleaned up   */
    TIDE_REPORT_ESCAPE = 2,           /* a pointer leaves the scope that will rewind it        */
    TIDE_REPORT_USE_AFTER_REWIND = 3, /* level 2: a rewound array was touched; SIGSEGV follows */
    TIDE_REPORT_OVERFLOW = 4          /* level 2: the page past an array's end was touched, SIGSEGV
                                         follows; or bytes closer to its end, or in the page that
                                         it begins in, were found changed when it was rewound  */
} tide_report_kind;

/* Reports go to a function, if one is set, and then to stderr unless it returned false. Any thread
 * may call it, in the middle of a rewind or, for the two kinds of level 2, inside a signal
 * handler, so it must not use pools. `text` may have several lines. NULL: stderr alone.
 * Set it before other threads report: function and `user` are not exchanged as one.
 *
 * The handler of SIGSEGV is installed when the first pool of level 2 is created, and passes every
 * fault on to the one that was there before; a handler installed later has to do the same. On an
 * alternate signal stack it takes up to 6 KiB. An access by the kernel on the program's behalf
 * (read(2) into a rewound array) fails with EFAULT and is not reported. Past some 30 000 arrays
 * live at once, further ones are not guarded. */
typedef bool (*tide_report_function)(tide_report_kind kind, const char *text, void *user);
TIDE_API void tide_report_set_handler(tide_report_function function, void *user);

/* How many pools exist that check anything. */
extern TIDE_API_DATA int tide_checked_pools;

/* False, with a report that names where the array was acquired, when `pointer` (into an array, or
 * a tide_array) belongs to the innermost open scope of a checked pool of this thread, so that it
 * will not survive that scope. True for anything else, NULL included. */
TIDE_API bool tide_escape_check(const void *pointer);

TIDE_END_DECLS

/* return pointer, after tide_escape_check(pointer) if any pool checks. */
#ifdef __cplusplus
#define TIDE_AUTO auto
#else
#define TIDE_AUTO __auto_type
#endif
#define TIDE_RETURN(pointer)                                                            \
    do {                                                                                \
        TIDE_AUTO tide_returned_ = (pointer);                                           \
        if (TIDE_UNLIKELY(__atomic_load_n(&tide_checked_pools, __ATOMIC_RELAXED) != 0)) \
            (void)tide_escape_check(tide_returned_);                                    \
        return tide_returned_;                                                          \
    } while (0)

#endif

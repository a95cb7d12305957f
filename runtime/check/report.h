/* SPDX-License-Identifier: MIT */
/* Reports of what checks find. */
#ifndef TIDEPOOL_RUNTIME_CHECK_REPORT_H
#define TIDEPOOL_RUNTIME_CHECK_REPORT_H

#include <tidepool/check.h>
#include <tidepool/inline/layout.h>

/* One report: to the user's function, then in one write to stderr. Does not allocate; usable in
 * a handler, on a small stack. Never called with a lock held: the function is the user's. */
__attribute__((format(printf, 2, 3))) void tide_report(tide_report_kind kind, const char *format,
                                                       ...);

/* Words for a report; a value, so that it lives as long as the call it is an argument of. */
typedef struct tide_report_text {
    char text[256];
} tide_report_text;

/* "file.c:12 in function", the code that called where no file was given, or a phrase for a place
 * that nobody named or that is gone with its module. */
tide_report_text tide_place_text(tide_place place);

/* "function+0x12 (module+0x3456)", or "module+0x3456" where no exported function is known: what
 * addr2line turns into a line. The address alone while this thread holds a lock. */
tide_report_text tide_code_text(const void *code);

/* The place of a call that was not given one: the code it returns to. */
#define TIDE_CALLER NULL, __builtin_return_address(0), 0

#endif

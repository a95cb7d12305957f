/* SPDX-License-Identifier: MIT */
/* Reports of what checks find. */
#ifndef TIDEPOOL_RUNTIME_REPORT_H
#define TIDEPOOL_RUNTIME_REPORT_H

#include <tidepool/check.h>
#include <tidepool/inline/layout.h>

/* One report: to stderr, and to the user's function. Does not allocate; usable in a handler. */
__attribute__((format(printf, 2, 3))) void tide_report(tide_report_kind kind, const char *format,
                                                       ...);

/* "file.c:12 in function", or a phrase for a place that nobody gave. In a buffer of the thread:
 * good for four places in one message. */
const char *tide_place_text(tide_place place);

#endif

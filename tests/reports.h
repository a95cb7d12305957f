/* SPDX-License-Identifier: MIT */
/* A report function for tests: keeps the last report, and keeps it off stderr. */
#ifndef TIDEPOOL_TESTS_REPORTS_H
#define TIDEPOOL_TESTS_REPORTS_H

#include <stdio.h>
#include <tidepool/check.h>

typedef struct heard {
    size_t count;
    tide_report_kind kind; /* of the last */
    char text[1024];
} heard;

/* For tide_report_set_handler, with a `heard`. */
static inline bool hear(tide_report_kind kind, const char *text, void *user)
{
    heard *all = (heard *)user;
    all->count++;
    all->kind = kind;
    snprintf(all->text, sizeof all->text, "%s", text);
    return false;
}

#endif

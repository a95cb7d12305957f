/* SPDX-License-Identifier: MIT */
/* The page: a template in which data and script are put, all in one file. */
#ifndef TIDEPOOL_PROFILER_REPORT_PAGE_H
#define TIDEPOOL_PROFILER_REPORT_PAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "profiler/report/history.h"

/* A page has fewer bytes. */
enum { TIDE_PAGE_BYTES = 500000 };

/* Is the charting library in this build? */
bool tide_page_is_built(void);

/* The data that fit a page, as text for it (tide_data_text). */
char *tide_page_data(tide_history *history, const char *damage);

/* Writes the page with this data, which is not copied. A live page asks for more each second where
 * it came from. */
void tide_page_write(FILE *out, const char *data, bool live);

#endif

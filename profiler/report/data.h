/* SPDX-License-Identifier: MIT */
/* A history as the JSON document that the page draws. */
#ifndef TIDEPOOL_PROFILER_REPORT_DATA_H
#define TIDEPOOL_PROFILER_REPORT_DATA_H

#include <jansson.h>

#include "profiler/report/history.h"

/* How much of it: a page has a size that it keeps to. */
typedef struct tide_data_limits {
    size_t sites, pools, buffers, events, points; /* points: of each of these */
    size_t codes; /* of the first sites, those whose code is in it */
} tide_data_limits;

/* `damage` says what is wrong with the record, or is "". The history is sorted by it. */
json_t *tide_data_of(tide_history *history, const char *damage, const tide_data_limits *limits);

/* The document as text that may stand in a <script> of a page: without '<', '>' and '&', in at most
 * seven digits. Malloced. */
char *tide_data_text(const json_t *data);

#endif

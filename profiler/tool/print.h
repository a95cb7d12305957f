/* SPDX-License-Identifier: MIT */
/* Facts on paper: figures for people, JSON for programs. A text of a document is shown by tool_say,
 * tool_clean or tool_complain only. */
#ifndef TIDEPOOL_PROFILER_TOOL_PRINT_H
#define TIDEPOOL_PROFILER_TOOL_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "profiler/record/value.h"
#include "profiler/tool/clean.h"

/* "1.5 MiB". "12.3 us". "1.2 M". Each returns `out`. */
enum { TOOL_BYTES_TEXT = 16, TOOL_TIME_TEXT = 16, TOOL_COUNT_TEXT = 16 };
const char *tool_bytes(double bytes, char out[TOOL_BYTES_TEXT]);
const char *tool_time(double ns, char out[TOOL_TIME_TEXT]);
const char *tool_count(double count, char out[TOOL_COUNT_TEXT]);

/* Of a member of the list's objects. */
double tool_sum(const json_t *list, const char *member);

/* On one line of the standard output, in ASCII. */
void tool_print_json(const json_t *value);

/* "f64 i32": the texts of a list, in `out`; "..." for those that have no room. */
const char *tool_words(const json_t *list, char *out, size_t room);

#endif

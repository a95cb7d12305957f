/* SPDX-License-Identifier: MIT */
/* An event as a line of text, for people and for programs that read logs. */
#ifndef TIDEPOOL_JIT_EVENTS_LINE_H
#define TIDEPOOL_JIT_EVENTS_LINE_H

#include <stdio.h>

#include <tidepool/learn.h>

/* "tidepool: event", then the members as key=value, texts in quotes; a line feed ends it. In texts
 * quotes, backslashes and control characters are written \xHH. One write, so that the lines of
 * several processes do not mix. */
void tide_event_write_line(const tide_event *event, FILE *out);

#endif

/* SPDX-License-Identifier: MIT */
/* An event as a line of text on the standard error, for people and for programs that read logs. */
#ifndef TIDEPOOL_JIT_EVENTS_LINE_H
#define TIDEPOOL_JIT_EVENTS_LINE_H

#include <tidepool/learn.h>

/* "tidepool: event", then the members as key=value, texts in quotes; a line feed ends it. In texts
 * quotes, backslashes and control characters are written \xHH. One write, so that the lines of
 * several processes do not mix; not by stdio, whose lock may be the program's. */
void tide_event_write_error(const tide_event *event);

#endif

/* SPDX-License-Identifier: MIT */
/* Writes an event as a line of text on the standard error. */
#include "jit/events/line.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/base/assert.h"
#include "runtime/base/os.h"

enum { LINE_SPARE = 8 }; /* for the four last quotes and the line feed */

/* A line in the making; what finds no room is left out. */
typedef struct line_text {
    char bytes[2048];
    size_t length;
} line_text;

static void line_put(line_text *line, char byte)
{
    tide_assert(line->length < sizeof line->bytes);
    if (line->length < sizeof line->bytes - LINE_SPARE)
        line->bytes[line->length++] = byte;
}

static void line_put_escaped(line_text *line, unsigned char byte)
{
    static const char digits[] = "0123456789abcdef";
    const char text[] = {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    for (size_t i = 0; i < sizeof text; i++)
        line_put(line, text[i]);
}

static void line_add_text(line_text *line, const char *key, const char *text)
{
    line_put(line, ' ');
    while (*key != '\0')
        line_put(line, *key++);
    line_put(line, '=');
    line_put(line, '"');
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte < ' ' || byte == 0x7f || byte == '"' || byte == '\\')
            line_put_escaped(line, byte);
        else
            line_put(line, *text);
    }
    line->bytes[line->length++] = '"';
}

void tide_event_write_error(const tide_event *event)
{
    line_text line;
    int length =
        snprintf(line.bytes, sizeof line.bytes,
                 "tidepool: event serial=%" PRIu64 " time_ns=%" PRIu64 " round=%" PRIu64 " tier=%s",
                 event->serial, event->time_ns, event->round, tide_tier_name(event->tier));
    tide_assert(length > 0 && (size_t)length < sizeof line.bytes / 2);
    line.length = (size_t)length;
    line_add_text(&line, "kind", tide_event_name(event->kind));
    line_add_text(&line, "site", event->name);
    line_add_text(&line, "reason", event->reason);
    line_add_text(&line, "detail", event->detail);
    line.bytes[line.length++] = '\n';
    tide_os_write_error(line.bytes, line.length);
}

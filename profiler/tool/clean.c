/* SPDX-License-Identifier: MIT */
/* Texts of other processes and of files, made harmless, and how they are said. */
#define _GNU_SOURCE
#include "profiler/tool/clean.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/record/need.h"
#include "profiler/tool/tool.h"
#include "runtime/base/assert.h"
#include "runtime/base/utf8.h"

#define CLEAN_MORE "..."
enum { CLEAN_ROOM = 12 }; /* in less a mark would be most of the text */

/* The number of a character of so many bytes. */
static uint32_t clean_number(const char *text, unsigned length)
{
    unsigned char first = (unsigned char)text[0];
    tide_assert(length >= 1 && length <= 4);
    uint32_t number = length == 1 ? first : first & (0x7Fu >> length);
    for (unsigned i = 1; i < length; i++)
        number = number << 6 | ((unsigned char)text[i] & 0x3Fu);
    return number;
}

static bool clean_is_harmless(uint32_t number)
{
    static const struct {
        uint32_t first, last;
    } harmful[] = {
        {0, 0x1F},          {0x7F, 0x9F},     /* control characters       */
        {0x61C, 0x61C},     {0x200E, 0x200F}, /* marks of direction       */
        {0x2028, 0x2029},                     /* ends of lines            */
        {0x202A, 0x202E},   {0x2066, 0x2069}, /* turns of direction       */
        {0xFEFF, 0xFEFF},   {0xFFF9, 0xFFFB}, /* nothing that can be seen */
        {0xE0000, 0xE007F},
    };
    for (size_t i = 0; i < sizeof harmful / sizeof *harmful; i++)
        if (number >= harmful[i].first && number <= harmful[i].last)
            return false;
    return true;
}

size_t tool_character(const char *text, bool *shown)
{
    unsigned length = tide_utf8_length(text);
    tide_assert(*text != '\0');
    *shown = length > 0 && clean_is_harmless(clean_number(text, length));
    return length > 0 ? length : 1;
}

const char *tool_clean(const char *text, char *out, size_t room)
{
    size_t length = 0, cut = 0; /* so much is left where it is too long */
    tide_assert(room > 0);
    while (*text != '\0') {
        bool shown;
        size_t bytes = tool_character(text, &shown), takes = shown ? bytes : 1;
        if (length + takes >= room)
            break;
        memcpy(out + length, shown ? text : "?", takes);
        length += takes;
        text += bytes;
        cut = length + sizeof CLEAN_MORE <= room ? length : cut;
    }
    out[length] = '\0';
    if (*text != '\0' && room >= CLEAN_ROOM)
        memcpy(out + cut, CLEAN_MORE, sizeof CLEAN_MORE);
    tide_assert(strlen(out) < room);
    return out;
}

void tool_say(const char *format, ...)
{
    char *line = NULL;
    va_list values;
    va_start(values, format);
    int length = vasprintf(&line, format, values);
    va_end(values);
    char *clean = tide_need(length >= 0 ? malloc((size_t)length + 1) : NULL); /* it never grows */
    puts(tool_clean(line, clean, (size_t)length + 1));
    free(clean);
    free(line);
}

int tool_complain(int code, const char *format, ...)
{
    char text[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    tide_assert(code > TOOL_OK && text[0] != '\0');
    fputs("tidepool: ", stderr);
    for (const char *c = text; *c != '\0';) {
        bool shown;
        size_t bytes = tool_character(c, &shown);
        if (shown)
            fwrite(c, 1, bytes, stderr);
        for (size_t i = 0; !shown && i < bytes; i++)
            fprintf(stderr, "\\x%02x", (unsigned char)c[i]);
        c += bytes;
    }
    fputc('\n', stderr);
    return code;
}

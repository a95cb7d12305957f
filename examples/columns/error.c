/* SPDX-License-Identifier: MIT */
/* Messages that name a place, and the way to whoever watches progress. */
#include "error.h"

#include <stdarg.h>
#include <string.h>

static _Thread_local bool exhausted;

bool columns_fail(columns_error *error, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(error->text, sizeof error->text, format, values);
    va_end(values);
    exhausted = false;
    return false;
}

bool columns_exhaust(columns_error *error, const char *what, const char *why)
{
    columns_fail(error, "%s: %s", what, why);
    exhausted = true;
    return false;
}

bool columns_no_memory(columns_error *error)
{
    columns_fail(error, "out of memory");
    exhausted = true;
    return false;
}

bool columns_exhausted(void)
{
    return exhausted;
}

/* Characters in UTF-8: every byte that does not continue one. */
static size_t characters(const char *text, size_t bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++)
        count += ((unsigned char)text[i] & 0xc0) != 0x80;
    return count;
}

/* Where the line that holds `offset` begins, and its number. */
static size_t line_start(const char *text, size_t offset, size_t *line)
{
    size_t start = 0;
    *line = 1;
    for (size_t i = 0; i < offset; i++) {
        if (text[i] == '\n') {
            start = i + 1;
            (*line)++;
        }
    }
    return start;
}

void columns_place(char *out, size_t room, const char *name, const char *text, size_t offset)
{
    size_t line;
    size_t start = line_start(text, offset, &line);
    snprintf(out, room, "%s:%zu:%zu: ", name, line, characters(text + start, offset - start) + 1);
}

bool columns_query_fail(columns_error *error, const char *query, size_t offset, const char *format,
                        ...)
{
    size_t line;
    size_t start = line_start(query, offset, &line);
    size_t length = strcspn(query + start, "\n");
    size_t indent = characters(query + start, offset - start);
    columns_place(error->text, sizeof error->text, "query", query, offset);
    exhausted = false;

    size_t used = strlen(error->text);
    va_list values;
    va_start(values, format);
    vsnprintf(error->text + used, sizeof error->text - used, format, values);
    va_end(values);

    used = strlen(error->text);
    if (length < 300) /* a longer line would not help anyone to see the place */
        snprintf(error->text + used, sizeof error->text - used, "\n  %.*s\n  %*s^", (int)length,
                 query + start, (int)indent, "");
    return false;
}

static void (*watcher)(const char *doing, size_t done, size_t of);

void columns_watch(void (*step)(const char *doing, size_t done, size_t of))
{
    watcher = step;
}

void columns_step(const char *doing, size_t done, size_t of)
{
    if (watcher != NULL)
        watcher(doing, done, of);
}

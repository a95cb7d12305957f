/* SPDX-License-Identifier: MIT */
/* Reading CSV in two passes over the same scanner: measure, then cut. */
#include "csv.h"

#include "error.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the file ---- */

static bool read_all(csv_text *text, FILE *file, columns_error *error)
{
    size_t room = 0;
    for (;;) {
        if (text->length == room) {
            room = room == 0 ? 1 << 16 : 2 * room;
            char *bytes = realloc(text->bytes, room);
            if (bytes == NULL)
                return columns_no_memory(error);
            text->bytes = bytes;
        }
        size_t got = fread(text->bytes + text->length, 1, room - text->length, file);
        text->length += got;
        if (ferror(file))
            return columns_fail(error, "%s: %s", text->name, strerror(errno));
        if (got == 0)
            return true;
    }
}

bool csv_read(csv_text *text, const char *path, columns_error *error)
{
    bool standard = strcmp(path, "-") == 0;
    *text = (csv_text){.name = standard ? "standard input" : path};
    FILE *file = standard ? stdin : fopen(path, "rb");
    if (file == NULL)
        return columns_fail(error, "%s: %s", path, strerror(errno));
    bool ok = read_all(text, file, error);
    if (!standard)
        fclose(file);
    if (!ok) {
        free(text->bytes);
        text->bytes = NULL;
    }
    return ok;
}

/* ---- the scanner ---- */

typedef enum ending { END_OF_FIELD, END_OF_ROW, END_OF_TEXT, NOT_CLOSED, NOT_ENDED } ending;

typedef struct scanner {
    char *at;
    char *end;
} scanner;

static scanner scan(const csv_text *text)
{
    scanner s = {text->bytes, text->bytes + text->length};
    if (text->length >= 3 && memcmp(s.at, "\xef\xbb\xbf", 3) == 0)
        s.at += 3;
    return s;
}

/* What ends a field here? Steps over it. */
static ending after_field(scanner *s)
{
    if (s->at == s->end)
        return END_OF_TEXT;
    if (*s->at == ',') {
        s->at++;
        return END_OF_FIELD;
    }
    if (*s->at == '\r' && s->at + 1 < s->end && s->at[1] == '\n')
        s->at++;
    if (*s->at == '\n') {
        s->at++;
        return END_OF_ROW;
    }
    return NOT_ENDED;
}

static ending plain_field(scanner *s, csv_field *field)
{
    field->text = s->at;
    while (s->at < s->end && *s->at != ',' && *s->at != '\n')
        s->at++;
    field->length = (size_t)(s->at - field->text);
    bool crlf = s->at < s->end && *s->at == '\n' && field->length > 0 && s->at[-1] == '\r';
    if (crlf)
        field->length--;
    return after_field(s);
}

/* `cut` says whether doubled quotes may be undoubled now. */
static ending quoted_field(scanner *s, csv_field *field, bool cut)
{
    char *to = ++s->at;
    field->text = to;
    for (;; s->at++) {
        if (s->at == s->end)
            return NOT_CLOSED;
        if (*s->at == '"') {
            s->at++;
            if (s->at == s->end || *s->at != '"')
                break;
        }
        if (cut)
            *to = *s->at;
        to++;
    }
    field->length = (size_t)(to - field->text);
    return after_field(s);
}

static ending next_field(scanner *s, csv_field *field, bool cut)
{
    if (s->at < s->end && *s->at == '"')
        return quoted_field(s, field, cut);
    return plain_field(s, field);
}

/* Steps over an empty line; a table of one column may mean it. */
static bool skip_empty_line(scanner *s, size_t columns)
{
    char *at = s->at;
    if (columns == 1 || at == s->end)
        return false;
    if (*at == '\r' && at + 1 < s->end)
        at++;
    if (*at != '\n')
        return false;
    s->at = at + 1;
    return true;
}

/* ---- the passes ---- */

static bool fail_at(const csv_text *text, const char *at, columns_error *error, const char *message)
{
    char place[600];
    columns_place(place, sizeof place, text->name, text->bytes, (size_t)(at - text->bytes));
    return columns_fail(error, "%s%s", place, message);
}

static bool fail_ragged(const csv_text *text, const char *at, size_t fields, size_t columns,
                        columns_error *error)
{
    char message[120];
    snprintf(message, sizeof message, "this row has %s%zu field%s, the header has %zu",
             fields > columns ? "more than " : "", fields > columns ? columns : fields,
             (fields > columns ? columns : fields) == 1 ? "" : "s", columns);
    return fail_at(text, at, error, message);
}

/* Counts the fields of a row; columns = 0 in the header, whose length is the measure. */
static bool measure_row(const csv_text *text, scanner *s, size_t columns, size_t *fields,
                        columns_error *error)
{
    ending how = END_OF_FIELD;
    for (*fields = 0; how == END_OF_FIELD;) {
        csv_field field;
        const char *start = s->at;
        if (columns > 0 && *fields == columns)
            return fail_ragged(text, start, columns + 1, columns, error);
        how = next_field(s, &field, false);
        if (how == NOT_CLOSED)
            return fail_at(text, start, error, "this quote is never closed");
        if (how == NOT_ENDED)
            return fail_at(text, s->at, error, "text after a closing quote");
        (*fields)++;
    }
    if (*fields < columns) {
        const char *end = s->at;
        if (how == END_OF_ROW) /* point at the end of the row, not at the next one */
            end -= end[-1] == '\n' && end - 2 >= text->bytes && end[-2] == '\r' ? 2 : 1;
        return fail_ragged(text, end, *fields, columns, error);
    }
    return true;
}

bool csv_measure(const csv_text *text, size_t *rows, size_t *columns, columns_error *error)
{
    scanner s = scan(text);
    *rows = *columns = 0;
    while (skip_empty_line(&s, 0)) {
    }
    if (s.at == s.end)
        return fail_at(text, s.at, error, "empty: there is no header");
    const char *nul = memchr(s.at, '\0', (size_t)(s.end - s.at));
    if (nul != NULL)
        return fail_at(text, nul, error, "a NUL byte: this is not text");
    while (s.at < s.end) {
        size_t fields;
        if (*rows > 0 && skip_empty_line(&s, *columns))
            continue;
        if (!measure_row(text, &s, *columns, &fields, error))
            return false;
        *columns = fields;
        (*rows)++;
        if (*rows % 65536 == 0)
            columns_step("reading", (size_t)(s.at - text->bytes), text->length);
    }
    return true;
}

void csv_cut(csv_text *text, size_t columns, csv_field *fields)
{
    scanner s = scan(text);
    size_t count = 0;
    while (s.at < s.end) {
        if (count % columns == 0 && skip_empty_line(&s, count == 0 ? 0 : columns))
            continue;
        ending how = next_field(&s, &fields[count], true);
        assert(how <= END_OF_TEXT);
        count++;
        /* A comma right before the end of the text has one more, empty, field after it. */
        if (how == END_OF_FIELD && s.at == s.end)
            fields[count++] = (csv_field){s.at, 0};
    }
    assert(count % columns == 0);
}

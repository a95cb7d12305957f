/* SPDX-License-Identifier: MIT */
/* Tables, and how a CSV file becomes one: it is cut into fields, and then each column gets the
 * narrowest type that all its fields have. An empty field is null. */
#include "columns.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *columns_memory(void *old, size_t bytes)
{
    void *memory = realloc(old, bytes > 0 ? bytes : 1);
    if (memory != NULL)
        return memory;
    fputs("columns: no memory\n", stderr);
    exit(1);
}

void columns_refuse(columns_error *error, jmp_buf back, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    longjmp(back, 1);
}

/* ---- columns -------------------------------------------------------------------------------- */

tide_type columns_type(columns_kind kind)
{
    static tide_type types[] = {TIDE_I64, TIDE_F64, TIDE_BOOL, TIDE_NO_TYPE};
    if (types[kind] == TIDE_NO_TYPE)
        types[kind] =
            tide_type_register("columns text", sizeof(columns_text), _Alignof(columns_text));
    return types[kind];
}

columns_table *columns_table_create(size_t count)
{
    columns_table *table = columns_memory(NULL, sizeof *table);
    *table = (columns_table){.count = count};
    table->columns = columns_memory(NULL, count * sizeof *table->columns);
    table->names = columns_memory(NULL, count * sizeof *table->names);
    memset(table->columns, 0, count * sizeof *table->columns);
    return table;
}

void columns_table_reserve(columns_table *table, size_t rows)
{
    if (rows <= table->room)
        return;
    table->room = rows > 2 * table->room ? rows : 2 * table->room;
    for (size_t i = 0; i < table->count; i++) {
        columns_vector *c = &table->columns[i];
        c->values = columns_memory(c->values, table->room * columns_width(c->kind));
        c->nulls = columns_memory(c->nulls, table->room);
    }
}

void columns_table_destroy(columns_table *table)
{
    if (table == NULL)
        return;
    for (size_t i = 0; i < table->count; i++) {
        free(table->columns[i].values);
        free(table->columns[i].nulls);
    }
    free(table->columns);
    free(table->names);
    free(table->bytes);
    free(table);
}

/* ---- fields --------------------------------------------------------------------------------- */

typedef struct reader {
    const char *name; /* of the file */
    char *bytes, *at, *end;
    size_t line, columns, rows, count, room;
    columns_text *fields; /* of all rows, one after another */
    columns_error *error;
    jmp_buf refused;
} reader;

#define REFUSE(r, words, ...)                                                 \
    columns_refuse((r)->error, (r)->refused, "%.200s:%zu: " words, (r)->name, \
                   (r)->line __VA_OPT__(, ) __VA_ARGS__)

/* The place is at the field's first byte, then at what ends it. Quotes are taken off where the field
 * lies. */
static void read_field(reader *r, columns_text *field)
{
    bool quoted = r->at < r->end && *r->at == '"', closed = !quoted;
    char *to = r->at += quoted;
    field->start = to;
    for (; r->at < r->end; *to++ = *r->at++) {
        if (!quoted && (*r->at == ',' || *r->at == '\n' || *r->at == '\r'))
            break;
        closed = quoted && *r->at == '"' && (++r->at == r->end || *r->at != '"');
        if (closed)
            break;
        r->line += *r->at == '\n';
    }
    field->length = (size_t)(to - field->start);
    if (quoted && !closed)
        REFUSE(r, "a quote is not closed");
    r->at += r->at < r->end && *r->at == '\r';
    if (r->at < r->end && *r->at != ',' && *r->at != '\n')
        REFUSE(r, "something stands behind a quoted field");
}

/* Empty lines are no rows. */
static void read_row(reader *r)
{
    size_t before = r->count;
    bool empty = *r->at == '\n' || *r->at == '\r';
    for (bool more = !empty; more; r->at += more) {
        if (r->count == r->room)
            r->fields = columns_memory(r->fields, (r->room = 2 * r->room + 64) * sizeof *r->fields);
        read_field(r, &r->fields[r->count++]);
        more = r->at < r->end && *r->at == ',';
    }
    if (r->columns == 0)
        r->columns = r->count;
    if (!empty && r->count - before != r->columns)
        REFUSE(r, "%zu fields, where the first row has %zu", r->count - before, r->columns);
    r->line += r->at < r->end && *r->at == '\n';
    r->at += r->at < r->end;
}

/* ---- types ---------------------------------------------------------------------------------- */

static bool is_word(const columns_text *t, const char *word)
{
    return t->length == strlen(word) && memcmp(t->start, word, t->length) == 0;
}

/* Is the field of this kind, and which value is it? What is longer than any number is a text. */
static bool convert(const columns_text *t, columns_kind kind, columns_value *out)
{
    char digits[40], *end = digits;
    size_t plain = 0;
    if (kind == TEXT)
        return out->text = *t, true;
    if (kind == BOOLEAN)
        return out->boolean = is_word(t, "true"), out->boolean || is_word(t, "false");
    while (plain < t->length && strchr("0123456789+-.eE", t->start[plain]) != NULL)
        plain++;
    if (plain != t->length || plain >= sizeof digits)
        return false;
    memcpy(digits, t->start, plain);
    digits[plain] = '\0';
    errno = 0;
    if (kind == INTEGER)
        out->integer = strtoll(digits, &end, 10);
    else
        out->real = strtod(digits, &end);
    return *end == '\0' && end != digits && errno == 0;
}

/* `fields`: the first of the column; the next is `columns` further. False: not of this kind. */
static bool fill_column(columns_vector *c, const columns_text *fields, const reader *r)
{
    for (size_t row = 0; row < r->rows; row++) {
        columns_value value = {0};
        const columns_text *field = &fields[row * r->columns];
        c->nulls[row] = field->length == 0;
        if ((!c->nulls[row] || c->kind == TEXT) && !convert(field, c->kind, &value))
            return false;
        memcpy(columns_at(c, row), &value, columns_width(c->kind));
    }
    return true;
}

static columns_table *make_table(reader *r, size_t times)
{
    static const columns_kind kinds[] = {BOOLEAN, INTEGER, REAL, TEXT};
    columns_table *table = columns_table_create(r->columns);
    r->rows = r->count / r->columns - 1;
    memcpy(table->names, r->fields, r->columns * sizeof *r->fields);
    table->bytes = r->bytes;
    for (size_t i = 0; i < r->columns; i++)
        table->columns[i].kind = TEXT; /* for which there is room enough for all */
    columns_table_reserve(table, r->rows * times);
    for (size_t i = 0; i < r->columns; i++) {
        columns_vector *c = &table->columns[i];
        const columns_kind *kind = kinds;
        do
            c->kind = *kind++;
        while (!fill_column(c, r->fields + r->columns + i, r));
        for (size_t done = r->rows; done < r->rows * times; done += r->rows) {
            memcpy(columns_at(c, done), c->values, r->rows * columns_width(c->kind));
            memcpy(c->nulls + done, c->nulls, r->rows);
        }
    }
    table->rows = r->rows * times;
    return table;
}

/* ---- files ---------------------------------------------------------------------------------- */

static void read_file(reader *r)
{
    size_t room = 0;
    FILE *file = strcmp(r->name, "-") == 0 ? stdin : fopen(r->name, "r");
    ssize_t length = file != NULL ? getdelim(&r->bytes, &room, '\0', file) : -1;
    if (length < 0 || (length > 0 && r->bytes[length - 1] == '\0'))
        REFUSE(r, "%s", file == NULL ? strerror(errno) : "it is empty or no text");
    r->end = r->bytes + length;
    if (file != stdin)
        fclose(file);
}

columns_table *columns_table_load(const char *path, size_t times, columns_error *error)
{
    columns_table *table = NULL;
    reader *r = columns_memory(NULL, sizeof *r);
    *r = (reader){.name = path, .line = 1, .error = error};
    if (setjmp(r->refused) == 0) {
        read_file(r);
        for (r->at = r->bytes; r->at < r->end;)
            read_row(r);
        if (r->columns == 0)
            REFUSE(r, "there is no row with the names of columns");
        table = make_table(r, times);
    } else {
        free(r->bytes);
    }
    free(r->fields);
    free(r);
    return table;
}

/* SPDX-License-Identifier: MIT */
/* Printing tables. */
#include "print.h"

#include "error.h"
#include "number.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_CHARACTERS = 48, GAP = 2 };

/* What a cell shows, and how wide that is. */
typedef struct cell {
    char text[4 * MOST_CHARACTERS + 16];
    size_t bytes;
    size_t width;
} cell;

/* ---- cells ---- */

/* Bytes of the character that begins here. */
static size_t character_bytes(const char *text, size_t left)
{
    size_t bytes = 1;
    while (bytes < left && ((unsigned char)text[bytes] & 0xc0) == 0x80)
        bytes++;
    return bytes;
}

/* The character as it is, or escaped: "\n", "\t", "\x1b". */
static void add_character(cell *out, const char *text, size_t bytes)
{
    unsigned char first = (unsigned char)text[0];
    char *to = out->text + out->bytes;
    if (first >= 0x20 && first != 0x7f && bytes <= 4) {
        memcpy(to, text, bytes);
        out->bytes += bytes;
        out->width++;
        return;
    }
    int length = first == '\n'   ? sprintf(to, "\\n")
                 : first == '\t' ? sprintf(to, "\\t")
                                 : sprintf(to, "\\x%02x", first);
    out->bytes += (size_t)length;
    out->width += (size_t)length;
}

static cell cell_of_text(const char *text, size_t length)
{
    cell out = {.width = 0};
    for (size_t at = 0; at < length;) {
        size_t bytes = character_bytes(text + at, length - at);
        if (out.width >= MOST_CHARACTERS - 1 && at + bytes < length) {
            add_character(&out, "…", strlen("…"));
            break;
        }
        add_character(&out, text + at, bytes);
        at += bytes;
    }
    return out;
}

static cell cell_of(const columns_table *table, const column *c, size_t row, bool exact)
{
    char number[32];
    if (column_null(c, row))
        return exact ? (cell){.width = 0} : cell_of_text("null", 4);
    switch (c->type) {
    case TIDE_I64: sprintf(number, "%" PRId64, ((const int64_t *)c->values)[row]); break;
    case TIDE_F64: write_real(number, ((const double *)c->values)[row], exact); break;
    case TIDE_BOOL: strcpy(number, ((const bool *)c->values)[row] ? "true" : "false"); break;
    default: {
        const word *w = &dictionary_words(table->words)[((const int32_t *)c->values)[row]];
        return cell_of_text(w->text, w->bytes);
    }
    }
    return cell_of_text(number, strlen(number));
}

/* ---- tables for people ---- */

static void repeat(FILE *out, char c, size_t count)
{
    while (count-- > 0)
        fputc(c, out);
}

static void print_cell(FILE *out, const cell *shown, size_t width, bool right, bool last)
{
    size_t pad = width - shown->width;
    repeat(out, ' ', right ? pad : 0);
    fwrite(shown->text, 1, shown->bytes, out);
    if (!last)
        repeat(out, ' ', (right ? 0 : pad) + GAP);
}

static size_t width_of(const columns_table *table, const column *c)
{
    size_t width = cell_of_text(c->name, strlen(c->name)).width;
    for (size_t row = 0; row < table->rows; row++) {
        size_t wide = cell_of(table, c, row, false).width;
        if (wide > width)
            width = wide;
    }
    return width;
}

static bool is_number(const column *c)
{
    return c->type == TIDE_I64 || c->type == TIDE_F64;
}

/* A line of the table: names (row = -2), a rule (-1), or a row. */
static void print_line(FILE *out, const columns_table *table, const size_t *widths, int64_t row)
{
    for (size_t i = 0; i < table->column_count; i++) {
        const column *c = &table->columns[i];
        bool last = i + 1 == table->column_count;
        if (row == -1) {
            repeat(out, '-', widths[i]);
            repeat(out, ' ', last ? 0 : GAP);
            continue;
        }
        cell shown = row == -2 ? cell_of_text(c->name, strlen(c->name))
                               : cell_of(table, c, (size_t)row, false);
        print_cell(out, &shown, widths[i], is_number(c), last);
    }
    fputc('\n', out);
}

bool print_table(FILE *out, const columns_table *table, size_t found, columns_error *error)
{
    tide_pool *pool = tide_pool_local();
    TIDE_SCOPE(pool);
    size_t *widths = tide_acquire(pool, size_t, table->column_count);
    if (widths == NULL)
        return columns_exhaust(error, "no memory for temporaries", tide_error_message());
    for (size_t i = 0; i < table->column_count; i++)
        widths[i] = width_of(table, &table->columns[i]);
    for (int64_t row = -2; row < (int64_t)table->rows; row++)
        print_line(out, table, widths, row);
    if (found > table->rows)
        fprintf(out, "… %zu more rows\n", found - table->rows);
    return true;
}

/* ---- CSV ---- */

static void print_field(FILE *out, const char *text, size_t length)
{
    if (memchr(text, '"', length) == NULL && memchr(text, ',', length) == NULL &&
        memchr(text, '\n', length) == NULL && memchr(text, '\r', length) == NULL) {
        fwrite(text, 1, length, out);
        return;
    }
    fputc('"', out);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"')
            fputc('"', out);
        fputc(text[i], out);
    }
    fputc('"', out);
}

static void print_csv_value(FILE *out, const columns_table *table, const column *c, size_t row)
{
    if (c->type == TIDE_I32 && !column_null(c, row)) {
        const word *w = &dictionary_words(table->words)[((const int32_t *)c->values)[row]];
        print_field(out, w->text, w->bytes);
        return;
    }
    cell shown = cell_of(table, c, row, true);
    fwrite(shown.text, 1, shown.bytes, out);
}

void print_csv(FILE *out, const columns_table *table)
{
    for (size_t i = 0; i < table->column_count; i++) {
        fputs(i > 0 ? "," : "", out);
        print_field(out, table->columns[i].name, strlen(table->columns[i].name));
    }
    fputc('\n', out);
    for (size_t row = 0; row < table->rows; row++) {
        for (size_t i = 0; i < table->column_count; i++) {
            fputs(i > 0 ? "," : "", out);
            print_csv_value(out, table, &table->columns[i], row);
        }
        fputc('\n', out);
    }
}

/* ---- columns ---- */

void print_columns(FILE *out, const columns_table *table)
{
    size_t width = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        cell name = cell_of_text(table->columns[i].name, strlen(table->columns[i].name));
        width = name.width > width ? name.width : width;
    }
    for (size_t i = 0; i < table->column_count; i++) {
        const column *c = &table->columns[i];
        cell name = cell_of_text(c->name, strlen(c->name));
        size_t nulls = 0;
        for (size_t row = 0; row < table->rows; row++)
            nulls += column_null(c, row);
        print_cell(out, &name, width, false, false);
        fprintf(out, nulls > 0 ? "%-7s  %zu null\n" : "%s\n", type_word(c->type), nulls);
    }
    fprintf(out, "%zu rows\n", table->rows);
}

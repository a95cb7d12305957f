/* SPDX-License-Identifier: MIT */
/* From CSV to a table: what type each column has, then its values.
 *
 * A column is integer if every field that is not empty is an integer of 64 bits, else real if
 * every one is a number, boolean if every one is true or false, and text in every other case
 * (also if all are empty). An empty field is null, in quotes or not. */
#include "csv.h"
#include "error.h"
#include "number.h"
#include "table.h"

#include <stdlib.h>
#include <string.h>

/* One column of a file that was cut into fields. */
typedef struct raw_column {
    const csv_field *fields; /* of the first row; the next row's is `stride` further */
    size_t stride;
    size_t rows;
} raw_column;

static csv_field raw_field(const raw_column *raw, size_t row)
{
    return raw->fields[row * raw->stride];
}

/* Each candidate falls at the first field that is not of its type. */
static tide_type infer(const raw_column *raw, bool *nullable)
{
    bool integer = true, real = true, boolean = true;
    size_t values = 0;
    for (size_t row = 0; row < raw->rows; row++) {
        csv_field f = raw_field(raw, row);
        if (f.length == 0)
            continue;
        values++;
        if (integer)
            integer = read_integer(f.text, f.length, &(int64_t){0});
        if (real && !integer)
            real = read_real(f.text, f.length, &(double){0});
        if (boolean)
            boolean = read_boolean(f.text, f.length, &(bool){0});
        if (!real && !boolean)
            break;
    }
    *nullable = false;
    for (size_t row = 0; row < raw->rows && !*nullable; row++)
        *nullable = raw_field(raw, row).length == 0;
    if (values == 0)
        return TIDE_I32;
    return integer ? TIDE_I64 : real ? TIDE_F64 : boolean ? TIDE_BOOL : TIDE_I32;
}

static bool convert_field(csv_field f, tide_type type, dictionary *words, void *out)
{
    switch (type) {
    case TIDE_I64: return read_integer(f.text, f.length, out);
    case TIDE_F64: return read_real(f.text, f.length, out);
    case TIDE_BOOL: return read_boolean(f.text, f.length, out);
    default: return (*(int32_t *)out = dictionary_code(words, f.text, f.length)) >= 0;
    }
}

/* False only when the dictionary has no memory: the type was inferred from these very fields. */
static bool convert(const raw_column *raw, column *c, dictionary *words)
{
    for (size_t row = 0; row < raw->rows; row++) {
        csv_field f = raw_field(raw, row);
        if (c->nullable)
            c->nulls[row] = f.length == 0;
        if (f.length == 0)
            memset(column_at(c, row), 0, type_width(c->type));
        else if (!convert_field(f, c->type, words, column_at(c, row)))
            return false;
    }
    return true;
}

/* The header's text as a name; what has none is called by its number. */
static bool name_of(csv_field f, size_t index, char **out)
{
    char numbered[32];
    if (f.length == 0) {
        f.length = (size_t)snprintf(numbered, sizeof numbered, "column %zu", index + 1);
        f.text = numbered;
    }
    *out = calloc(1, f.length + 1);
    if (*out != NULL)
        memcpy(*out, f.text, f.length);
    return *out != NULL;
}

static bool load_column(columns_table *table, size_t index, const raw_column *raw, csv_field header)
{
    bool nullable;
    char *name;
    tide_type type = infer(raw, &nullable);
    if (!name_of(header, index, &name))
        return false;
    bool named = table_set_column(table, index, name, type, nullable);
    free(name);
    return named;
}

static bool load_columns(columns_table *table, const csv_field *fields, size_t rows)
{
    size_t count = table->column_count;
    for (size_t i = 0; i < count; i++) {
        raw_column raw = {fields + count + i, count, rows};
        columns_step("inferring", i, count);
        if (!load_column(table, i, &raw, fields[i]))
            return false;
    }
    if (!table_reserve(table, rows > 0 ? rows : 1))
        return false;
    for (size_t i = 0; i < count; i++) {
        raw_column raw = {fields + count + i, count, rows};
        columns_step("converting", i, count);
        if (!convert(&raw, &table->columns[i], table->words))
            return false;
    }
    table->rows = rows;
    return true;
}

/* The fields are needed for this call only, and how many they are was not known before: a
 * temporary array of a type of our own. */
static columns_table *build(csv_text *text, columns_error *error)
{
    size_t rows, count;
    if (!csv_measure(text, &rows, &count, error))
        return NULL;
    tide_pool *pool = tide_pool_local();
    TIDE_SCOPE(pool);
    csv_field *fields = tide_acquire(pool, csv_field, rows * count);
    if (fields == NULL) {
        columns_exhaust(error, "out of memory", tide_error_message());
        return NULL;
    }
    csv_cut(text, count, fields);

    dictionary *words = dictionary_create();
    columns_table *table = words == NULL ? NULL : table_create(words, count);
    dictionary_release(words); /* the table's now */
    if (table != NULL && load_columns(table, fields, rows - 1))
        return table;
    columns_table_destroy(table);
    columns_no_memory(error);
    return NULL;
}

/* A program loads few files, and their fields may be many: no need to keep that slot. */
static columns_table *load(csv_text *text, columns_error *error)
{
    columns_table *table = build(text, error);
    tide_pool_trim(tide_pool_local(), tide_type_of(csv_field));
    return table;
}

columns_table *columns_table_load(const char *path, columns_error *error)
{
    csv_text text;
    if (!csv_read(&text, path, error))
        return NULL;
    columns_table *table = load(&text, error);
    free(text.bytes);
    return table;
}

columns_table *columns_table_parse(const char *name, const char *bytes, size_t length,
                                   columns_error *error)
{
    csv_text text = {.name = name, .bytes = malloc(length + 1), .length = length};
    if (text.bytes == NULL) {
        columns_no_memory(error);
        return NULL;
    }
    if (length > 0)
        memcpy(text.bytes, bytes, length);
    columns_table *table = load(&text, error);
    free(text.bytes);
    return table;
}

/* elements.csv, put into the program by the assembler. */
__asm__(".section .rodata\n"
        ".globl columns_elements_start, columns_elements_end\n"
        ".hidden columns_elements_start, columns_elements_end\n"
        "columns_elements_start: .incbin \"" COLUMNS_ELEMENTS "\"\n"
        "columns_elements_end:\n"
        ".previous\n");
extern const char columns_elements_start[], columns_elements_end[];

columns_table *columns_table_elements(columns_error *error)
{
    return columns_table_parse("elements.csv", columns_elements_start,
                               (size_t)(columns_elements_end - columns_elements_start), error);
}

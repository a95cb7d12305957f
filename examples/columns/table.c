/* SPDX-License-Identifier: MIT */
/* Tables: memory, comparison, repetition. */
#include "table.h"

#include "error.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

columns_table *table_create(dictionary *words, size_t column_count)
{
    columns_table *table = calloc(1, sizeof *table);
    column *columns = calloc(column_count > 0 ? column_count : 1, sizeof *columns);
    if (table == NULL || columns == NULL) {
        free(table);
        free(columns);
        return NULL;
    }
    table->words = dictionary_share(words);
    table->columns = columns;
    table->column_count = column_count;
    return table;
}

void columns_table_destroy(columns_table *table)
{
    if (table == NULL)
        return;
    for (size_t i = 0; i < table->column_count; i++) {
        free(table->columns[i].name);
        free(table->columns[i].values);
        free(table->columns[i].nulls);
    }
    free(table->columns);
    dictionary_release(table->words);
    free(table);
}

bool table_set_column(columns_table *table, size_t index, const char *name, tide_type type,
                      bool nullable)
{
    assert(index < table->column_count && table->room == 0);
    column *c = &table->columns[index];
    c->name = strdup(name);
    c->type = type;
    c->nullable = nullable;
    return c->name != NULL;
}

static bool column_reserve(column *c, size_t rows)
{
    void *values = realloc(c->values, rows * type_width(c->type));
    if (values == NULL)
        return false;
    c->values = values;
    if (!c->nullable)
        return true;
    bool *nulls = realloc(c->nulls, rows * sizeof *nulls);
    if (nulls == NULL)
        return false;
    c->nulls = nulls;
    return true;
}

bool table_reserve(columns_table *table, size_t rows)
{
    if (rows <= table->room)
        return true;
    if (rows < 2 * table->room)
        rows = 2 * table->room;
    if (rows > SIZE_MAX / 16)
        return false;
    for (size_t i = 0; i < table->column_count; i++)
        if (!column_reserve(&table->columns[i], rows))
            return false;
    table->room = rows;
    return true;
}

size_t columns_table_rows(const columns_table *table)
{
    return table->rows;
}

const char *type_word(tide_type type)
{
    switch (type) {
    case TIDE_I64: return "integer";
    case TIDE_F64: return "real";
    case TIDE_BOOL: return "boolean";
    default: return "text";
    }
}

/* Nulls are compared as nulls, whatever value stands in for them. */
static bool column_equal(const column *a, const column *b, size_t rows)
{
    if (a->type != b->type || strcmp(a->name, b->name) != 0)
        return false;
    for (size_t i = 0; i < rows; i++) {
        if (column_null(a, i) != column_null(b, i))
            return false;
        if (!column_null(a, i) &&
            memcmp(column_at(a, i), column_at(b, i), type_width(a->type)) != 0)
            return false;
    }
    return true;
}

bool columns_table_equal(const columns_table *a, const columns_table *b)
{
    if (a->rows != b->rows || a->column_count != b->column_count || a->words != b->words)
        return false;
    for (size_t i = 0; i < a->column_count; i++)
        if (!column_equal(&a->columns[i], &b->columns[i], a->rows))
            return false;
    return true;
}

static void column_repeat(const column *from, column *to, size_t rows, size_t times)
{
    size_t bytes = rows * type_width(from->type);
    for (size_t i = 0; i < times; i++) {
        memcpy((char *)to->values + i * bytes, from->values, bytes);
        if (to->nullable)
            memcpy(to->nulls + i * rows, from->nulls, rows);
    }
}

columns_table *columns_table_repeat(const columns_table *table, size_t times, columns_error *error)
{
    size_t rows;
    columns_table *result = table_create(table->words, table->column_count);
    bool ok = result != NULL && !__builtin_mul_overflow(table->rows, times, &rows);
    for (size_t i = 0; ok && i < table->column_count; i++) {
        const column *c = &table->columns[i];
        ok = table_set_column(result, i, c->name, c->type, c->nullable);
    }
    if (!ok || !table_reserve(result, rows)) {
        columns_table_destroy(result);
        columns_no_memory(error);
        return NULL;
    }
    for (size_t i = 0; rows > 0 && i < table->column_count; i++)
        column_repeat(&table->columns[i], &result->columns[i], table->rows, times);
    result->rows = rows;
    return result;
}

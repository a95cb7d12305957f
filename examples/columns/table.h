/* SPDX-License-Identifier: MIT */
/* Tables: columns of equal length. A column has one of four element types, known at run time:
 *
 *   TIDE_I64   integer        TIDE_BOOL   boolean
 *   TIDE_F64   real           TIDE_I32    text, as a code of the table's dictionary
 *
 * Every element holds a valid value of its type, null or not, so that loops need not look at the
 * nulls before they compute. */
#ifndef COLUMNS_TABLE_H
#define COLUMNS_TABLE_H

#include "dictionary.h"
#include "engine.h"

typedef struct column {
    char *name;
    tide_type type;
    bool nullable; /* whether there are nulls at all */
    void *values;
    bool *nulls; /* NULL unless nullable */
} column;

struct columns_table {
    dictionary *words;
    column *columns;
    size_t column_count;
    size_t rows;
    size_t room; /* rows that the columns have memory for */
};

/* No rows; columns without name and type yet. Shares the dictionary. NULL: no memory. */
columns_table *table_create(dictionary *words, size_t column_count);

/* Gives a column its name (copied), type and nullability, before the first row. */
bool table_set_column(columns_table *table, size_t column, const char *name, tide_type type,
                      bool nullable);

/* Room for so many rows in every column; grows by doubling. */
bool table_reserve(columns_table *table, size_t rows);

/* Bytes of an element; the types above only. */
static inline size_t type_width(tide_type type)
{
    return type == TIDE_BOOL ? 1 : type == TIDE_I32 ? 4 : 8;
}

/* "integer", "real", "boolean", "text". */
const char *type_word(tide_type type);

/* The address of an element. */
static inline void *column_at(const column *c, size_t row)
{
    return (char *)c->values + row * type_width(c->type);
}

static inline bool column_null(const column *c, size_t row)
{
    return c->nulls != NULL && c->nulls[row];
}

#endif

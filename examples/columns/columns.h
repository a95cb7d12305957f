/* SPDX-License-Identifier: MIT */
/* A small columnar engine: a table, a query that is checked against it once, and runs of that.
 *
 *   columns_job *job = columns_job_create(columns_table_load("weather.csv", 1, &error),
 *                                         "weather, avg(wind)", &error);
 *   columns_table *result = columns_run(job, pool, &error); // as often as you like
 *
 * Every operator takes its temporaries from a Tidepool pool; their types are those of the columns,
 * which the file decides. Memory that outlives a run is malloc's; without it the process ends. */
#ifndef COLUMNS_H
#define COLUMNS_H

#include <setjmp.h>
#include <string.h>

#include <tidepool/tidepool.h>

typedef struct columns_error {
    char text[400]; /* a sentence, with the place */
} columns_error;

/* Writes a message and jumps to who reads. */
_Noreturn void columns_refuse(columns_error *error, jmp_buf back, const char *format, ...);

/* ---- tables --------------------------------------------------------------------------------- */

typedef enum columns_kind { INTEGER, REAL, BOOLEAN, TEXT } columns_kind;

typedef struct columns_text {
    const char *start;
    size_t length;
} columns_text;

typedef union columns_value {
    int64_t integer;
    double real;
    bool boolean;
    columns_text text;
} columns_value;

/* A column or some rows of one: int64_t, double, bool or columns_text, by its kind; and which of them
 * are null. */
typedef struct columns_vector {
    columns_kind kind;
    void *values;
    bool *nulls;
} columns_vector;

typedef struct columns_table {
    size_t rows, room, count;
    columns_vector *columns;
    columns_text *names; /* of the columns                               */
    char *bytes;         /* of the file, in which texts are; else NULL */
} columns_table;

tide_type columns_type(columns_kind kind);
void *columns_memory(void *old, size_t bytes); /* as realloc, never NULL */

/* The bytes of a value; a row's; the value itself. */
static inline size_t columns_width(columns_kind kind)
{
    return kind == TEXT ? sizeof(columns_text) : kind == BOOLEAN ? sizeof(bool) : sizeof(int64_t);
}

static inline void *columns_at(const columns_vector *v, size_t row)
{
    return (char *)v->values + row * columns_width(v->kind);
}

static inline columns_value columns_value_at(const columns_vector *v, size_t row)
{
    columns_value value = {0};
    memcpy(&value, columns_at(v, row), columns_width(v->kind));
    return value;
}

/* A CSV file whose first row has the names; "-" is standard input. Each row comes so many times over.
 * NULL with an error. */
columns_table *columns_table_load(const char *path, size_t times, columns_error *error);
columns_table *columns_table_create(size_t count);
void columns_table_reserve(columns_table *table, size_t rows);
void columns_table_destroy(columns_table *table);

/* ---- queries -------------------------------------------------------------------------------- */

typedef enum columns_op {
    COLUMN,
    LITERAL,
    TO_REAL,
    LENGTH,
    NOT,
    IS_NULL,
    BINARY,
    AGGREGATE
} columns_op;

typedef struct columns_node {
    columns_op op;
    char sign;         /* BINARY: + - * / % = ! < > l g (<= >=) & |. AGGREGATE: its first letter,
                              for min and max < and > */
    columns_kind kind; /* of the result */
    size_t column;     /* COLUMN        */
    columns_value literal; /* LITERAL       */
    const struct columns_node *args[2];
} columns_node;

enum { COLUMNS_ITEMS = 64, COLUMNS_NODES = 400 };

/* What is computed of the rows for which the condition holds. If some items are aggregates, the others
 * are what the rows are grouped by. */
typedef struct columns_job {
    columns_table *table;
    char *query;
    bool grouped;
    size_t items, nodes;
    const columns_node *item[COLUMNS_ITEMS], *where; /* NULL: all rows */
    columns_text names[COLUMNS_ITEMS];
    columns_node node[COLUMNS_NODES];
} columns_job;

/* The job owns the table. NULL with an error, and the table is gone. */
columns_job *columns_job_create(columns_table *table, const char *query, columns_error *error);
void columns_job_destroy(columns_job *job);

/* ---- runs ----------------------------------------------------------------------------------- */

/* One run. The pool is left as it was found. The result belongs to the caller; its texts are the
 * job's. NULL with an error: there was no memory for temporaries. */
columns_table *columns_run(const columns_job *job, tide_pool *pool, columns_error *error);

#endif

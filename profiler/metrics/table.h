/* SPDX-License-Identifier: MIT */
/* Series by their labels, as many as are allowed; sums of the rest. */
#ifndef TIDEPOOL_PROFILER_METRICS_TABLE_H
#define TIDEPOOL_PROFILER_METRICS_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { TIDE_TABLE_LABELS = 3, TIDE_TABLE_VALUES = 12, TIDE_TABLE_LABEL_BYTES = 96 };

/* What a list of a document is made into: `labels` are members whose texts tell a series, `values`
 * members that are added up. Both end with NULL. The label "file" is "FILE:LINE". */
typedef struct tide_table_form {
    const char *list;
    const char *labels[TIDE_TABLE_LABELS + 1];
    const char *values[TIDE_TABLE_VALUES + 1];
} tide_table_form;

typedef char tide_table_labels[TIDE_TABLE_LABELS][TIDE_TABLE_LABEL_BYTES];

typedef struct tide_table_row {
    tide_table_labels labels;
    double values[TIDE_TABLE_VALUES];
    double things;       /* that were added                                     */
    const json_t *first; /* of them; the document's. NULL in a row of "other" */
} tide_table_row;

typedef struct tide_table {
    const tide_table_form *form;
    size_t most; /* rows; beside them there may be one of "other" */
    tide_table_row *rows;
    size_t count, room;
} tide_table;

/* Adds each object of the document's list to the row of its labels, or to "other". False without
 * memory. */
bool tide_table_fill(tide_table *table, const json_t *document);

/* Makes these rows, with nothing in them, so that adding such objects later takes no memory and
 * finds the same rows. False without memory. */
bool tide_table_reserve(tide_table *table, const json_t *document);

/* Adds one object. */
bool tide_table_add(tide_table *table, const json_t *object);

/* Adds the values of all rows of another table of the same form. */
bool tide_table_merge(tide_table *table, const tide_table *other);

void tide_table_free(tide_table *table);

#endif

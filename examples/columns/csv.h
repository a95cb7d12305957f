/* SPDX-License-Identifier: MIT */
/* Comma-separated values as in RFC 4180: fields in quotes may hold commas, line ends and doubled
 * quotes; lines end in LF or CRLF, the last one perhaps not at all; a UTF-8 byte order mark is
 * skipped, and so are empty lines, unless the table has one column only. A quote inside a field
 * that does not begin with one is a character like any other. */
#ifndef COLUMNS_CSV_H
#define COLUMNS_CSV_H

#include "engine.h"

/* The whole of a file, in memory. */
typedef struct csv_text {
    const char *name; /* for messages */
    char *bytes;
    size_t length;
} csv_text;

typedef struct csv_field {
    char *text; /* in the file's bytes; no NUL at the end */
    size_t length;
} csv_field;

/* Reads a file ("-": standard input). Release text->bytes with free. */
bool csv_read(csv_text *text, const char *path, columns_error *error);

/* Finds out how many rows (the header included) of how many fields there are, and that the text
 * is well formed: every quote closed, every row as long as the header. Changes nothing. */
bool csv_measure(const csv_text *text, size_t *rows, size_t *columns, columns_error *error);

/* Cuts a text that was measured into rows × columns fields, row by row. Doubled quotes are
 * undoubled in place, so this can be done once only. */
void csv_cut(csv_text *text, size_t columns, csv_field *fields);

#endif

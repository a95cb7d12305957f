/* SPDX-License-Identifier: MIT */
/* Results for people, and for programs. */
#ifndef COLUMNS_PRINT_H
#define COLUMNS_PRINT_H

#include "table.h"

/* An aligned table; `found` says how many rows there would be. Long texts are cut, characters
 * that would upset a terminal are escaped. False: no memory, and nothing is printed. */
bool print_table(FILE *out, const columns_table *table, size_t found, columns_error *error);

/* CSV as in RFC 4180, reals with all their digits; a null is an empty field. */
void print_csv(FILE *out, const columns_table *table);

/* The columns of a table: name, type, nulls. */
void print_columns(FILE *out, const columns_table *table);

#endif

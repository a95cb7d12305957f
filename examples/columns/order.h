/* SPDX-License-Identifier: MIT */
/* Sorting the rows of a table, and picking rows and columns of it. */
#ifndef COLUMNS_ORDER_H
#define COLUMNS_ORDER_H

#include "query.h"

/* Writes the numbers of the rows in order: by the first key, among equals by the second, and so
 * on; among full equals as they were. Nulls come first, texts by their bytes. `spare` has room
 * for as many numbers as there are rows. */
void order_rows(const columns_table *table, const order_list *by, size_t *index, size_t *spare);

/* A table of the first `columns` columns and of the rows with these numbers (NULL: the first
 * `rows`), columns named by the items. NULL: no memory. */
columns_table *order_pick(const columns_table *table, const item_list *items, size_t columns,
                          const size_t *index, size_t rows);

#endif

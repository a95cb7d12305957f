/* SPDX-License-Identifier: MIT */
/* What the checker of expressions offers to the planner of queries. */
#ifndef COLUMNS_CHECK_H
#define COLUMNS_CHECK_H

#include "query.h"

typedef struct checker {
    query *q;
    const columns_table *table;
    columns_error *error;
    const char *no_aggregates; /* NULL, or why there can be none here */
} checker;

/* Finds columns, gives types, inserts casts; may put another node in the place of *slot. */
bool check_expression(checker *c, node **slot);

/* The same, then makes it of this type (TIDE_NO_TYPE: whatever it is, a bare null being text). */
bool check_typed(checker *c, node **slot, tide_type type, const char *who);

/* Whether two checked expressions always have the same value. */
bool node_equal(const node *a, const node *b);

/* The index of a column: by its name, else by its name in other case if only one is so called.
 * False if there is none; *ambiguous if there are several. */
bool column_named(const columns_table *table, const char *name, size_t *index, bool *ambiguous);

#endif

/* SPDX-License-Identifier: MIT */
/* Groups: which rows belong together, and what was added up for each group.
 *
 * The groups are a table in the making, with a row for each group: the values grouped by, then
 * the aggregates. It grows as groups appear and is the result's, so it is ordinary memory; what
 * is temporary is how a batch finds its groups (aggregate.c). */
#ifndef COLUMNS_GROUPS_H
#define COLUMNS_GROUPS_H

#include "kernels.h"

typedef struct accumulator accumulator;

typedef struct groups {
    const query *query;
    columns_table *table; /* keys, then aggregates; these are written at the end */
    accumulator **totals; /* of each aggregate, an array with one for each group */
    uint64_t *hashes;     /* of each group's key */
    uint32_t *slots;      /* hash table: group + 1, 0: free; at most half full */
    size_t slot_count;    /* a power of two */
    size_t room;          /* groups that totals and hashes have memory for */
} groups;

/* No group yet; or the one group of a query without group by, which exists without rows. */
bool groups_begin(groups *g, const query *q, dictionary *words);

/* The group of each row, made if it is new: `keys` are the vectors grouped by, none constant,
 * `hashes` their hashes. False: no memory. */
bool groups_find(groups *g, const vector *keys, const uint64_t *hashes, size_t rows, uint32_t *ids);

/* Adds a batch of an aggregate's arguments. `a` is NULL for count(*); `ids` is NULL if there is
 * only one group. */
void groups_add(groups *g, size_t aggregate, const vector *a, size_t rows, const uint32_t *ids);

/* The finished table, which is the caller's from now on. */
columns_table *groups_finish(groups *g);

void groups_end(groups *g);

#endif

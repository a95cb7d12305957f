/* SPDX-License-Identifier: MIT */
/* One run of a job over its batches: what evaluation and aggregation share. */
#ifndef COLUMNS_RUN_H
#define COLUMNS_RUN_H

#include "temporaries.h"

#include "groups.h"
#include "kernels.h"

enum { BATCH_ROWS = 4096 };

struct columns_job {
    columns_table *table;
    columns_table *owned; /* the same, if the job is to destroy it */
    query *query;
    size_t keep;  /* rows wanted; SIZE_MAX: all */
    size_t found; /* rows there were, in the last run */
};

typedef struct run {
    tide_pool *pool;
    columns_job *job;
    dictionary *words;
    columns_error *error;
} run;

/* Some rows of a table: `count` from `first`, or those of them that were selected. */
typedef struct batch {
    const columns_table *table;
    size_t first;
    size_t count;
    const int32_t *selection; /* NULL: all; else `count` numbers of rows, from `first` */
} batch;

/* Writes the node's values for each row of the batch into `out`, whose memory is the caller's.
 * Temporaries are gone when it returns. False: no memory; the run's error says so. */
bool evaluate(run *r, const node *n, const batch *rows, vector *out);

/* The node's values, wherever they are: a literal's own, a column's own, or evaluated into
 * memory acquired in the scope of the caller. */
bool operand(run *r, const node *n, const batch *rows, vector *out);

/* Memory for `rows` values of a type known only now, in the scope of the caller. */
bool room_for(run *r, tide_type type, bool nullable, size_t rows, vector *out);

/* Where the condition is true, and neither false nor null. */
bool truth_of(run *r, const node *condition, const batch *rows, bool *mask);

/* Says that an acquire failed. Always false. */
bool no_room(run *r);

/* Adds a batch to the groups. */
bool aggregate(run *r, const batch *rows, groups *g);

/* A whole run. */
columns_table *columns_run(columns_job *job, tide_pool *pool, columns_error *error);

#endif

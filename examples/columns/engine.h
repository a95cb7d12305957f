/* SPDX-License-Identifier: MIT */
/* The engine: load a table, check a query against it once, run it any number of times.
 *
 * A run goes over the table in batches. Every operator takes its temporaries from a Tidepool
 * pool. For comparison the same operators exist with temporaries from a heap (malloc and free
 * by pointer) and from one region set aside beforehand; the three give identical results.
 *
 *   columns_job *job = columns_default_job(1000, &error);         118 000 rows, about 20 ms
 *   columns_table *result = columns_run_tide(job, pool, &error);  once; as often as you like
 *   columns_table_destroy(result);
 *   columns_job_destroy(job);
 *
 * One thread at a time per job: runs may add words to the dictionary of its table. */
#ifndef COLUMNS_ENGINE_H
#define COLUMNS_ENGINE_H

#include <tidepool/tidepool.h>

typedef struct columns_table columns_table; /* columns of equal length: input, and result  */
typedef struct columns_job columns_job;     /* a table and a query that was checked on it  */

/* What went wrong, in sentences for a person: "FILE:LINE:COLUMN: …", no newline at the end. */
typedef struct columns_error {
    char text[1024];
} columns_error;

/* Whether the calling thread's last error was that memory (or another resource) ran out:
 * neither file nor query is to blame then. */
bool columns_exhausted(void);

/* Calls `step` now and then during loading and runs, with what is done of how much; for progress
 * bars. NULL: nobody watches (the default). Set it before the work starts. */
void columns_watch(void (*step)(const char *doing, size_t done, size_t of));

/* Reads a CSV file ("-": standard input), its first row the column names. NULL with an error. */
columns_table *columns_table_load(const char *path, columns_error *error);

/* The same from bytes in memory, which stay as they are; `name` is for messages. */
columns_table *columns_table_parse(const char *name, const char *bytes, size_t length,
                                   columns_error *error);

/* The chemical elements, 118 rows, built into the program. NULL: no memory. */
columns_table *columns_table_elements(columns_error *error);

/* The rows of `table` so many times over, as a table of its own. NULL: no memory. */
columns_table *columns_table_repeat(const columns_table *table, size_t times, columns_error *error);

size_t columns_table_rows(const columns_table *table);

/* Same columns, types and values, bit by bit. */
bool columns_table_equal(const columns_table *a, const columns_table *b);

void columns_table_destroy(columns_table *table); /* NULL: nothing to do */

/* A query, checked. The table must outlive the job. `keep_rows`: how many rows of the result a
 * caller wants to see, 0 for all (aggregates are always kept whole). NULL with an error that
 * shows the place in the query. */
columns_job *columns_job_create(columns_table *table, const char *query, size_t keep_rows,
                                columns_error *error);

/* The default job: the elements `times` times over, and a query that uses every operator. The
 * job owns its table. */
columns_job *columns_default_job(size_t times, columns_error *error);
extern const char columns_default_query[];

const columns_table *columns_job_table(const columns_job *job);

void columns_job_destroy(columns_job *job); /* NULL: nothing to do */

/* Rows that the last run of the job found, including those it did not keep. */
size_t columns_job_found(const columns_job *job);

/* One run, temporaries from a pool (which is left as it was found). The result belongs to the
 * caller. NULL with an error: no memory is the only way to fail. */
columns_table *columns_run_tide(columns_job *job, tide_pool *pool, columns_error *error);

/* One run, each temporary from `allocate` and back by `release` when its operator ends. */
typedef struct columns_heap {
    void *(*allocate)(size_t bytes);
    void (*release)(void *memory);
} columns_heap;
columns_table *columns_run_heap(columns_job *job, const columns_heap *heap, columns_error *error);

/* One run, temporaries at the front of a region that was set aside before: no bookkeeping
 * beyond an index. columns_region_need says how many bytes the job takes (it runs the job once
 * to see); `memory` must be aligned to 64 bytes. */
typedef struct columns_region {
    unsigned char *memory;
    size_t bytes;
} columns_region;
columns_table *columns_run_static(columns_job *job, const columns_region *region,
                                  columns_error *error);
size_t columns_region_need(columns_job *job, columns_error *error); /* 0 with an error */

/* What a run takes from a heap: how many blocks, and most bytes at a time. Runs the job once. */
typedef struct columns_need {
    uint64_t allocations;
    size_t bytes;
} columns_need;
bool columns_count(columns_job *job, columns_need *need, columns_error *error);

#endif

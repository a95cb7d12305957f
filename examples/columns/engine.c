/* SPDX-License-Identifier: MIT */
/* Jobs: made, destroyed, measured; and the default one. */
#include "error.h"
#include "run.h"

#include <stdlib.h>

columns_job *columns_job_create(columns_table *table, const char *text, size_t keep_rows,
                                columns_error *error)
{
    columns_job *job = calloc(1, sizeof *job);
    query *q = query_parse(text, error);
    if (job == NULL)
        columns_no_memory(error);
    if (job == NULL || q == NULL || !query_check(q, table, error)) {
        query_destroy(q);
        free(job);
        return NULL;
    }
    job->table = table;
    job->query = q;
    job->keep = keep_rows > 0 ? keep_rows : SIZE_MAX;
    return job;
}

void columns_job_destroy(columns_job *job)
{
    if (job == NULL)
        return;
    query_destroy(job->query);
    columns_table_destroy(job->owned);
    free(job);
}

const columns_table *columns_job_table(const columns_job *job)
{
    return job->table;
}

size_t columns_job_found(const columns_job *job)
{
    return job->found;
}

const char columns_default_query[] =
    "category, count(*) as elements, avg(mass) as \"mean mass\",\n"
    "round(100 * avg(if(melting - 273.15 > 500, density * 1.02, density))) / 100 as density,\n"
    "sum(int(mass) % 10) as digits, max(electronegativity / \"group\") as pull,\n"
    "max(length(name)) as longest, min(if(stable, name, null)) as \"first stable\"\n"
    "where phase != 'gas' and (density > 1 or not stable) or coalesce(melting, 300) < 300\n"
    "group by category\n"
    "order by elements desc, category";

columns_job *columns_default_job(size_t times, columns_error *error)
{
    columns_table *once = columns_table_elements(error);
    columns_table *table = once == NULL ? NULL : columns_table_repeat(once, times, error);
    columns_table_destroy(once);
    if (table == NULL)
        return NULL;
    columns_job *job = columns_job_create(table, columns_default_query, 0, error);
    if (job == NULL)
        columns_table_destroy(table);
    else
        job->owned = table;
    return job;
}

/* ---- what a run takes ---- */

/* Scopes end in reverse order, so that what is live at most, each piece rounded up to 64 bytes,
 * is what a region needs. */
static _Thread_local columns_need counted;
static _Thread_local size_t live;

enum { HEAD = 64 };

static void *counting_allocate(size_t bytes)
{
    size_t *block = malloc(HEAD + bytes);
    if (block == NULL)
        return NULL;
    *block = (bytes + 63) & ~(size_t)63;
    live += *block;
    if (live > counted.bytes)
        counted.bytes = live;
    counted.allocations++;
    return (char *)block + HEAD;
}

static void counting_release(void *memory)
{
    size_t *block = (size_t *)(void *)((char *)memory - HEAD);
    live -= *block;
    free(block);
}

bool columns_count(columns_job *job, columns_need *need, columns_error *error)
{
    const columns_heap counting = {counting_allocate, counting_release};
    live = 0;
    counted = (columns_need){0};
    columns_table *result = columns_run_heap(job, &counting, error);
    if (result == NULL)
        return false;
    columns_table_destroy(result);
    *need = counted;
    return true;
}

size_t columns_region_need(columns_job *job, columns_error *error)
{
    columns_need need;
    if (!columns_count(job, &need, error))
        return 0;
    return need.bytes > 0 ? need.bytes : 64;
}

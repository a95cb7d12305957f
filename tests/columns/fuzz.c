/* SPDX-License-Identifier: MIT */
/* Any bytes as a query and a file: up to the first NUL a query, the rest CSV. What is not refused
 * must run, the same from a pool that poisons as from a heap. */
#include <stdlib.h>
#include <string.h>

#include "engine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run_both(columns_job *job, columns_error *error)
{
    static tide_pool *pool;
    const columns_heap heap = {malloc, free};
    if (pool == NULL)
        pool = tide_pool_create(&(tide_pool_options){.check = TIDE_CHECK_POISON});
    columns_table *a = columns_run_tide(job, pool, error);
    columns_table *b = columns_run_heap(job, &heap, error);
    if (a == NULL || b == NULL || !columns_table_equal(a, b) || tide_pool_check(pool) != TIDE_OK ||
        tide_pool_depth(pool) != 0)
        abort();
    columns_table_destroy(a);
    columns_table_destroy(b);
}

static void try_query(const char *query, const char *csv, size_t length)
{
    columns_error error;
    columns_table *table = columns_table_parse("fuzz", csv, length, &error);
    if (table == NULL)
        return;
    columns_job *job = columns_job_create(table, query, 3, &error);
    if (job != NULL)
        run_both(job, &error);
    columns_job_destroy(job);
    columns_table_destroy(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char some[] = "i,r,t,b\n1,2.5,x,true\n,,,\n-3,1e9,\"a\"\"b\",false\n";
    const uint8_t *end = size == 0 ? NULL : memchr(data, 0, size);
    size_t length = end == NULL ? size : (size_t)(end - data);
    char *query = calloc(1, length + 1);
    if (query == NULL)
        return 0;
    if (length > 0)
        memcpy(query, data, length);
    if (end == NULL)
        try_query(query, some, sizeof some - 1);
    else
        try_query(query, (const char *)end + 1, size - length - 1);
    free(query);
    return 0;
}

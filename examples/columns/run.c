/* SPDX-License-Identifier: MIT */
/* A run: batch by batch, filter the rows, then project or aggregate them; at the end sort. */
#include "run.h"

#include "error.h"
#include "order.h"

/* ---- batches ---- */

/* Narrows the batch to the rows where the condition holds. Their numbers are acquired in the
 * scope of the caller, who needs them for the whole batch; the mask is not. */
static bool filter(run *r, const node *condition, batch *rows)
{
    int32_t *selection = tide_acquire(r->pool, int32_t, rows->count);
    TIDE_SCOPE(r->pool);
    bool *mask = tide_acquire(r->pool, bool, rows->count);
    if (selection == NULL || mask == NULL)
        return no_room(r);
    if (!truth_of(r, condition, rows, mask))
        return false;
    rows->count = kernel_select(rows->count, mask, selection);
    rows->selection = selection;
    return true;
}

typedef bool batch_work(run *r, const batch *rows, void *to);

/* The hot loop. Each batch is a scope; TIDE_LOOP keeps one checkpoint for all of them. */
static bool for_each_batch(run *r, const columns_table *table, size_t limit, const node *condition,
                           batch_work *work, void *to)
{
    TIDE_LOOP(r->pool, i, (limit + BATCH_ROWS - 1) / BATCH_ROWS)
    {
        size_t first = i * BATCH_ROWS, left = limit - first;
        batch rows = {table, first, left < BATCH_ROWS ? left : BATCH_ROWS, NULL};
        if (condition != NULL && !filter(r, condition, &rows))
            return false;
        if (rows.count > 0 && !work(r, &rows, to))
            return false;
        columns_step("computing", first, limit);
    }
    return true;
}

/* ---- projection ---- */

/* Rows to evaluate the items on: those to show, but all if they are yet to be sorted. */
static size_t rows_wanted(const columns_job *job)
{
    return job->query->aggregated || job->query->order.count > 0 ? SIZE_MAX : job->keep;
}

/* Evaluates the items right into the result, as many rows as are wanted. */
static bool project_batch(run *r, const batch *rows, void *to)
{
    columns_table *result = to;
    const item_list *items = &r->job->query->items;
    size_t wanted = rows_wanted(r->job) - result->rows;
    batch some = *rows;
    r->job->found += rows->count;
    if (some.count > wanted)
        some.count = wanted;
    if (some.count == 0)
        return true;
    if (!table_reserve(result, result->rows + some.count))
        return columns_no_memory(r->error);
    for (size_t i = 0; i < items->count; i++) {
        const column *c = &result->columns[i];
        vector out = {.type = c->type, .values = column_at(c, result->rows)};
        out.nulls = c->nullable ? c->nulls + result->rows : NULL;
        if (!evaluate(r, items->at[i].expression, &some, &out))
            return false;
    }
    result->rows += some.count;
    return true;
}

static columns_table *result_table(run *r)
{
    const item_list *items = &r->job->query->items;
    columns_table *result = table_create(r->words, items->count);
    bool ok = result != NULL;
    for (size_t i = 0; ok && i < items->count; i++) {
        const node *n = items->at[i].expression;
        ok = table_set_column(result, i, items->at[i].label, n->type, n->nullable);
    }
    if (ok && table_reserve(result, 1))
        return result;
    columns_table_destroy(result);
    columns_no_memory(r->error);
    return NULL;
}

static columns_table *project(run *r, const columns_table *table, const node *condition)
{
    columns_table *result = result_table(r);
    size_t wanted = condition == NULL ? rows_wanted(r->job) : SIZE_MAX;
    size_t limit = wanted < table->rows ? wanted : table->rows;
    r->job->found = 0;
    if (result == NULL || !for_each_batch(r, table, limit, condition, project_batch, result)) {
        columns_table_destroy(result);
        return NULL;
    }
    if (limit < table->rows)
        r->job->found = table->rows;
    return result;
}

/* ---- aggregation ---- */

static bool aggregate_batch(run *r, const batch *rows, void *to)
{
    return aggregate(r, rows, to);
}

/* First a table with a row for each group, then the items on that. */
static columns_table *project_groups(run *r)
{
    groups g;
    const columns_job *job = r->job;
    if (!groups_begin(&g, job->query, r->words)) {
        columns_no_memory(r->error);
        return NULL;
    }
    columns_table *result = NULL;
    if (for_each_batch(r, job->table, job->table->rows, job->query->where, aggregate_batch, &g)) {
        columns_table *grouped = groups_finish(&g);
        result = project(r, grouped, NULL);
        columns_table_destroy(grouped);
    }
    groups_end(&g);
    return result;
}

/* ---- the whole ---- */

/* Sorts, and drops what is not to be seen. */
static columns_table *present(run *r, const columns_table *all)
{
    const query *q = r->job->query;
    size_t rows = !q->aggregated && r->job->keep < all->rows ? r->job->keep : all->rows;
    size_t *index = NULL;
    TIDE_SCOPE(r->pool);
    if (q->order.count > 0) {
        index = tide_acquire(r->pool, size_t, all->rows);
        size_t *spare = tide_acquire(r->pool, size_t, all->rows);
        if (index == NULL || spare == NULL) {
            no_room(r);
            return NULL;
        }
        order_rows(all, &q->order, index, spare);
    }
    columns_table *result = order_pick(all, &q->items, q->visible, index, rows);
    if (result == NULL)
        columns_no_memory(r->error);
    return result;
}

columns_table *columns_run(columns_job *job, tide_pool *pool, columns_error *error)
{
    TIDE_SCOPE(pool);
    run r = {.pool = pool, .job = job, .words = job->table->words, .error = error};
    columns_table *all =
        job->query->aggregated ? project_groups(&r) : project(&r, job->table, job->query->where);
    if (all == NULL)
        return NULL;
    columns_table *result = present(&r, all);
    columns_table_destroy(all);
    return result;
}

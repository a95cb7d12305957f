/* SPDX-License-Identifier: MIT */
/* Aggregation of one batch: find each row's group, then add up each aggregate's arguments. */
#include "run.h"

#include "error.h"

#include <string.h>

/* An operand with a value for each row, even where it is a literal. */
static bool dense(run *r, const node *n, const batch *rows, vector *out)
{
    if (n->kind != NODE_LITERAL)
        return operand(r, n, rows, out);
    return room_for(r, n->type, n->nullable, rows->count, out) && evaluate(r, n, rows, out);
}

/* The ids are the caller's; keys and hashes are only needed to find them. */
static bool find_groups(run *r, const batch *rows, groups *g, uint32_t *ids)
{
    const node_list *by = &r->job->query->groups;
    TIDE_SCOPE(r->pool);
    vector *keys = tide_acquire(r->pool, vector, by->count);
    uint64_t *hashes = tide_acquire(r->pool, uint64_t, rows->count);
    if (keys == NULL || hashes == NULL)
        return no_room(r);
    memset(hashes, 0, rows->count * sizeof *hashes);
    for (size_t i = 0; i < by->count; i++) {
        if (!dense(r, by->at[i], rows, &keys[i]))
            return false;
        kernel_hash(rows->count, &keys[i], hashes);
    }
    return groups_find(g, keys, hashes, rows->count, ids) || columns_no_memory(r->error);
}

static bool add_up(run *r, const batch *rows, groups *g, size_t index, const uint32_t *ids)
{
    const node *argument = r->job->query->aggregates.at[index]->args[0];
    TIDE_SCOPE(r->pool);
    vector values;
    if (argument->kind == NODE_STAR) {
        groups_add(g, index, NULL, rows->count, ids);
        return true;
    }
    if (!dense(r, argument, rows, &values))
        return false;
    groups_add(g, index, &values, rows->count, ids);
    return true;
}

bool aggregate(run *r, const batch *rows, groups *g)
{
    const query *q = r->job->query;
    uint32_t *ids = NULL;
    TIDE_SCOPE(r->pool);
    if (q->groups.count > 0) {
        ids = tide_acquire(r->pool, uint32_t, rows->count);
        if (ids == NULL)
            return no_room(r);
        if (!find_groups(r, rows, g, ids))
            return false;
    }
    for (size_t i = 0; i < q->aggregates.count; i++)
        if (!add_up(r, rows, g, i, ids))
            return false;
    return true;
}

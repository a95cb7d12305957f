/* SPDX-License-Identifier: MIT */
/* Planning a query: stars, the names and numbers that stand for items, groups and aggregates,
 * and what is only there to be sorted by. */
#include "check.h"
#include "error.h"

#include <stdlib.h>
#include <strings.h>

/* ---- items ---- */

static bool add_item(checker *c, node *n, const char *label)
{
    return item_list_add(&c->q->items, (item){n, label}) || columns_no_memory(c->error);
}

/* One item for each column, in the place of the star. */
static bool expand_star(checker *c, const node *star)
{
    for (size_t i = 0; i < c->table->column_count; i++) {
        const column *from = &c->table->columns[i];
        node *n = query_node(c->q, NODE_COLUMN, OP_NONE, star->start, star->end);
        if (n == NULL)
            return columns_no_memory(c->error);
        n->text = from->name;
        n->column = i;
        n->type = from->type;
        n->nullable = from->nullable;
        if (!add_item(c, n, from->name))
            return false;
    }
    return true;
}

static bool expand_items(checker *c)
{
    item_list old = c->q->items;
    bool ok = true;
    c->q->items = (item_list){0};
    for (size_t i = 0; ok && i < old.count; i++) {
        item one = old.at[i];
        ok = one.expression->kind == NODE_STAR ? expand_star(c, one.expression)
                                               : add_item(c, one.expression, one.label);
    }
    free(old.at);
    c->q->visible = c->q->items.count;
    return ok;
}

/* ---- references to items ---- */

typedef enum found { FOUND, NOT_FOUND, FOUND_BAD } found;

/* A bare integer is the position of an item, a bare name may be its label. */
static found find_item(checker *c, const node *n, size_t *index)
{
    if (n->kind == NODE_LITERAL && n->type == TIDE_I64) {
        if (n->literal.integer >= 1 && (uint64_t)n->literal.integer <= c->q->visible) {
            *index = (size_t)n->literal.integer - 1;
            return FOUND;
        }
        columns_query_fail(c->error, c->q->text, n->start, "there is no item number %s", n->text);
        return FOUND_BAD;
    }
    for (*index = 0; n->kind == NODE_COLUMN && *index < c->q->visible; ++*index)
        if (strcasecmp(c->q->items.at[*index].label, n->text) == 0)
            return FOUND;
    return NOT_FOUND;
}

/* A copy that can be checked and rewritten on its own. */
static node *clone(checker *c, const node *n)
{
    node *copy = query_node(c->q, n->kind, n->op, n->start, n->end);
    if (copy == NULL)
        return NULL;
    *copy = *n;
    for (size_t i = 0; i < n->arg_count; i++)
        if ((copy->args[i] = clone(c, n->args[i])) == NULL)
            return NULL;
    return copy;
}

/* `group by year` may mean a column, or else an item of that name; `group by 1` an item. */
static bool check_group(checker *c, node **slot)
{
    size_t index;
    bool ambiguous;
    node *n = *slot;
    c->no_aggregates = "group by";
    if (n->kind != NODE_COLUMN || !column_named(c->table, n->text, &index, &ambiguous)) {
        found how = find_item(c, n, &index);
        if (how == FOUND_BAD)
            return false;
        if (how == FOUND && (*slot = clone(c, c->q->items.at[index].expression)) == NULL)
            return columns_no_memory(c->error);
    }
    return check_typed(c, slot, TIDE_NO_TYPE, "group by");
}

static bool check_order(checker *c, order_key *key)
{
    c->no_aggregates = NULL;
    switch (find_item(c, key->expression, &key->item)) {
    case FOUND: return true;
    case FOUND_BAD: return false;
    case NOT_FOUND: break;
    }
    if (!check_typed(c, &key->expression, TIDE_NO_TYPE, "order by"))
        return false;
    for (key->item = 0; key->item < c->q->items.count; key->item++)
        if (node_equal(c->q->items.at[key->item].expression, key->expression))
            return true;
    return add_item(c, key->expression, "");
}

/* ---- aggregation ---- */

static bool has_aggregate(const node *n)
{
    bool has = n->kind == NODE_AGGREGATE;
    for (size_t i = 0; !has && i < n->arg_count; i++)
        has = has_aggregate(n->args[i]);
    return has;
}

/* Puts a column of the table of groups in the place of a group or an aggregate. */
static bool refer(checker *c, node **slot, size_t index)
{
    node *old = *slot, *n = query_node(c->q, NODE_COLUMN, OP_NONE, old->start, old->end);
    if (n == NULL)
        return columns_no_memory(c->error);
    n->type = old->type;
    n->nullable = old->nullable;
    n->column = index;
    *slot = n;
    return true;
}

static bool refer_aggregate(checker *c, node **slot)
{
    node_list *known = &c->q->aggregates;
    size_t index = 0;
    while (index < known->count && !node_equal(known->at[index], *slot))
        index++;
    if (index == known->count && !node_list_add(known, *slot))
        return columns_no_memory(c->error);
    return refer(c, slot, c->q->groups.count + index);
}

/* From an expression over rows to one over the table of groups. */
static bool rewrite(checker *c, node **slot)
{
    node *n = *slot;
    for (size_t i = 0; i < c->q->groups.count; i++)
        if (n->kind != NODE_LITERAL && node_equal(n, c->q->groups.at[i]))
            return refer(c, slot, i);
    if (n->kind == NODE_AGGREGATE)
        return refer_aggregate(c, slot);
    if (n->kind == NODE_COLUMN)
        return columns_query_fail(c->error, c->q->text, n->start,
                                  "%s is neither in an aggregate nor in group by", n->text);
    for (size_t i = 0; i < n->arg_count; i++)
        if (!rewrite(c, &n->args[i]))
            return false;
    return true;
}

static bool plan_aggregation(checker *c)
{
    query *q = c->q;
    q->aggregated = q->groups.count > 0;
    for (size_t i = 0; i < q->items.count; i++)
        q->aggregated = q->aggregated || has_aggregate(q->items.at[i].expression);
    for (size_t i = 0; q->aggregated && i < q->items.count; i++)
        if (!rewrite(c, &q->items.at[i].expression))
            return false;
    return true;
}

/* ---- all of it ---- */

bool query_check(query *q, const columns_table *table, columns_error *error)
{
    checker c = {.q = q, .table = table, .error = error};
    if (!expand_items(&c))
        return false;
    c.no_aggregates = "where";
    if (q->where != NULL && !check_typed(&c, &q->where, TIDE_BOOL, "where"))
        return false;
    for (size_t i = 0; i < q->groups.count; i++)
        if (!check_group(&c, &q->groups.at[i]))
            return false;
    c.no_aggregates = NULL;
    for (size_t i = 0; i < q->items.count; i++)
        if (!check_typed(&c, &q->items.at[i].expression, TIDE_NO_TYPE, "an item"))
            return false;
    for (size_t i = 0; i < q->order.count; i++)
        if (!check_order(&c, &q->order.at[i]))
            return false;
    return plan_aggregation(&c);
}

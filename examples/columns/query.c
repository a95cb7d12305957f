/* SPDX-License-Identifier: MIT */
/* Queries: their memory, and the table of functions. */
#include "query.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Everything a query is made of hangs in one list and goes at once. */
typedef struct block {
    struct block *next;
    _Alignas(16) unsigned char bytes[];
} block;

void *query_memory(query *q, size_t bytes)
{
    block *b = calloc(1, sizeof *b + bytes);
    if (b == NULL)
        return NULL;
    b->next = q->memory;
    q->memory = b;
    return b->bytes;
}

char *query_text(query *q, const char *text, size_t length)
{
    char *copy = query_memory(q, length + 1);
    if (copy != NULL)
        memcpy(copy, text, length);
    return copy;
}

node *query_node(query *q, node_kind kind, operation op, size_t start, size_t end)
{
    node *n = query_memory(q, sizeof *n);
    if (n != NULL)
        *n = (node){.kind = kind, .op = op, .start = start, .end = end};
    return n;
}

void query_destroy(query *q)
{
    if (q == NULL)
        return;
    for (block *b = q->memory, *next; b != NULL; b = next) {
        next = b->next;
        free(b);
    }
    free(q->items.at);
    free(q->groups.at);
    free(q->order.at);
    free(q->aggregates.at);
    free(q->text);
    free(q);
}

/* The array with room for one more of `size` bytes; it doubles. NULL: no memory. */
static void *one_more(void *at, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return at;
    size_t more = *room == 0 ? 8 : 2 * *room;
    void *grown = realloc(at, more * size);
    if (grown != NULL)
        *room = more;
    return grown;
}

bool node_list_add(node_list *list, node *n)
{
    node **at = one_more(list->at, list->count, &list->room, sizeof *at);
    if (at == NULL)
        return false;
    list->at = at;
    at[list->count++] = n;
    return true;
}

bool item_list_add(item_list *list, item i)
{
    item *at = one_more(list->at, list->count, &list->room, sizeof *at);
    if (at == NULL)
        return false;
    list->at = at;
    at[list->count++] = i;
    return true;
}

bool order_list_add(order_list *list, order_key k)
{
    order_key *at = one_more(list->at, list->count, &list->room, sizeof *at);
    if (at == NULL)
        return false;
    list->at = at;
    at[list->count++] = k;
    return true;
}

static const function functions[] = {
    {"if", NODE_IF, OP_NONE, TIDE_NO_TYPE, 3},
    {"coalesce", NODE_COALESCE, OP_NONE, TIDE_NO_TYPE, 2},
    {"int", NODE_CAST, OP_NONE, TIDE_I64, 1},
    {"real", NODE_CAST, OP_NONE, TIDE_F64, 1},
    {"bool", NODE_CAST, OP_NONE, TIDE_BOOL, 1},
    {"text", NODE_CAST, OP_NONE, TIDE_I32, 1},
    {"abs", NODE_MATH, OP_ABS, TIDE_NO_TYPE, 1},
    {"sqrt", NODE_MATH, OP_SQRT, TIDE_F64, 1},
    {"exp", NODE_MATH, OP_EXP, TIDE_F64, 1},
    {"ln", NODE_MATH, OP_LN, TIDE_F64, 1},
    {"floor", NODE_MATH, OP_FLOOR, TIDE_F64, 1},
    {"ceil", NODE_MATH, OP_CEIL, TIDE_F64, 1},
    {"round", NODE_MATH, OP_ROUND, TIDE_F64, 1},
    {"length", NODE_TEXT, OP_LENGTH, TIDE_I64, 1},
    {"lower", NODE_TEXT, OP_LOWER, TIDE_I32, 1},
    {"upper", NODE_TEXT, OP_UPPER, TIDE_I32, 1},
    {"substr", NODE_TEXT, OP_SUBSTR, TIDE_I32, 3},
    {"count", NODE_AGGREGATE, OP_COUNT, TIDE_I64, 1},
    {"sum", NODE_AGGREGATE, OP_SUM, TIDE_NO_TYPE, 1},
    {"avg", NODE_AGGREGATE, OP_AVG, TIDE_F64, 1},
    {"min", NODE_AGGREGATE, OP_MIN, TIDE_NO_TYPE, 1},
    {"max", NODE_AGGREGATE, OP_MAX, TIDE_NO_TYPE, 1},
};

const function *function_named(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcasecmp(functions[i].name, name) == 0)
            return &functions[i];
    return NULL;
}

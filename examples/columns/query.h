/* SPDX-License-Identifier: MIT */
/* Queries: the tree that the parser makes and the checker completes.
 *
 *   query      = item {"," item} ["where" expr] ["group" "by" expr {"," expr}]
 *                ["order" "by" key {"," key}]
 *   item       = expr ["as" name] | "*"
 *   key        = (position | name of an item | expr) ["asc" | "desc"]
 *   expr       = conjunction {"or" conjunction}
 *   conjunction = negation {"and" negation}
 *   negation   = {"not"} comparison
 *   comparison = sum [("=" | "!=" | "<>" | "<" | "<=" | ">" | ">=") sum | "is" ["not"] "null"]
 *   sum        = product {("+" | "-") product}
 *   product    = factor {("*" | "/" | "%") factor}
 *   factor     = {"-"} primary
 *   primary    = number | 'text' | "true" | "false" | "null" | column | function "(" … ")"
 *              | "(" expr ")"
 *   column     = name | "any name" | [any name]
 */
#ifndef COLUMNS_QUERY_H
#define COLUMNS_QUERY_H

#include "table.h"

typedef enum node_kind {
    NODE_LITERAL,
    NODE_COLUMN,
    NODE_STAR, /* all columns, or the argument of count(*) */
    NODE_ARITHMETIC,
    NODE_COMPARE,
    NODE_LOGIC,
    NODE_NOT,
    NODE_IS_NULL,
    NODE_IF,
    NODE_COALESCE,
    NODE_CAST, /* to the node's own type */
    NODE_MATH,
    NODE_TEXT,
    NODE_AGGREGATE
} node_kind;

/* Which one of its kind. */
typedef enum operation {
    OP_NONE,
    OP_ADD,
    OP_SUBTRACT,
    OP_MULTIPLY,
    OP_DIVIDE,
    OP_REMAINDER,
    OP_EQUAL,
    OP_UNEQUAL,
    OP_LESS,
    OP_LESS_EQUAL,
    OP_GREATER,
    OP_GREATER_EQUAL,
    OP_AND,
    OP_OR,
    OP_IS_NULL,
    OP_IS_NOT_NULL,
    OP_ABS,
    OP_SQRT,
    OP_EXP,
    OP_LN,
    OP_FLOOR,
    OP_CEIL,
    OP_ROUND,
    OP_LENGTH,
    OP_LOWER,
    OP_UPPER,
    OP_SUBSTR,
    OP_COUNT,
    OP_SUM,
    OP_AVG,
    OP_MIN,
    OP_MAX
} operation;

enum { NODE_ARGUMENTS = 3, QUERY_HEIGHT = 200 };

typedef union value {
    int64_t integer;
    double real;
    bool boolean;
    int32_t code;
} value;

typedef struct node {
    node_kind kind;
    operation op;
    tide_type type;    /* TIDE_NO_TYPE until checked; what a bare null is, its surroundings say */
    bool nullable;     /* whether its values come with nulls */
    size_t start, end; /* where it stands in the query */
    unsigned height;   /* levels below it; bounded, so that recursion is */
    size_t arg_count;
    struct node *args[NODE_ARGUMENTS];
    const char *text; /* of a column or function its name; of a literal how it is written */
    value literal;
    size_t column; /* index in the table it is evaluated on */
} node;

typedef struct node_list {
    node **at;
    size_t count, room;
} node_list;

typedef struct item {
    node *expression;
    const char *label;
} item;

typedef struct order_key {
    node *expression;
    bool descending;
    size_t item; /* after checking: the item whose values decide */
} order_key;

typedef struct item_list {
    item *at;
    size_t count, room;
} item_list;

typedef struct order_list {
    order_key *at;
    size_t count, room;
} order_list;

typedef struct query {
    char *text;
    item_list items;
    node *where; /* or NULL */
    node_list groups;
    order_list order;

    /* What checking adds. A query that aggregates evaluates its groups and the arguments of its
     * aggregates on the rows; its items on a table with a row for each group, whose columns are
     * the groups, then the aggregates. */
    bool aggregated;
    node_list aggregates;
    size_t visible; /* items to show; those after them are only sorted by */

    void *memory; /* all nodes and texts */
} query;

/* Reads a query. NULL with a message that shows the place. */
query *query_parse(const char *text, columns_error *error);

/* Finds the columns, gives every node its type, and plans aggregation and order. */
bool query_check(query *q, const columns_table *table, columns_error *error);

void query_destroy(query *q); /* NULL: nothing to do */

/* ---- for parser and checker ---- */

void *query_memory(query *q, size_t bytes); /* zeroed; NULL: none left */
char *query_text(query *q, const char *text, size_t length);
node *query_node(query *q, node_kind kind, operation op, size_t start, size_t end);

bool node_list_add(node_list *list, node *n);
bool item_list_add(item_list *list, item i);
bool order_list_add(order_list *list, order_key k);

/* A function by name, in any case; NULL if there is none. */
typedef struct function {
    const char *name;
    node_kind kind;
    operation op;
    tide_type type; /* of a cast */
    size_t arguments;
} function;
const function *function_named(const char *name);

#endif

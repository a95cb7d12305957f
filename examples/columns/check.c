/* SPDX-License-Identifier: MIT */
/* Checking expressions: names become columns, nodes get their types, integers meet reals.
 *
 * A node is nullable if an argument is, or if its operation has no answer for some values:
 * division by zero, an integer that does not fit, the root of a negative number, a text that is
 * no number. Such an answer is null. */
#include "check.h"

#include "error.h"

#include <string.h>
#include <strings.h>

static bool is_number(tide_type type)
{
    return type == TIDE_I64 || type == TIDE_F64;
}

static bool fail_at(checker *c, const node *n, const char *who, const char *needs)
{
    return columns_query_fail(c->error, c->q->text, n->start, "%s needs %s, this is %s", who, needs,
                              type_word(n->type));
}

/* ---- types ---- */

/* Says what type a bare null has, and what is made of bare nulls. */
static void settle(node *n, tide_type type)
{
    if (n->type != TIDE_NO_TYPE)
        return;
    n->type = type;
    for (size_t i = n->kind == NODE_IF; i < n->arg_count; i++)
        settle(n->args[i], type);
}

static bool wrap_cast(checker *c, node **slot, tide_type type)
{
    node *cast = query_node(c->q, NODE_CAST, OP_NONE, (*slot)->start, (*slot)->end);
    if (cast == NULL)
        return columns_no_memory(c->error);
    cast->type = type;
    cast->nullable = (*slot)->nullable;
    cast->height = (*slot)->height + 1;
    cast->args[cast->arg_count++] = *slot;
    *slot = cast;
    return true;
}

/* The only conversion nobody has to write: integer to real. */
static bool coerce(checker *c, node **slot, tide_type type, const char *who)
{
    node *n = *slot;
    settle(n, type);
    if (n->type == type)
        return true;
    if (type != TIDE_F64 || n->type != TIDE_I64)
        return fail_at(c, n, who, type_word(type));
    if (n->kind != NODE_LITERAL)
        return wrap_cast(c, slot, type);
    n->literal.real = (double)n->literal.integer;
    n->type = type;
    return true;
}

/* Makes both of one type. False if they have none in common. */
static bool unify(checker *c, node *n, size_t a, size_t b, const char *who)
{
    tide_type left = n->args[a]->type, right = n->args[b]->type;
    tide_type common = left == TIDE_NO_TYPE ? right : left;
    if (left != right && is_number(left) && is_number(right))
        common = TIDE_F64;
    else if (left != right && left != TIDE_NO_TYPE && right != TIDE_NO_TYPE)
        return columns_query_fail(c->error, c->q->text, n->args[b]->start,
                                  "%s: %s on one side, %s on the other", who, type_word(left),
                                  type_word(right));
    return common == TIDE_NO_TYPE ||
           (coerce(c, &n->args[a], common, who) && coerce(c, &n->args[b], common, who));
}

/* ---- names ---- */

bool column_named(const columns_table *table, const char *name, size_t *index, bool *ambiguous)
{
    size_t exact = 0, similar = 0, similar_index = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        if (strcmp(table->columns[i].name, name) == 0 && exact++ == 0)
            *index = i;
        if (strcasecmp(table->columns[i].name, name) == 0 && similar++ == 0)
            similar_index = i;
    }
    if (exact == 0)
        *index = similar_index;
    *ambiguous = exact > 1 || (exact == 0 && similar > 1);
    return exact + similar > 0;
}

static bool fail_no_column(checker *c, const node *n)
{
    char names[400] = "";
    for (size_t i = 0; i < c->table->column_count; i++) {
        size_t used = strlen(names);
        const char *name = c->table->columns[i].name;
        if (used + strlen(name) + 8 > sizeof names) {
            strcpy(names + used, ", …");
            break;
        }
        snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : ", ", name);
    }
    return columns_query_fail(c->error, c->q->text, n->start, "there is no column %s; there are %s",
                              n->text, names);
}

static bool check_column(checker *c, node *n)
{
    bool ambiguous;
    if (n->type != TIDE_NO_TYPE) /* from a star: found already */
        return true;
    if (!column_named(c->table, n->text, &n->column, &ambiguous))
        return fail_no_column(c, n);
    if (ambiguous)
        return columns_query_fail(c->error, c->q->text, n->start, "there are several columns %s",
                                  n->text);
    n->type = c->table->columns[n->column].type;
    n->nullable = c->table->columns[n->column].nullable;
    return true;
}

static bool check_literal(checker *c, node *n)
{
    if (n->type != TIDE_I32)
        return true;
    n->literal.code = dictionary_code(c->table->words, n->text, strlen(n->text));
    return n->literal.code >= 0 || columns_no_memory(c->error);
}

/* ---- operators ---- */

static bool check_arithmetic(checker *c, node *n)
{
    for (size_t i = 0; i < 2; i++) {
        settle(n->args[i], TIDE_I64);
        if (!is_number(n->args[i]->type))
            return fail_at(c, n->args[i], "arithmetic", "numbers");
        if (n->op == OP_DIVIDE && !coerce(c, &n->args[i], TIDE_F64, "/"))
            return false;
    }
    if (!unify(c, n, 0, 1, "arithmetic"))
        return false;
    n->type = n->args[0]->type;
    n->nullable |= n->type == TIDE_I64 || n->op == OP_DIVIDE || n->op == OP_REMAINDER;
    return true;
}

static bool check_compare(checker *c, node *n)
{
    if (!unify(c, n, 0, 1, "comparison"))
        return false;
    settle(n->args[0], TIDE_I64);
    settle(n->args[1], TIDE_I64);
    n->type = TIDE_BOOL;
    return true;
}

static bool check_boolean_arguments(checker *c, node *n, size_t count, const char *who)
{
    for (size_t i = 0; i < count; i++)
        if (!coerce(c, &n->args[i], TIDE_BOOL, who))
            return false;
    return true;
}

static bool check_if(checker *c, node *n)
{
    if (!check_boolean_arguments(c, n, 1, "a condition") || !unify(c, n, 1, 2, "if"))
        return false;
    n->type = n->args[1]->type;
    n->nullable = n->args[1]->nullable || n->args[2]->nullable;
    return true;
}

static bool check_coalesce(checker *c, node *n)
{
    if (!unify(c, n, 0, 1, "coalesce"))
        return false;
    n->type = n->args[0]->type;
    n->nullable = n->args[0]->nullable && n->args[1]->nullable;
    return true;
}

static bool check_cast(checker *c, node **slot)
{
    node *n = *slot, *from = n->args[0];
    settle(from, n->type);
    if (from->type == n->type) {
        *slot = from;
        return true;
    }
    n->nullable |= from->type == TIDE_I32 || (from->type == TIDE_F64 && n->type == TIDE_I64);
    (void)c;
    return true;
}

static bool check_math(checker *c, node **slot)
{
    node *n = *slot;
    settle(n->args[0], TIDE_F64);
    if (!is_number(n->args[0]->type))
        return fail_at(c, n->args[0], n->text, "a number");
    bool integer = n->args[0]->type == TIDE_I64;
    if (integer && (n->op == OP_FLOOR || n->op == OP_CEIL || n->op == OP_ROUND)) {
        *slot = n->args[0]; /* an integer is its own floor */
        return true;
    }
    if (n->op == OP_ABS)
        n->type = n->args[0]->type;
    else if (!coerce(c, &n->args[0], TIDE_F64, n->text))
        return false;
    n->nullable |= n->op == OP_SQRT || n->op == OP_LN || n->type == TIDE_I64;
    return true;
}

static bool check_text(checker *c, node *n)
{
    for (size_t i = 0; i < n->arg_count; i++)
        if (!coerce(c, &n->args[i], i == 0 ? TIDE_I32 : TIDE_I64, n->text))
            return false;
    return true;
}

static bool check_aggregate(checker *c, node *n)
{
    node *argument = n->args[0];
    if (n->op == OP_COUNT) {
        settle(argument, TIDE_I64);
        n->nullable = false;
        return true;
    }
    settle(argument, TIDE_I64);
    if ((n->op == OP_SUM || n->op == OP_AVG) && !is_number(argument->type))
        return fail_at(c, argument, n->text, "a number");
    if (n->op != OP_AVG)
        n->type = argument->type;
    n->nullable = true;
    return true;
}

/* ---- the walk ---- */

static bool check_arguments(checker *c, node *n)
{
    const char *before = c->no_aggregates;
    if (n->kind == NODE_AGGREGATE) {
        if (c->no_aggregates != NULL)
            return columns_query_fail(c->error, c->q->text, n->start, "an aggregate inside %s",
                                      c->no_aggregates);
        c->no_aggregates = "an aggregate";
    }
    for (size_t i = 0; i < n->arg_count; i++) {
        if (n->args[i]->kind == NODE_STAR)
            continue;
        if (!check_expression(c, &n->args[i]))
            return false;
        n->nullable |= n->args[i]->nullable;
    }
    c->no_aggregates = before;
    return true;
}

bool check_expression(checker *c, node **slot)
{
    node *n = *slot;
    if (!check_arguments(c, n))
        return false;
    switch (n->kind) {
    case NODE_LITERAL: return check_literal(c, n);
    case NODE_COLUMN: return check_column(c, n);
    case NODE_STAR: return columns_query_fail(c->error, c->q->text, n->start, "* is no value");
    case NODE_ARITHMETIC: return check_arithmetic(c, n);
    case NODE_COMPARE: return check_compare(c, n);
    case NODE_LOGIC:
        n->type = TIDE_BOOL;
        return check_boolean_arguments(c, n, 2, n->op == OP_AND ? "and" : "or");
    case NODE_NOT: n->type = TIDE_BOOL; return check_boolean_arguments(c, n, 1, "not");
    case NODE_IS_NULL:
        settle(n->args[0], TIDE_I64);
        n->type = TIDE_BOOL;
        n->nullable = false;
        return true;
    case NODE_IF: return check_if(c, n);
    case NODE_COALESCE: return check_coalesce(c, n);
    case NODE_CAST: return check_cast(c, slot);
    case NODE_MATH: return check_math(c, slot);
    case NODE_TEXT: return check_text(c, n);
    case NODE_AGGREGATE: return check_aggregate(c, n);
    }
    return false;
}

bool check_typed(checker *c, node **slot, tide_type type, const char *who)
{
    if (!check_expression(c, slot))
        return false;
    settle(*slot, type == TIDE_NO_TYPE ? (tide_type)TIDE_I32 : type);
    return type == TIDE_NO_TYPE || coerce(c, slot, type, who);
}

static bool literal_equal(const node *a, const node *b)
{
    if (a->nullable || b->nullable)
        return a->nullable && b->nullable;
    switch (a->type) {
    case TIDE_I64: return a->literal.integer == b->literal.integer;
    case TIDE_F64: return memcmp(&a->literal.real, &b->literal.real, sizeof(double)) == 0;
    case TIDE_BOOL: return a->literal.boolean == b->literal.boolean;
    default: return a->literal.code == b->literal.code;
    }
}

bool node_equal(const node *a, const node *b)
{
    if (a->kind != b->kind || a->op != b->op || a->type != b->type ||
        a->arg_count != b->arg_count || a->column != b->column)
        return false;
    if (a->kind == NODE_LITERAL && !literal_equal(a, b))
        return false;
    for (size_t i = 0; i < a->arg_count; i++)
        if (!node_equal(a->args[i], b->args[i]))
            return false;
    return true;
}

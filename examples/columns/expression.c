/* SPDX-License-Identifier: MIT */
/* Parsing expressions, from what binds tightest to what binds loosest. */
#include "error.h"
#include "parser.h"

#include <string.h>

node *make_node(parser *p, node_kind kind, operation op, size_t start)
{
    node *n = query_node(p->q, kind, op, start, p->last_end);
    if (n == NULL)
        columns_no_memory(p->error);
    return n;
}

static node *make_literal(parser *p, tide_type type, value literal)
{
    node *n = make_node(p, NODE_LITERAL, OP_NONE, p->now.start);
    if (n == NULL)
        return NULL;
    n->type = type;
    n->literal = literal;
    n->text = p->now.text;
    n->end = p->now.end;
    return advance(p) ? n : NULL;
}

static bool take_argument(parser *p, node *n, node *argument)
{
    n->args[n->arg_count++] = argument;
    if (argument->height + 1 > n->height)
        n->height = argument->height + 1;
    if (n->height > QUERY_HEIGHT)
        return columns_query_fail(p->error, p->q->text, n->start,
                                  "this is nested more than %d levels deep", QUERY_HEIGHT);
    return true;
}

static node *make_binary(parser *p, node_kind kind, operation op, node *left, node *right)
{
    if (right == NULL)
        return NULL;
    node *n = make_node(p, kind, op, left->start);
    if (n == NULL || !take_argument(p, n, left) || !take_argument(p, n, right))
        return NULL;
    return n;
}

static node *fail_arguments(parser *p, const function *f)
{
    columns_query_fail(p->error, p->q->text, p->now.start, "%s takes %zu argument%s", f->name,
                       f->arguments, f->arguments == 1 ? "" : "s");
    return NULL;
}

static node *parse_arguments(parser *p, node *n, const function *f)
{
    for (;;) {
        node *argument;
        if (f->op == OP_COUNT && at_symbol(p, "*")) {
            argument = make_node(p, NODE_STAR, OP_NONE, p->now.start);
            if (argument == NULL || !advance(p))
                return NULL;
        } else {
            argument = parse_expression(p);
        }
        if (argument == NULL || !take_argument(p, n, argument))
            return NULL;
        if (!at_symbol(p, ","))
            break;
        if (n->arg_count == f->arguments)
            return fail_arguments(p, f);
        if (!advance(p))
            return NULL;
    }
    if (n->arg_count < f->arguments)
        return fail_arguments(p, f);
    if (!expect_symbol(p, ")"))
        return NULL;
    n->end = p->last_end;
    return n;
}

static node *parse_call(parser *p, const token *name)
{
    const function *f = function_named(name->text);
    if (f == NULL) {
        columns_query_fail(p->error, p->q->text, name->start, "there is no function %s",
                           name->text);
        return NULL;
    }
    node *n = make_node(p, f->kind, f->op, name->start);
    if (n == NULL || !advance(p))
        return NULL;
    n->type = f->type;
    n->text = f->name;
    return parse_arguments(p, n, f);
}

/* A word: a constant, a function, or the name of a column. */
static node *parse_word(parser *p)
{
    if (at_keyword(p, "true") || at_keyword(p, "false"))
        return make_literal(p, TIDE_BOOL, (value){.boolean = at_keyword(p, "true")});
    if (at_keyword(p, "null")) {
        node *n = make_literal(p, TIDE_NO_TYPE, (value){0});
        if (n != NULL)
            n->nullable = true;
        return n;
    }
    token name = p->now;
    if (!advance(p))
        return NULL;
    if (name.kind == TOKEN_WORD && at_symbol(p, "("))
        return parse_call(p, &name);
    node *n = make_node(p, NODE_COLUMN, OP_NONE, name.start);
    if (n != NULL)
        n->text = name.text;
    return n;
}

static node *parse_parenthesis(parser *p)
{
    if (!advance(p))
        return NULL;
    node *n = parse_expression(p);
    return n != NULL && expect_symbol(p, ")") ? n : NULL;
}

static node *parse_primary(parser *p)
{
    switch (p->now.kind) {
    case TOKEN_INTEGER: return make_literal(p, TIDE_I64, (value){.integer = p->now.integer});
    case TOKEN_REAL: return make_literal(p, TIDE_F64, (value){.real = p->now.real});
    case TOKEN_TEXT: return make_literal(p, TIDE_I32, (value){0});
    case TOKEN_NAME: return parse_word(p);
    case TOKEN_WORD:
        if (!at_reserved(p))
            return parse_word(p);
        break;
    default:
        if (at_symbol(p, "("))
            return parse_parenthesis(p);
        break;
    }
    fail_here(p, "a value");
    return NULL;
}

/* -x is 0 - x, which also gives -0.0 the sign that people expect: none. */
static node *parse_factor(parser *p)
{
    if (!at_symbol(p, "-"))
        return parse_primary(p);
    size_t start = p->now.start;
    if (++p->depth > QUERY_HEIGHT) {
        fail_here(p, "fewer signs");
        return NULL;
    }
    node *zero = make_node(p, NODE_LITERAL, OP_NONE, start);
    if (zero == NULL || !advance(p))
        return NULL;
    zero->type = TIDE_I64;
    zero->text = "0";
    node *n = make_binary(p, NODE_ARITHMETIC, OP_SUBTRACT, zero, parse_factor(p));
    p->depth--;
    return n;
}

typedef struct operator_name {
    const char *symbol;
    operation op;
} operator_name;

static operation at_operator(const parser *p, const operator_name *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (at_symbol(p, names[i].symbol))
            return names[i].op;
    return OP_NONE;
}

static node *parse_product(parser *p)
{
    static const operator_name names[] = {
        {"*", OP_MULTIPLY}, {"/", OP_DIVIDE}, {"%", OP_REMAINDER}};
    node *n = parse_factor(p);
    operation op;
    while (n != NULL && (op = at_operator(p, names, 3)) != OP_NONE)
        n = advance(p) ? make_binary(p, NODE_ARITHMETIC, op, n, parse_factor(p)) : NULL;
    return n;
}

static node *parse_sum(parser *p)
{
    static const operator_name names[] = {{"+", OP_ADD}, {"-", OP_SUBTRACT}};
    node *n = parse_product(p);
    operation op;
    while (n != NULL && (op = at_operator(p, names, 2)) != OP_NONE)
        n = advance(p) ? make_binary(p, NODE_ARITHMETIC, op, n, parse_product(p)) : NULL;
    return n;
}

static node *parse_is_null(parser *p, node *operand)
{
    operation op = OP_IS_NULL;
    if (!advance(p))
        return NULL;
    if (at_keyword(p, "not")) {
        op = OP_IS_NOT_NULL;
        if (!advance(p))
            return NULL;
    }
    if (!expect_keyword(p, "null"))
        return NULL;
    node *n = make_node(p, NODE_IS_NULL, op, operand->start);
    return n != NULL && take_argument(p, n, operand) ? n : NULL;
}

static node *parse_comparison(parser *p)
{
    static const operator_name names[] = {
        {"=", OP_EQUAL},       {"==", OP_EQUAL}, {"!=", OP_UNEQUAL},       {"<>", OP_UNEQUAL},
        {"<=", OP_LESS_EQUAL}, {"<", OP_LESS},   {">=", OP_GREATER_EQUAL}, {">", OP_GREATER}};
    node *n = parse_sum(p);
    if (n == NULL)
        return NULL;
    if (at_keyword(p, "is"))
        return parse_is_null(p, n);
    operation op = at_operator(p, names, sizeof names / sizeof *names);
    if (op == OP_NONE)
        return n;
    return advance(p) ? make_binary(p, NODE_COMPARE, op, n, parse_sum(p)) : NULL;
}

static node *parse_negation(parser *p)
{
    if (!at_keyword(p, "not"))
        return parse_comparison(p);
    size_t start = p->now.start;
    if (++p->depth > QUERY_HEIGHT) {
        fail_here(p, "less negation");
        return NULL;
    }
    node *argument = advance(p) ? parse_negation(p) : NULL;
    p->depth--;
    node *n = argument == NULL ? NULL : make_node(p, NODE_NOT, OP_NONE, start);
    return n != NULL && take_argument(p, n, argument) ? n : NULL;
}

static node *parse_conjunction(parser *p)
{
    node *n = parse_negation(p);
    while (n != NULL && at_keyword(p, "and"))
        n = advance(p) ? make_binary(p, NODE_LOGIC, OP_AND, n, parse_negation(p)) : NULL;
    return n;
}

node *parse_expression(parser *p)
{
    if (++p->depth > QUERY_HEIGHT) {
        fail_here(p, "less nesting");
        return NULL;
    }
    node *n = parse_conjunction(p);
    while (n != NULL && at_keyword(p, "or"))
        n = advance(p) ? make_binary(p, NODE_LOGIC, OP_OR, n, parse_conjunction(p)) : NULL;
    p->depth--;
    return n;
}

/* SPDX-License-Identifier: MIT */
/* Parsing queries: the tokens, and the clauses around the expressions. */
#include "error.h"
#include "parser.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- tokens ---- */

bool advance(parser *p)
{
    p->last_end = p->now.end;
    return lexer_next(p->q, p->now.end, &p->now, p->error);
}

bool at_symbol(const parser *p, const char *symbol)
{
    return p->now.kind == TOKEN_SYMBOL && strcmp(p->now.text, symbol) == 0;
}

bool at_keyword(const parser *p, const char *keyword)
{
    return p->now.kind == TOKEN_WORD && strcasecmp(p->now.text, keyword) == 0;
}

bool fail_here(parser *p, const char *expected)
{
    if (p->now.kind == TOKEN_END)
        return columns_query_fail(p->error, p->q->text, p->now.start,
                                  "%s expected, but the query ends", expected);
    return columns_query_fail(p->error, p->q->text, p->now.start, "%s expected, not %.*s", expected,
                              (int)(p->now.end - p->now.start), p->q->text + p->now.start);
}

bool expect_symbol(parser *p, const char *symbol)
{
    return at_symbol(p, symbol) ? advance(p) : fail_here(p, symbol);
}

bool expect_keyword(parser *p, const char *keyword)
{
    return at_keyword(p, keyword) ? advance(p) : fail_here(p, keyword);
}

static const char *const reserved[] = {"and",   "or", "not", "is",    "as",  "where",
                                       "group", "by", "asc", "order", "desc"};

bool at_reserved(const parser *p)
{
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (at_keyword(p, reserved[i]))
            return true;
    return false;
}

/* ---- clauses ---- */

/* expr ["as" name] | "*"; without a name it is called what it says. */
static bool parse_item(parser *p)
{
    size_t start = p->now.start;
    node *n;
    if (at_symbol(p, "*")) {
        n = make_node(p, NODE_STAR, OP_NONE, start);
        if (n == NULL || !advance(p))
            return false;
    } else if ((n = parse_expression(p)) == NULL) {
        return false;
    }
    const char *label = n->kind == NODE_COLUMN
                            ? n->text
                            : query_text(p->q, p->q->text + start, p->last_end - start);
    if (at_keyword(p, "as")) {
        if (!advance(p))
            return false;
        if (p->now.kind != TOKEN_NAME && (p->now.kind != TOKEN_WORD || at_reserved(p)))
            return fail_here(p, "a name");
        label = p->now.text;
        if (!advance(p))
            return false;
    }
    return (label != NULL && item_list_add(&p->q->items, (item){n, label})) ||
           columns_no_memory(p->error);
}

static bool parse_group(parser *p)
{
    node *n = parse_expression(p);
    return n != NULL && (node_list_add(&p->q->groups, n) || columns_no_memory(p->error));
}

static bool parse_order(parser *p)
{
    order_key key = {.expression = parse_expression(p)};
    if (key.expression == NULL)
        return false;
    key.descending = at_keyword(p, "desc");
    if ((key.descending || at_keyword(p, "asc")) && !advance(p))
        return false;
    return order_list_add(&p->q->order, key) || columns_no_memory(p->error);
}

static bool parse_list(parser *p, bool (*parse_one)(parser *p))
{
    while (parse_one(p)) {
        if (!at_symbol(p, ","))
            return true;
        if (!advance(p))
            return false;
    }
    return false;
}

static bool parse_query(parser *p)
{
    if (!advance(p) || !parse_list(p, parse_item))
        return false;
    if (at_keyword(p, "where"))
        if (!advance(p) || (p->q->where = parse_expression(p)) == NULL)
            return false;
    if (at_keyword(p, "group"))
        if (!advance(p) || !expect_keyword(p, "by") || !parse_list(p, parse_group))
            return false;
    if (at_keyword(p, "order"))
        if (!advance(p) || !expect_keyword(p, "by") || !parse_list(p, parse_order))
            return false;
    if (p->now.kind != TOKEN_END)
        return fail_here(p, p->q->order.count > 0 ? "nothing more" : "an operator or a clause");
    return true;
}

query *query_parse(const char *text, columns_error *error)
{
    query *q = calloc(1, sizeof *q);
    if (q == NULL || (q->text = strdup(text)) == NULL) {
        query_destroy(q);
        columns_no_memory(error);
        return NULL;
    }
    parser p = {.q = q, .error = error};
    if (!parse_query(&p)) {
        query_destroy(q);
        return NULL;
    }
    return q;
}

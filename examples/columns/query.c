/* SPDX-License-Identifier: MIT */
/* From text to a query that is checked, in one pass: the table is known, so a node gets its type when
 * it is made.
 *
 *   query       item, item … [where expression]
 *   item        * | aggregate(expression) | count(*) | expression, all but * with [as name]
 *   expression  by rank: or; and; not; = != < <= > >=, is [not] null; + -; * / %; - */
#include "columns.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct parser {
    columns_job *job;
    const char *at;
    unsigned depth;
    columns_error *error;
    jmp_buf refused;
} parser;

typedef const columns_node *node;

static node expression(parser *p, unsigned rank);

/* ---- words ---------------------------------------------------------------------------------- */

#define REFUSE(p, place, words, ...)                                         \
    columns_refuse((p)->error, (p)->refused, "query, character %td: " words, \
                   (place) - (p)->job->query + 1 __VA_OPT__(, ) __VA_ARGS__)

static const char *place(parser *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
    return p->at;
}

static int word_length(const char *at)
{
    int length = 0;
    while (isalnum((unsigned char)at[length]) || at[length] == '_' || (at[length] & 0x80) != 0)
        length++;
    return length;
}

/* Takes this word or symbol if it comes next. */
static bool take(parser *p, const char *what)
{
    int length = (int)strlen(what);
    if (strncasecmp(place(p), what, (size_t)length) != 0 ||
        (isalpha((unsigned char)*what) && word_length(p->at) != length))
        return false;
    p->at += length;
    return true;
}

static void want(parser *p, const char *what)
{
    if (!take(p, what))
        REFUSE(p, p->at, "'%s' is missing", what);
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static columns_node *make(parser *p, columns_op op, char sign, columns_kind kind, node a, node b)
{
    if (p->job->nodes == COLUMNS_NODES)
        REFUSE(p, p->at, "the query is too long");
    columns_node *made = &p->job->node[p->job->nodes++];
    *made = (columns_node){.op = op, .sign = sign, .kind = kind, .args = {a, b}};
    return made;
}

static bool is_number(node n)
{
    return n->kind == INTEGER || n->kind == REAL;
}

static node to_real(parser *p, node n)
{
    return n->kind == REAL ? n : make(p, TO_REAL, 0, REAL, n, NULL);
}

/* Both get one type: an integer beside a real becomes one. */
static void unify(parser *p, const char *where, node *a, node *b)
{
    if (is_number(*a) && is_number(*b) && (*a)->kind != (*b)->kind) {
        *a = to_real(p, *a);
        *b = to_real(p, *b);
    }
    if ((*a)->kind != (*b)->kind)
        REFUSE(p, where, "the types of both sides differ");
}

static node binary(parser *p, const char *where, char sign, node a, node b)
{
    bool computes = strchr("+-*/%", sign) != NULL;
    unify(p, where, &a, &b);
    if ((sign == '&' || sign == '|') && a->kind != BOOLEAN)
        REFUSE(p, where, "this wants conditions");
    if (computes && (!is_number(a) || (sign == '%' && a->kind != INTEGER)))
        REFUSE(p, where, "this wants %s", sign == '%' ? "integers" : "numbers");
    if (sign == '/') {
        a = to_real(p, a);
        b = to_real(p, b);
    }
    return make(p, BINARY, sign, computes ? a->kind : BOOLEAN, a, b);
}

static node negation(parser *p, const char *where, node n)
{
    if (n->kind != BOOLEAN)
        REFUSE(p, where, "this wants a condition");
    return make(p, NOT, 0, BOOLEAN, n, NULL);
}

/* ---- leaves and functions ------------------------------------------------------------------- */

static node literal(parser *p, columns_kind kind, columns_value value)
{
    columns_node *made = make(p, LITERAL, 0, kind, NULL, NULL);
    made->literal = value;
    return made;
}

static node column(parser *p, const char *name, int length)
{
    const columns_table *table = p->job->table;
    for (size_t i = 0; i < table->count; i++) {
        const columns_text *known = &table->names[i];
        if (known->length != (size_t)length || memcmp(known->start, name, known->length) != 0)
            continue;
        columns_node *made = make(p, COLUMN, 0, table->columns[i].kind, NULL, NULL);
        made->column = i;
        return made;
    }
    REFUSE(p, name, "there is no column '%.*s'", length, name);
}

static node number(parser *p)
{
    char *end, *real_end;
    columns_value real = {.real = strtod(p->at, &real_end)};
    columns_value integer = {.integer = strtoll(p->at, &end, 10)};
    p->at = real_end;
    return end == real_end ? literal(p, INTEGER, integer) : literal(p, REAL, real);
}

/* 'text' or "column" */
static node quoted(parser *p)
{
    const char *start = p->at + 1, *end = strchr(start, *p->at);
    if (end == NULL)
        REFUSE(p, p->at, "a quote is not closed");
    bool text = *p->at == '\'';
    columns_value value = {.text = {start, (size_t)(end - start)}};
    node made = text ? literal(p, TEXT, value) : column(p, start, (int)(end - start));
    p->at = end + 1;
    return made;
}

static node length_of(parser *p, const char *where)
{
    node text = expression(p, 0);
    want(p, ")");
    if (strncasecmp(where, "length", 6) != 0 || text->kind != TEXT)
        REFUSE(p, where, "there is no such function of this");
    return make(p, LENGTH, 0, INTEGER, text, NULL);
}

static node primary(parser *p)
{
    const char *where = place(p);
    int length = word_length(where);
    if (take(p, "(")) {
        node inside = expression(p, 0);
        want(p, ")");
        return inside;
    }
    if (take(p, "-"))
        return binary(p, where, '-', literal(p, INTEGER, (columns_value){0}), primary(p));
    if (isdigit((unsigned char)*where))
        return number(p);
    if (*where == '\'' || *where == '"')
        return quoted(p);
    if (take(p, "true") || take(p, "false"))
        return literal(p, BOOLEAN, (columns_value){.boolean = length == 4});
    if (length == 0)
        REFUSE(p, where, "an expression is missing");
    p->at += length;
    return take(p, "(") ? length_of(p, where) : column(p, where, length);
}

/* ---- operators ------------------------------------------------------------------------------ */

enum { NOT_RANK = 2, TEST_RANK = 3, RANKS = 6, DEPTH_MAX = 100 };

/* Of two that begin alike the longer one comes first. */
static const struct symbol {
    const char *text;
    char sign;
    unsigned rank;
} symbols[] = {{"or", '|', 0}, {"and", '&', 1}, {"<=", 'l', 3}, {">=", 'g', 3}, {"!=", '!', 3},
               {"=", '=', 3},  {"<", '<', 3},   {">", '>', 3},  {"+", '+', 4},  {"-", '-', 4},
               {"*", '*', 5},  {"/", '/', 5},   {"%", '%', 5}};

static const struct symbol *take_symbol(parser *p, unsigned rank)
{
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        if (symbols[i].rank == rank && take(p, symbols[i].text))
            return &symbols[i];
    return NULL;
}

static node expression(parser *p, unsigned rank)
{
    const struct symbol *found;
    const char *where = place(p);
    node left;
    if (p->depth++ == DEPTH_MAX * RANKS)
        REFUSE(p, where, "the expression is too deep");
    if (rank == NOT_RANK && take(p, "not"))
        left = negation(p, where, expression(p, rank));
    else
        left = rank == RANKS ? primary(p) : expression(p, rank + 1);
    while (where = place(p), (found = take_symbol(p, rank)) != NULL)
        left = binary(p, where, found->sign, left, expression(p, rank + 1));
    if (rank == TEST_RANK && take(p, "is")) {
        bool not = take(p, "not");
        want(p, "null");
        left = make(p, IS_NULL, 0, BOOLEAN, left, NULL);
        left = not ? negation(p, where, left) : left;
    }
    p->depth--;
    return left;
}

/* ---- queries -------------------------------------------------------------------------------- */

static node aggregate(parser *p)
{
    static const char *const names[] = {"count", "sum", "avg", "min", "max"};
    static const char signs[] = "csa<>";
    const char *where = place(p);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!take(p, names[i]))
            continue;
        want(p, "(");
        node n = i == 0 && take(p, "*") ? NULL : expression(p, 0);
        want(p, ")");
        if ((signs[i] == 's' || signs[i] == 'a') && !is_number(n))
            REFUSE(p, where, "this wants numbers");
        if (signs[i] == 'a')
            n = to_real(p, n);
        p->job->grouped = true;
        return make(p, AGGREGATE, signs[i], i == 0 ? INTEGER : n->kind, n, NULL);
    }
    return NULL;
}

static void add_item(parser *p, node n, const char *name, size_t length)
{
    if (p->job->items == COLUMNS_ITEMS)
        REFUSE(p, p->at, "there are too many items");
    p->job->item[p->job->items] = n;
    p->job->names[p->job->items++] = (columns_text){name, length};
}

static void item(parser *p)
{
    const columns_table *table = p->job->table;
    const char *name = place(p);
    if (take(p, "*")) {
        for (size_t i = 0; i < table->count; i++) {
            const columns_text *t = &table->names[i];
            add_item(p, column(p, t->start, (int)t->length), t->start, t->length);
        }
        return;
    }
    node n = aggregate(p);
    if (n == NULL)
        n = expression(p, 0);
    const char *end = p->at;
    while (end > name && isspace((unsigned char)end[-1]))
        end--;
    if (take(p, "as")) {
        name = place(p);
        p->at = end = name + word_length(name);
    }
    add_item(p, n, name, (size_t)(end - name));
}

columns_job *columns_job_create(columns_table *table, const char *query, columns_error *error)
{
    columns_job *job = columns_memory(NULL, sizeof *job);
    memset(job, 0, sizeof *job);
    job->table = table;
    job->query = strcpy(columns_memory(NULL, strlen(query) + 1), query);
    parser p = {.job = job, .at = job->query, .error = error};
    if (setjmp(p.refused) != 0) {
        columns_job_destroy(job);
        return NULL;
    }
    do
        item(&p);
    while (take(&p, ","));
    if (take(&p, "where"))
        job->where = expression(&p, 0);
    if (*place(&p) != '\0')
        REFUSE(&p, p.at, "this is not understood");
    if (job->where != NULL && job->where->kind != BOOLEAN)
        REFUSE(&p, p.at, "'where' wants a condition");
    return job;
}

void columns_job_destroy(columns_job *job)
{
    if (job == NULL)
        return;
    columns_table_destroy(job->table);
    free(job->query);
    free(job);
}

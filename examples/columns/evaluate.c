/* SPDX-License-Identifier: MIT */
/* A run: batch by batch, filter the rows, then evaluate the items or add them up.
 *
 * How the operators use Tidepool:
 *   - the caller owns the result. `out` was acquired in the caller's scope (or is a piece of the
 *     result), so an operator can drop everything else when it returns;
 *   - an operator is a scope: what it or its helpers acquire is gone at the closing brace, on
 *     every way out;
 *   - helpers acquire freely: operands() acquires in the scope of whoever called it, of types that
 *     are known only when the query is. */
#include "columns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_ROWS = 4096 };

/* An item of a group: its value, of so many rows; 0: it is null. Integers that overflow stay so. */
typedef struct cell {
    columns_value value;
    int64_t count;
} cell;

typedef struct run {
    tide_pool *pool;
    const columns_job *job;
    columns_table *result;
    columns_error *error;
    size_t groups, room;
    cell *cells; /* of each group one for each item */
} run;

/* `count` rows from `first`, or those of them that were selected. */
typedef struct batch {
    size_t first, count;
    const uint32_t *selection; /* from `first`; NULL: all */
} batch;

typedef columns_vector vector;

static bool evaluate(run *r, const columns_node *n, const batch *rows, vector *out);

static bool no_room(const run *r)
{
    snprintf(r->error->text, sizeof r->error->text, "no memory for temporaries: %s",
             tide_error_message());
    return false;
}

/* The nodes' values: a column's where they lie, or evaluated into memory of the caller's scope. */
static bool operands(run *r, const columns_node *const *nodes, size_t count, const batch *rows,
                     vector *out)
{
    for (size_t i = 0; i < count; i++) {
        const columns_node *n = nodes[i];
        out[i].kind = n->kind;
        if (n->op == COLUMN && rows->selection == NULL) {
            const vector *c = &r->job->table->columns[n->column];
            out[i].values = columns_at(c, rows->first);
            out[i].nulls = c->nulls + rows->first;
            continue;
        }
        out[i].values = tide_acquire_type(r->pool, columns_type(n->kind), rows->count);
        out[i].nulls = tide_acquire(r->pool, bool, rows->count);
        if (out[i].values == NULL || out[i].nulls == NULL)
            return no_room(r);
        if (!evaluate(r, n, rows, &out[i]))
            return false;
    }
    return true;
}

/* ---- loops over a batch --------------------------------------------------------------------- */

/* Element i of a vector, and a loop that sets each of `out`. */
#define OF(T, v, i) (((const T *)(v).values)[i])
#define EACH(T, expression)                \
    do {                                   \
        T *restrict to = out->values;      \
        for (size_t i = 0; i < count; i++) \
            to[i] = (expression);          \
    } while (0)

static void merge_nulls(size_t count, const vector *v, size_t vectors, vector *out)
{
    memcpy(out->nulls, v->nulls, count);
    for (size_t i = 0; i < count && vectors > 1; i++)
        out->nulls[i] |= v[1].nulls[i];
}

static void real_loop(char sign, size_t count, const double *a, const double *b, vector *out)
{
    switch (sign) {
    case '+': EACH(double, a[i] + b[i]); break;
    case '-': EACH(double, a[i] - b[i]); break;
    case '*': EACH(double, a[i] * b[i]); break;
    default:
        EACH(double, a[i] / b[i]);
        for (size_t i = 0; i < count; i++)
            out->nulls[i] |= b[i] == 0;
    }
}

/* What overflows is null. */
static void integer_loop(char sign, size_t count, const int64_t *a, const int64_t *b, vector *out)
{
    int64_t *to = out->values;
    for (size_t i = 0; i < count; i++)
        switch (sign) {
        case '+': out->nulls[i] |= __builtin_add_overflow(a[i], b[i], &to[i]); break;
        case '-': out->nulls[i] |= __builtin_sub_overflow(a[i], b[i], &to[i]); break;
        case '*': out->nulls[i] |= __builtin_mul_overflow(a[i], b[i], &to[i]); break;
        default: out->nulls[i] |= b[i] == 0; to[i] = b[i] == 0 || b[i] == -1 ? 0 : a[i] % b[i];
        }
}

static int text_order(const columns_text *a, const columns_text *b)
{
    int order = memcmp(a->start, b->start, a->length < b->length ? a->length : b->length);
    return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

/* Where a side is null the result is false, and conditions that are null are stored as false. */
static void compare_loop(char sign, size_t count, const vector *v, vector *out)
{
    bool *result = out->values;
#define COMPARE(left, right)                    \
    switch (sign) {                             \
    case '=': EACH(bool, left == right); break; \
    case '!': EACH(bool, left != right); break; \
    case '<': EACH(bool, left < right); break;  \
    case 'l': EACH(bool, left <= right); break; \
    case '>': EACH(bool, left > right); break;  \
    default: EACH(bool, left >= right);         \
    }
    switch (v->kind) {
    case INTEGER: COMPARE(OF(int64_t, v[0], i), OF(int64_t, v[1], i)) break;
    case REAL: COMPARE(OF(double, v[0], i), OF(double, v[1], i)) break;
    case BOOLEAN: COMPARE(OF(bool, v[0], i), OF(bool, v[1], i)) break;
    default: COMPARE(text_order(&OF(columns_text, v[0], i), &OF(columns_text, v[1], i)), 0)
    }
    for (size_t i = 0; i < count; i++)
        result[i] &= !v[0].nulls[i] && !v[1].nulls[i];
}

static int64_t characters(const columns_text *t)
{
    int64_t count = 0;
    for (size_t i = 0; i < t->length; i++)
        count += (t->start[i] & 0xC0) != 0x80;
    return count;
}

static void function_loop(columns_op op, size_t count, const vector *v, vector *out)
{
    switch (op) {
    case TO_REAL: EACH(double, (double)OF(int64_t, *v, i)); break;
    case LENGTH: EACH(int64_t, characters(&OF(columns_text, *v, i))); break;
    case NOT: EACH(bool, !OF(bool, *v, i) && !v->nulls[i]); break;
    default: /* IS_NULL */ EACH(bool, v->nulls[i]); memset(out->nulls, 0, count);
    }
}

/* ---- operators ------------------------------------------------------------------------------ */

static bool arithmetic(run *r, const columns_node *n, const batch *rows, vector *out)
{
    TIDE_SCOPE(r->pool);
    vector v[2];
    if (!operands(r, n->args, 2, rows, v))
        return false;
    merge_nulls(rows->count, v, 2, out);
    if (n->kind == REAL)
        real_loop(n->sign, rows->count, v[0].values, v[1].values, out);
    else
        integer_loop(n->sign, rows->count, v[0].values, v[1].values, out);
    return true;
}

static bool condition(run *r, const columns_node *n, const batch *rows, vector *out)
{
    TIDE_SCOPE(r->pool);
    vector v[2];
    size_t count = rows->count;
    if (!operands(r, n->args, 2, rows, v))
        return false;
    memset(out->nulls, 0, count);
    if (n->sign == '&')
        EACH(bool, OF(bool, v[0], i) && OF(bool, v[1], i));
    else if (n->sign == '|')
        EACH(bool, OF(bool, v[0], i) || OF(bool, v[1], i));
    else
        compare_loop(n->sign, count, v, out);
    return true;
}

static bool function(run *r, const columns_node *n, const batch *rows, vector *out)
{
    TIDE_SCOPE(r->pool);
    vector v;
    if (!operands(r, n->args, 1, rows, &v))
        return false;
    merge_nulls(rows->count, &v, 1, out);
    function_loop(n->op, rows->count, &v, out);
    return true;
}

/* A column's rows, or a literal as often. */
static bool copy(const run *r, const columns_node *n, const batch *rows, vector *out)
{
    const vector *c = n->op == COLUMN ? &r->job->table->columns[n->column] : NULL;
    size_t width = columns_width(n->kind);
    for (size_t i = 0; i < rows->count; i++) {
        size_t row = rows->first + (rows->selection != NULL ? rows->selection[i] : i);
        memcpy(columns_at(out, i), c != NULL ? columns_at(c, row) : &n->literal, width);
        out->nulls[i] = c != NULL && c->nulls[row];
    }
    return true;
}

static bool evaluate(run *r, const columns_node *n, const batch *rows, vector *out)
{
    switch (n->op) {
    case COLUMN:
    case LITERAL: return copy(r, n, rows, out);
    case BINARY:
        return n->kind == BOOLEAN ? condition(r, n, rows, out) : arithmetic(r, n, rows, out);
    default: return function(r, n, rows, out);
    }
}

/* ---- groups --------------------------------------------------------------------------------- */

static bool is_key(const columns_node *n)
{
    return n->op != AGGREGATE;
}

static int value_order(columns_kind kind, const columns_value *a, const columns_value *b)
{
    switch (kind) {
    case INTEGER: return (a->integer > b->integer) - (a->integer < b->integer);
    case REAL: return (a->real > b->real) - (a->real < b->real);
    case BOOLEAN: return a->boolean - b->boolean;
    default: return text_order(&a->text, &b->text);
    }
}

static bool has_keys(const run *r, const cell *group, const vector *items, size_t row)
{
    for (size_t i = 0; i < r->job->items; i++) {
        if (!is_key(r->job->item[i]))
            continue;
        columns_value value = columns_value_at(&items[i], row);
        if (items[i].nulls[row] != (group[i].count == 0) ||
            (!items[i].nulls[row] && value_order(items[i].kind, &group[i].value, &value) != 0))
            return false;
    }
    return true;
}

/* The row's group. Groups are few: they are looked through, from the one of the row before. */
static size_t find_group(run *r, const vector *items, size_t row, size_t before)
{
    size_t width = r->job->items;
    for (size_t i = 0; i < r->groups; i++) {
        size_t group = (before + i) % r->groups;
        if (has_keys(r, &r->cells[group * width], items, row))
            return group;
    }
    if (r->groups == r->room)
        r->cells = columns_memory(r->cells, (r->room = 2 * r->room + 16) * width * sizeof(cell));
    for (size_t i = 0; i < width; i++) {
        bool known = is_key(r->job->item[i]) && items != NULL && !items[i].nulls[row];
        r->cells[r->groups * width + i] =
            known ? (cell){columns_value_at(&items[i], row), 1} : (cell){0};
    }
    return r->groups++;
}

/* One more value for a group. */
static void add_value(char sign, const vector *v, size_t row, cell *to)
{
    columns_value value = columns_value_at(v, row), *total = &to->value;
    if (sign == '<' || sign == '>') {
        int order = to->count == 0 ? 0 : value_order(v->kind, &value, total);
        if (to->count == 0 || (sign == '<' ? order < 0 : order > 0))
            *total = value;
    } else if (sign != 'c' && v->kind == REAL) {
        total->real += value.real;
    } else if (sign != 'c' &&
               __builtin_add_overflow(total->integer, value.integer, &total->integer)) {
        to->count = INT64_MIN / 2;
    }
    to->count++;
}

static bool add_up(run *r, const batch *rows)
{
    const columns_job *job = r->job;
    TIDE_SCOPE(r->pool);
    size_t *groups = tide_acquire(r->pool, size_t, rows->count);
    vector items[COLUMNS_ITEMS];
    if (groups == NULL)
        return no_room(r);
    for (size_t i = 0; i < job->items; i++) {
        const columns_node *const *n = is_key(job->item[i]) ? &job->item[i] : job->item[i]->args;
        if (*n != NULL && !operands(r, n, 1, rows, &items[i]))
            return false;
    }
    for (size_t row = 0; row < rows->count; row++)
        groups[row] = find_group(r, items, row, row > 0 ? groups[row - 1] : 0);
    for (size_t i = 0; i < job->items; i++) {
        const columns_node *n = job->item[i];
        for (size_t row = 0; row < rows->count && !is_key(n); row++) {
            cell *to = &r->cells[groups[row] * job->items + i];
            if (n->args[0] == NULL)
                to->count++;
            else if (!items[i].nulls[row])
                add_value(n->sign, &items[i], row, to);
        }
    }
    return true;
}

/* A row of the result for each group; where nothing is grouped by, one. */
static void finish_groups(run *r)
{
    const columns_job *job = r->job;
    bool keys = false;
    for (size_t i = 0; i < job->items; i++)
        keys |= is_key(job->item[i]);
    if (!keys && r->groups == 0)
        (void)find_group(r, NULL, 0, 0);
    columns_table_reserve(r->result, r->groups);
    r->result->rows = r->groups;
    for (size_t at = 0; at < r->groups * job->items; at++) {
        size_t i = at % job->items, row = at / job->items;
        cell *c = &r->cells[at];
        if (job->item[i]->sign == 'a' && c->count > 0)
            c->value.real /= (double)c->count;
        bool counts = job->item[i]->sign == 'c';
        if (counts)
            c->value.integer = c->count;
        memcpy(columns_at(&r->result->columns[i], row), &c->value,
               columns_width(r->result->columns[i].kind));
        r->result->columns[i].nulls[row] = c->count <= 0 && !counts;
    }
}

/* ---- batches -------------------------------------------------------------------------------- */

/* Narrows the batch to the rows where the condition holds. Their numbers are acquired in the scope
 * of the caller, who needs them for the whole batch; the rest is not. */
static bool filter(run *r, batch *rows)
{
    uint32_t *selection = tide_acquire(r->pool, uint32_t, rows->count);
    TIDE_SCOPE(r->pool);
    vector mask;
    size_t selected = 0;
    if (selection == NULL)
        return no_room(r);
    if (!operands(r, &r->job->where, 1, rows, &mask))
        return false;
    for (size_t i = 0; i < rows->count; i++) {
        selection[selected] = (uint32_t)i;
        selected += OF(bool, mask, i) && !mask.nulls[i];
    }
    rows->count = selected;
    rows->selection = selection;
    return true;
}

/* Evaluates the items right into the result. */
static bool project(run *r, const batch *rows)
{
    columns_table *result = r->result;
    columns_table_reserve(result, result->rows + rows->count);
    for (size_t i = 0; i < r->job->items; i++) {
        vector out = result->columns[i];
        out.values = columns_at(&out, result->rows);
        out.nulls += result->rows;
        if (!evaluate(r, r->job->item[i], rows, &out))
            return false;
    }
    result->rows += rows->count;
    return true;
}

/* The hot loop. Each batch is a scope; TIDE_LOOP keeps one checkpoint for all of them. */
static bool all_batches(run *r)
{
    size_t all = r->job->table->rows;
    TIDE_LOOP(r->pool, i, (all + BATCH_ROWS - 1) / BATCH_ROWS)
    {
        size_t first = i * BATCH_ROWS, left = all - first;
        batch rows = {first, left < BATCH_ROWS ? left : BATCH_ROWS, NULL};
        if (r->job->where != NULL && !filter(r, &rows))
            return false;
        if (rows.count > 0 && !(r->job->grouped ? add_up(r, &rows) : project(r, &rows)))
            return false;
    }
    return true;
}

columns_table *columns_run(const columns_job *job, tide_pool *pool, columns_error *error)
{
    run r = {.pool = pool, .job = job, .error = error};
    r.result = columns_table_create(job->items);
    for (size_t i = 0; i < job->items; i++)
        r.result->columns[i].kind = job->item[i]->kind;
    memcpy(r.result->names, job->names, job->items * sizeof *job->names);
    bool good = all_batches(&r);
    if (good && job->grouped)
        finish_groups(&r);
    free(r.cells);
    if (good)
        return r.result;
    columns_table_destroy(r.result);
    return NULL;
}

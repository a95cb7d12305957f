/* SPDX-License-Identifier: MIT */
/* The operators: each evaluates its operands into temporaries, then runs one tight loop.
 *
 * How they use Tidepool:
 *   - the caller owns the result. `out` was acquired in the caller's scope (or is a piece of the
 *     result table), so an operator can drop everything else when it returns;
 *   - an operator is a scope: what it or its helpers acquire is gone at the closing brace, on
 *     every way out;
 *   - helpers acquire freely. operand() acquires in the scope of whoever called it, and never
 *     says of which type: that is known only when the query is. */
#include "run.h"

#include "error.h"

#include <assert.h>

bool no_room(run *r)
{
    return columns_exhaust(r->error, "no memory for temporaries", tide_error_message());
}

bool room_for(run *r, tide_type type, bool nullable, size_t rows, vector *out)
{
    *out = (vector){.type = type, .values = tide_acquire_type(r->pool, type, rows)};
    if (nullable)
        out->nulls = tide_acquire(r->pool, bool, rows);
    return (out->values != NULL && (out->nulls != NULL || !nullable)) || no_room(r);
}

/* ---- leaves ---- */

static vector literal_of(const node *n)
{
    static bool null = true;
    return (vector){.type = n->type,
                    .constant = true,
                    .values = (void *)&n->literal,
                    .nulls = n->nullable ? &null : NULL};
}

/* A column's rows where they lie, from the first of the batch. */
static vector column_of(const node *n, const batch *rows)
{
    const column *c = &rows->table->columns[n->column];
    return (vector){.type = c->type,
                    .values = column_at(c, rows->first),
                    .nulls = c->nullable ? c->nulls + rows->first : NULL};
}

bool operand(run *r, const node *n, const batch *rows, vector *out)
{
    if (n->kind == NODE_LITERAL) {
        *out = literal_of(n);
        return true;
    }
    if (n->kind == NODE_COLUMN && rows->selection == NULL) {
        *out = column_of(n, rows);
        return true;
    }
    return room_for(r, n->type, n->nullable, rows->count, out) && evaluate(r, n, rows, out);
}

static bool literal(const node *n, const batch *rows, vector *out)
{
    vector from = literal_of(n);
    kernel_copy(rows->count, &from, out);
    return true;
}

static bool read_column(const node *n, const batch *rows, vector *out)
{
    vector from = column_of(n, rows);
    if (rows->selection != NULL)
        kernel_gather(rows->count, &from, rows->selection, out);
    else
        kernel_copy(rows->count, &from, out);
    return true;
}

/* ---- operators ---- */

static bool arithmetic(run *r, const node *n, const batch *rows, vector *out)
{
    TIDE_SCOPE(r->pool);
    vector left, right;
    if (!operand(r, n->args[0], rows, &left) || !operand(r, n->args[1], rows, &right))
        return false;
    kernel_arithmetic(n->op, rows->count, &left, &right, out);
    return true;
}

static bool compare(run *r, const node *n, const batch *rows, vector *out)
{
    TIDE_SCOPE(r->pool);
    vector left, right;
    if (!operand(r, n->args[0], rows, &left) || !operand(r, n->args[1], rows, &right))
        return false;
    kernel_compare(n->op, r->words, rows->count, &left, &right, out);
    return true;
}

static bool logic(run *r, const node *n, const batch *rows, vector *out)
{
    TIDE_SCOPE(r->pool);
    vector left, right;
    if (!operand(r, n->args[0], rows, &left) || !operand(r, n->args[1], rows, &right))
        return false;
    kernel_logic(n->op, rows->count, &left, &right, out);
    return true;
}

static bool negation(run *r, const node *n, const batch *rows, vector *out)
{
    TIDE_SCOPE(r->pool);
    vector from;
    if (!operand(r, n->args[0], rows, &from))
        return false;
    kernel_not(rows->count, &from, out);
    return true;
}

static bool null_test(run *r, const node *n, const batch *rows, vector *out)
{
    TIDE_SCOPE(r->pool);
    vector from;
    if (!operand(r, n->args[0], rows, &from))
        return false;
    kernel_is_null(n->op, rows->count, &from, out);
    return true;
}

/* A scope of its own for what the condition needs: the mask outlives it. */
bool truth_of(run *r, const node *n, const batch *rows, bool *mask)
{
    TIDE_SCOPE(r->pool);
    vector truth;
    if (!operand(r, n, rows, &truth))
        return false;
    kernel_truth(rows->count, &truth, mask);
    return true;
}

static bool choice(run *r, const node *n, const batch *rows, vector *out)
{
    TIDE_SCOPE(r->pool);
    bool *mask = tide_acquire(r->pool, bool, rows->count);
    if (mask == NULL)
        return no_room(r);
    vector yes, no;
    if (!truth_of(r, n->args[0], rows, mask) || !operand(r, n->args[1], rows, &yes) ||
        !operand(r, n->args[2], rows, &no))
        return false;
    kernel_if(rows->count, mask, &yes, &no, out);
    return true;
}

/* The first value, or the second where that is null. */
static bool coalesce(run *r, const node *n, const batch *rows, vector *out)
{
    TIDE_SCOPE(r->pool);
    vector first, second, present;
    if (!operand(r, n->args[0], rows, &first) || !operand(r, n->args[1], rows, &second) ||
        !room_for(r, TIDE_BOOL, false, rows->count, &present))
        return false;
    kernel_is_null(OP_IS_NOT_NULL, rows->count, &first, &present);
    kernel_if(rows->count, present.values, &first, &second, out);
    return true;
}

static bool cast(run *r, const node *n, const batch *rows, vector *out)
{
    TIDE_SCOPE(r->pool);
    vector from;
    if (!operand(r, n->args[0], rows, &from))
        return false;
    return kernel_cast(r->words, rows->count, &from, out) || columns_no_memory(r->error);
}

static bool mathematics(run *r, const node *n, const batch *rows, vector *out)
{
    TIDE_SCOPE(r->pool);
    vector x;
    if (!operand(r, n->args[0], rows, &x))
        return false;
    kernel_math(n->op, rows->count, &x, out);
    return true;
}

static bool text_function(run *r, const node *n, const batch *rows, vector *out)
{
    TIDE_SCOPE(r->pool);
    vector args[NODE_ARGUMENTS];
    for (size_t i = 0; i < n->arg_count; i++)
        if (!operand(r, n->args[i], rows, &args[i]))
            return false;
    return kernel_text(n->op, r->words, rows->count, args, out) || columns_no_memory(r->error);
}

bool evaluate(run *r, const node *n, const batch *rows, vector *out)
{
    assert(out->type == n->type && (out->nulls != NULL) == n->nullable);
    switch (n->kind) {
    case NODE_LITERAL: return literal(n, rows, out);
    case NODE_COLUMN: return read_column(n, rows, out);
    case NODE_ARITHMETIC: return arithmetic(r, n, rows, out);
    case NODE_COMPARE: return compare(r, n, rows, out);
    case NODE_LOGIC: return logic(r, n, rows, out);
    case NODE_NOT: return negation(r, n, rows, out);
    case NODE_IS_NULL: return null_test(r, n, rows, out);
    case NODE_IF: return choice(r, n, rows, out);
    case NODE_COALESCE: return coalesce(r, n, rows, out);
    case NODE_CAST: return cast(r, n, rows, out);
    case NODE_MATH: return mathematics(r, n, rows, out);
    case NODE_TEXT: return text_function(r, n, rows, out);
    case NODE_STAR:
    case NODE_AGGREGATE: break; /* never reaches a run */
    }
    assert(false);
    return false;
}

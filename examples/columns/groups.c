/* SPDX-License-Identifier: MIT */
/* The hash table of groups and the accumulators of the aggregates. */
#include "groups.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Integers are summed in 128 bits: 2^64 rows of them cannot overflow that. */
__extension__ typedef __int128 wide;

/* Reals are summed with what each addition rounds away (Neumaier's way), so that a sum does not
 * drift with the number of rows. */
typedef struct precise {
    double sum, lost;
} precise;

struct accumulator {
    union {
        wide whole;   /* sum and avg of integers       */
        precise real; /* sum and avg of reals          */
        value best;   /* min and max, valid if count>0 */
    };
    int64_t count; /* values that were not null; of count(*) rows */
};

/* ---- life ---- */

static bool grow(groups *g)
{
    size_t room = g->room == 0 ? 64 : 2 * g->room, slot_count = 2 * room;
    if (room > UINT32_MAX / 4)
        return false;
    for (size_t i = 0; i < g->query->aggregates.count; i++) {
        accumulator *totals = realloc(g->totals[i], room * sizeof *totals);
        if (totals == NULL)
            return false;
        g->totals[i] = totals;
    }
    uint64_t *hashes = realloc(g->hashes, room * sizeof *hashes);
    if (hashes == NULL)
        return false;
    g->hashes = hashes;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (slots == NULL || !table_reserve(g->table, room)) {
        free(slots);
        return false;
    }
    for (size_t i = 0; i < g->table->rows; i++) {
        size_t at = hashes[i] & (slot_count - 1);
        while (slots[at] != 0)
            at = (at + 1) & (slot_count - 1);
        slots[at] = (uint32_t)i + 1;
    }
    free(g->slots);
    g->slots = slots;
    g->slot_count = slot_count;
    g->room = room;
    return true;
}

/* A group without rows; there is room. The caller fills in its key. */
static size_t new_group(groups *g, uint64_t hash)
{
    assert(g->table->rows < g->room);
    g->hashes[g->table->rows] = hash;
    for (size_t i = 0; i < g->query->aggregates.count; i++)
        memset(&g->totals[i][g->table->rows], 0, sizeof(accumulator));
    return g->table->rows++;
}

bool groups_begin(groups *g, const query *q, dictionary *words)
{
    size_t keys = q->groups.count, count = keys + q->aggregates.count;
    *g = (groups){.query = q, .table = table_create(words, count)};
    g->totals = calloc(count, sizeof *g->totals);
    bool ok = g->table != NULL && g->totals != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        const node *n = i < keys ? q->groups.at[i] : q->aggregates.at[i - keys];
        ok = table_set_column(g->table, i, "", n->type, n->nullable);
    }
    if (!ok || !grow(g)) {
        groups_end(g);
        return false;
    }
    if (keys == 0)
        new_group(g, 0);
    return true;
}

void groups_end(groups *g)
{
    for (size_t i = 0; g->totals != NULL && i < g->query->aggregates.count; i++)
        free(g->totals[i]);
    free(g->totals);
    free(g->hashes);
    free(g->slots);
    columns_table_destroy(g->table);
    *g = (groups){0};
}

/* ---- finding groups ---- */

static vector key_column(const groups *g, size_t key)
{
    const column *c = &g->table->columns[key];
    return (vector){.type = c->type, .values = c->values, .nulls = c->nulls};
}

static bool null_at(const vector *a, size_t i)
{
    return a->nulls != NULL && a->nulls[i];
}

static bool same_key(const groups *g, size_t group, const vector *keys, size_t row)
{
    for (size_t i = 0; i < g->query->groups.count; i++) {
        vector known = key_column(g, i);
        if (null_at(&known, group) != null_at(&keys[i], row) ||
            vector_key(&known, group) != vector_key(&keys[i], row))
            return false;
    }
    return true;
}

static void store_key(groups *g, size_t group, const vector *keys, size_t row)
{
    for (size_t i = 0; i < g->query->groups.count; i++) {
        column *c = &g->table->columns[i];
        size_t width = type_width(c->type);
        memcpy(column_at(c, group), (const char *)keys[i].values + row * width, width);
        if (c->nullable)
            c->nulls[group] = null_at(&keys[i], row);
    }
}

bool groups_find(groups *g, const vector *keys, const uint64_t *hashes, size_t rows, uint32_t *ids)
{
    for (size_t row = 0; row < rows; row++) {
        if (g->table->rows == g->room && !grow(g))
            return false;
        size_t at = hashes[row] & (g->slot_count - 1);
        while (g->slots[at] != 0 && (g->hashes[g->slots[at] - 1] != hashes[row] ||
                                     !same_key(g, g->slots[at] - 1, keys, row)))
            at = (at + 1) & (g->slot_count - 1);
        if (g->slots[at] == 0) {
            size_t group = new_group(g, hashes[row]);
            store_key(g, group, keys, row);
            g->slots[at] = (uint32_t)group + 1;
        }
        ids[row] = g->slots[at] - 1;
    }
    return true;
}

/* ---- adding up ---- */

/* For each row that is not null; with one group the accumulator stays in registers. */
#define ADD(T, STEP)                                 \
    do {                                             \
        const T *restrict values = a->values;        \
        if (ids == NULL) {                           \
            accumulator one = totals[0], *to = &one; \
            for (size_t i = 0; i < rows; i++) {      \
                if (null_at(a, i))                   \
                    continue;                        \
                T x = values[i];                     \
                STEP;                                \
                to->count++;                         \
            }                                        \
            totals[0] = one;                         \
        } else {                                     \
            for (size_t i = 0; i < rows; i++) {      \
                accumulator *to = &totals[ids[i]];   \
                if (null_at(a, i))                   \
                    continue;                        \
                T x = values[i];                     \
                STEP;                                \
                to->count++;                         \
            }                                        \
        }                                            \
    } while (0)

static inline void add_real(precise *to, double x)
{
    double sum = to->sum + x;
    to->lost += fabs(to->sum) >= fabs(x) ? (to->sum - sum) + x : (x - sum) + to->sum;
    to->sum = sum;
}

/* Where a sum is infinite, what was lost on the way there is not a number. */
static double real_sum(const precise *p)
{
    return isfinite(p->sum) ? p->sum + p->lost : p->sum;
}

#define BEST(FIELD, BETTER)             \
    do {                                \
        if (to->count == 0 || (BETTER)) \
            to->best.FIELD = x;         \
    } while (0)

static void add_best(operation op, const word *text, accumulator *totals, const vector *a,
                     size_t rows, const uint32_t *ids)
{
    bool least = op == OP_MIN;
    switch (a->type) {
    case TIDE_I64:
        ADD(int64_t, BEST(integer, least ? x < to->best.integer : x > to->best.integer));
        break;
    case TIDE_F64: ADD(double, BEST(real, least ? x < to->best.real : x > to->best.real)); break;
    case TIDE_BOOL:
        ADD(bool, BEST(boolean, least ? x < to->best.boolean : x > to->best.boolean));
        break;
    default:
        ADD(int32_t, BEST(code, x != to->best.code &&
                                    (word_compare(&text[x], &text[to->best.code]) < 0) == least));
        break;
    }
}

static void add_count(accumulator *totals, const vector *a, size_t rows, const uint32_t *ids)
{
    for (size_t i = 0; i < rows; i++)
        totals[ids == NULL ? 0 : ids[i]].count += a == NULL || !null_at(a, i);
}

void groups_add(groups *g, size_t index, const vector *a, size_t rows, const uint32_t *ids)
{
    accumulator *totals = g->totals[index];
    operation op = g->query->aggregates.at[index]->op;
    assert(a == NULL || !a->constant);
    if (op == OP_COUNT)
        add_count(totals, a, rows, ids);
    else if (op == OP_MIN || op == OP_MAX)
        add_best(op, dictionary_words(g->table->words), totals, a, rows, ids);
    else if (a->type == TIDE_I64)
        ADD(int64_t, to->whole += x);
    else
        ADD(double, add_real(&to->real, x));
}

/* ---- the result ---- */

static value total_of(const node *n, const accumulator *t, bool *null)
{
    bool integers = n->arg_count > 0 && n->args[0]->type == TIDE_I64;
    *null = t->count == 0;
    switch (n->op) {
    case OP_COUNT: return (value){.integer = t->count};
    case OP_SUM:
        if (!integers)
            return (value){.real = real_sum(&t->real)};
        *null |= t->whole != (int64_t)t->whole; /* a sum that does not fit */
        return (value){.integer = *null ? 0 : (int64_t)t->whole};
    case OP_AVG:
        if (*null)
            return (value){.real = 0};
        return (value){.real =
                           (integers ? (double)t->whole : real_sum(&t->real)) / (double)t->count};
    default: return *null ? (value){0} : t->best;
    }
}

columns_table *groups_finish(groups *g)
{
    columns_table *table = g->table;
    for (size_t i = 0; i < g->query->aggregates.count; i++) {
        column *c = &table->columns[g->query->groups.count + i];
        for (size_t row = 0; row < table->rows; row++) {
            bool null;
            value v = total_of(g->query->aggregates.at[i], &g->totals[i][row], &null);
            memcpy(column_at(c, row), &v, type_width(c->type));
            if (c->nullable)
                c->nulls[row] = null;
        }
    }
    g->table = NULL;
    return table;
}

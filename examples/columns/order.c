/* SPDX-License-Identifier: MIT */
/* A merge sort of row numbers: stable, and the same on every system. */
#include "order.h"

#include <math.h>
#include <string.h>

/* Not-a-number sorts before all numbers, so that the order is one. */
static int compare_reals(double a, double b)
{
    if (isnan(a) || isnan(b))
        return !isnan(a) - !isnan(b);
    return (a > b) - (a < b);
}

static int compare_values(const column *c, const word *text, size_t a, size_t b)
{
    if (column_null(c, a) || column_null(c, b))
        return !column_null(c, a) - !column_null(c, b);
    switch (c->type) {
    case TIDE_I64: {
        const int64_t *values = c->values;
        return (values[a] > values[b]) - (values[a] < values[b]);
    }
    case TIDE_F64: return compare_reals(((double *)c->values)[a], ((double *)c->values)[b]);
    case TIDE_BOOL: return ((bool *)c->values)[a] - ((bool *)c->values)[b];
    default: {
        const int32_t *codes = c->values;
        return word_compare(&text[codes[a]], &text[codes[b]]);
    }
    }
}

static bool in_order(const columns_table *table, const order_list *by, size_t a, size_t b)
{
    const word *text = dictionary_words(table->words);
    for (size_t i = 0; i < by->count; i++) {
        int order = compare_values(&table->columns[by->at[i].item], text, a, b);
        if (order != 0)
            return (order < 0) != by->at[i].descending;
    }
    return true;
}

static void sort(const columns_table *table, const order_list *by, size_t *index, size_t count,
                 size_t *spare)
{
    if (count < 2)
        return;
    size_t half = count / 2, left = 0, right = half;
    sort(table, by, index, half, spare);
    sort(table, by, index + half, count - half, spare);
    if (in_order(table, by, index[half - 1], index[half]))
        return;
    memcpy(spare, index, half * sizeof *index);
    for (size_t i = 0; left < half; i++) {
        bool from_left = right == count || in_order(table, by, spare[left], index[right]);
        index[i] = from_left ? spare[left++] : index[right++];
    }
}

void order_rows(const columns_table *table, const order_list *by, size_t *index, size_t *spare)
{
    for (size_t i = 0; i < table->rows; i++)
        index[i] = i;
    sort(table, by, index, table->rows, spare);
}

static void pick_rows(const column *from, column *to, const size_t *index, size_t rows)
{
    size_t width = type_width(from->type);
    for (size_t i = 0; i < rows; i++) {
        size_t row = index == NULL ? i : index[i];
        memcpy(column_at(to, i), column_at(from, row), width);
        if (to->nullable)
            to->nulls[i] = from->nulls[row];
    }
}

columns_table *order_pick(const columns_table *table, const item_list *items, size_t columns,
                          const size_t *index, size_t rows)
{
    columns_table *result = table_create(table->words, columns);
    bool ok = result != NULL;
    for (size_t i = 0; ok && i < columns; i++) {
        const column *c = &table->columns[i];
        ok = table_set_column(result, i, items->at[i].label, c->type, c->nullable);
    }
    if (!ok || !table_reserve(result, rows > 0 ? rows : 1)) {
        columns_table_destroy(result);
        return NULL;
    }
    for (size_t i = 0; i < columns; i++)
        pick_rows(&table->columns[i], &result->columns[i], index, rows);
    result->rows = rows;
    return result;
}

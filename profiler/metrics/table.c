/* SPDX-License-Identifier: MIT */
/* Series by their labels. */
#include "profiler/metrics/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/metrics/value.h"
#include "runtime/base/assert.h"

static void table_labels(const tide_table *table, const json_t *object, tide_table_labels out)
{
    memset(out, 0, sizeof(tide_table_labels));
    for (int i = 0; table->form->labels[i] != NULL; i++) {
        const char *text = tide_value_text(object, table->form->labels[i]);
        if (strcmp(table->form->labels[i], "file") != 0) {
            tide_value_plain(out[i], TIDE_TABLE_LABEL_BYTES, text);
            continue;
        }
        char file[TIDE_TABLE_LABEL_BYTES - 16];
        const char *slash = strrchr(text, '/');
        tide_value_plain(file, sizeof file, slash != NULL ? slash + 1 : text);
        if (file[0] != 0)
            snprintf(out[i], TIDE_TABLE_LABEL_BYTES, "%s:%u", file,
                     (unsigned)tide_value_count(object, "line"));
    }
}

static void table_other(const tide_table *table, tide_table_labels out)
{
    memset(out, 0, sizeof(tide_table_labels));
    for (int i = 0; table->form->labels[i] != NULL; i++)
        snprintf(out[i], TIDE_TABLE_LABEL_BYTES, "other");
}

static tide_table_row *table_find(const tide_table *table, tide_table_labels labels)
{
    for (size_t i = 0; i < table->count; i++) {
        if (memcmp(table->rows[i].labels, labels, sizeof(tide_table_labels)) == 0)
            return &table->rows[i];
    }
    return NULL;
}

/* The row of these labels, made if there is none; that of "other" where there is no room. */
static tide_table_row *table_row(tide_table *table, tide_table_labels labels)
{
    tide_table_row *found = table_find(table, labels);
    if (found == NULL && table->count >= table->most) {
        table_other(table, labels);
        found = table_find(table, labels);
    }
    if (found != NULL)
        return found;
    if (table->count == table->room) {
        size_t room = table->room * 2 + 8;
        tide_table_row *rows = realloc(table->rows, room * sizeof *rows);
        if (rows == NULL)
            return NULL;
        table->rows = rows;
        table->room = room;
    }
    tide_table_row *row = &table->rows[table->count++];
    tide_assert(table->count <= table->most + 1);
    memset(row, 0, sizeof *row);
    memcpy(row->labels, labels, sizeof(tide_table_labels));
    return row;
}

bool tide_table_add(tide_table *table, const json_t *object)
{
    tide_table_labels labels, own;
    table_labels(table, object, labels);
    memcpy(own, labels, sizeof own);
    tide_table_row *row = table_row(table, labels);
    if (row == NULL)
        return false;
    for (int i = 0; table->form->values[i] != NULL; i++)
        row->values[i] += tide_value_number(object, table->form->values[i]);
    row->things++;
    if (row->first == NULL && memcmp(own, labels, sizeof own) == 0)
        row->first = object;
    return true;
}

bool tide_table_reserve(tide_table *table, const json_t *document)
{
    const json_t *object;
    size_t i;
    json_array_foreach(json_object_get(document, table->form->list), i, object)
    {
        tide_table_labels labels;
        table_labels(table, object, labels);
        if (table_row(table, labels) == NULL)
            return false;
    }
    return true;
}

bool tide_table_fill(tide_table *table, const json_t *document)
{
    const json_t *object;
    size_t i;
    json_array_foreach(json_object_get(document, table->form->list), i, object)
    {
        if (!tide_table_add(table, object))
            return false;
    }
    return true;
}

bool tide_table_merge(tide_table *table, const tide_table *other)
{
    tide_assert(table->form == other->form);
    for (size_t i = 0; i < other->count; i++) {
        tide_table_labels labels;
        memcpy(labels, other->rows[i].labels, sizeof labels);
        tide_table_row *row = table_row(table, labels);
        if (row == NULL)
            return false;
        for (int v = 0; table->form->values[v] != NULL; v++)
            row->values[v] += other->rows[i].values[v];
    }
    return true;
}

void tide_table_free(tide_table *table)
{
    free(table->rows);
    table->rows = NULL;
    table->count = table->room = 0;
}

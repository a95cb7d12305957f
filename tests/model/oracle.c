/* SPDX-License-Identifier: MIT */
/* The oracle itself: its rows, its first mistake, and what the pool says of a slot. */
#include "oracle_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/pool/row.h"

void oracle_begin(struct oracle *oracle, tide_pool *pool)
{
    memset(oracle, 0, sizeof *oracle);
    oracle->pool = pool;
    tide_pool_stats(pool, &oracle->now);
}

void place_hollow(struct place *place)
{
    free(place->copy);
    *place = (struct place){0};
}

void row_swap(struct row *row, size_t near, size_t far)
{
    struct place place = row->places[near];
    row->places[near] = row->places[far];
    row->places[far] = place;
}

void row_forget(struct row *row, size_t from)
{
    seats_forget(row, from);
    while (row->count > from)
        place_hollow(&row->places[--row->count]);
}

void oracle_end(struct oracle *oracle)
{
    for (unsigned type = 0; type < MODEL_TYPES; type++) {
        row_forget(&oracle->rows[type], 0);
        free(oracle->rows[type].places);
        free(oracle->rows[type].seats);
    }
    while (oracle->live_count > 0)
        free(oracle->live[--oracle->live_count].nd);
    arrays_end(oracle);
}

static const tide_row *row_of(const struct oracle *oracle, unsigned type)
{
    return &oracle->pool->core->rows.by_type[model_types[type].id];
}

size_t oracle_sees_slot(const struct oracle *oracle, unsigned type, const tide_array *array)
{
    return (size_t)(array->slot - row_of(oracle, type)->slots);
}

bool oracle_sees_guard(const struct oracle *oracle, unsigned type, size_t place)
{
    return row_of(oracle, type)->records[place].guard != NULL;
}

void oracle_wrong(struct oracle *oracle, const char *format, ...)
{
    if (oracle->wrong[0] != '\0')
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(oracle->wrong, sizeof oracle->wrong, format, arguments);
    va_end(arguments);
}

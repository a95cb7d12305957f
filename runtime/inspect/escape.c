/* SPDX-License-Identifier: MIT */
/* Does a pointer leave the scope that will rewind it? Searched in the live arrays of the innermost
 * scope, or of all scopes that end with a function, in each checked pool of the thread. */
#include <tidepool/check.h>
#include <tidepool/inline/array.h>

#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/check/report.h"
#include "runtime/pool/row.h"

typedef struct escape_query {
    const char *pointer;
    tide_place returning; /* of a function that returns it; all zero: asked anywhere */
    uintptr_t thread;
    const tide_pool *pool; /* that the pointer escapes from, or NULL */
    const tide_row *row;
    const tide_slot_record *record;
} escape_query;

/* An array without elements has an address all the same. */
static bool escape_slot_holds(const tide_row *row, const tide_slot *slot,
                              const tide_slot_record *record, const char *pointer)
{
    size_t used = 0;
    tide_type_bytes(tide_type_facts_of(row->type), record->length, &used);
    const char *data = slot->data;
    return (data != NULL && pointer >= data && pointer < data + (used != 0 ? used : 1)) ||
           (const void *)slot->array == pointer;
}

/* Of a template's instance __func__ has the name alone, and __builtin_FUNCTION its arguments, too. */
static bool escape_is_same_name(const char *one, const char *other)
{
    size_t length = strcspn(one, "<");
    return length == strcspn(other, "<") && strncmp(one, other, length) == 0;
}

/* Is that level a scope of the function which returns? A place without a file is a mark's. What is
 * opened below the line that returns is another function's, of the same name. */
static bool escape_is_of(const tide_open_level *open, const tide_place *returning)
{
    const tide_place *place = &open->place;
    if (place->file == NULL || returning->file == NULL)
        return false;
    return place->line <= returning->line &&
           escape_is_same_name(place->function, returning->function) &&
           strcmp(place->file, returning->file) == 0;
}

/* The level from which on all ends: the innermost one, or the oldest that this call of the
 * returning function opened; UINT32_MAX: it has none open. Scopes that stand in each other stand on
 * later and later lines; where the line does not grow, the function was called by itself. */
static uint32_t escape_first_to_end(const tide_pool *pool, const tide_place *returning)
{
    const tide_levels *levels = &pool->core->levels;
    uint32_t i = levels->count, line = UINT32_MAX;
    uint32_t first = returning->file == NULL ? tide_level(pool->tag) : UINT32_MAX;
    while (i > 0 && !escape_is_of(&levels->open[i - 1], returning))
        i--;
    for (; i > 0 && escape_is_of(&levels->open[i - 1], returning); i--) {
        if (levels->open[i - 1].place.line >= line)
            break;
        line = levels->open[i - 1].place.line;
        first = tide_level(levels->open[i - 1].tag);
    }
    tide_assert(first > 1 && (first <= tide_level(pool->tag) || first == UINT32_MAX));
    return first;
}

static void escape_search_row(const tide_pool *pool, const tide_row *row, uint32_t first,
                              escape_query *query)
{
    tide_assert(pool->core->careful && row->shelf != NULL); /* else no record says what is live */
    for (const tide_slot *slot = row->slots; slot < row->shelf->next; slot++) {
        const tide_slot_record *record = tide_slot_record_of(row, slot);
        if (!record->live || tide_level(record->tag) < first ||
            !escape_slot_holds(row, slot, record, query->pointer))
            continue;
        query->pool = pool;
        query->row = row;
        query->record = record;
    }
}

/* Registry locked. */
static void escape_search_pool(tide_pool *pool, void *user)
{
    escape_query *query = user;
    const tide_pool_core *core = pool->core;
    if (core->check < TIDE_CHECK_POISON || tide_pool_owner(core) != query->thread ||
        tide_at_root(pool))
        return;
    uint32_t first = escape_first_to_end(pool, &query->returning);
    for (uint32_t i = 0; i < core->rows.used_count; i++)
        escape_search_row(pool, core->rows.used[i], first, query);
}

/* What was found stays as it is until the report is out: the pool is this thread's. */
static bool escape_check(const void *pointer, tide_place returning)
{
    escape_query query = {.pointer = pointer, .returning = returning, .thread = tide_os_thread()};
    if (pointer != NULL)
        tide_pools_visit(escape_search_pool, &query);
    if (query.pool == NULL)
        return true;
    tide_assert(query.row != NULL && query.record != NULL && query.record->live);
    tide_report(TIDE_REPORT_ESCAPE,
                "escape: a pointer to an array of %zu %.60s leaves the scope that will rewind "
                "it in pool '%s'\n  acquired  %s%s%s",
                query.record->length, tide_type_facts_of(query.row->type)->name,
                query.pool->core->name, tide_place_text(query.record->place).text,
                returning.file != NULL ? "\n  returned  " : "",
                returning.file != NULL ? tide_place_text(returning).text : "");
    return false;
}

bool tide_escape_check(const void *pointer)
{
    return escape_check(pointer, (tide_place){TIDE_NOWHERE});
}

bool tide_return_check(const void *pointer, const char *file, const char *function, uint32_t line)
{
    tide_assert(file != NULL && function != NULL);
    return escape_check(pointer, (tide_place){file, function, line});
}

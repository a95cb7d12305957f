/* SPDX-License-Identifier: MIT */
/* Does a pointer leave the scope that will rewind it? Searched in the live arrays of the innermost
 * scope, in each checked pool of the thread. */
#include <tidepool/check.h>
#include <tidepool/inline/array.h>

#include "runtime/base/assert.h"
#include "runtime/check/report.h"
#include "runtime/pool/row.h"

typedef struct escape_query {
    const char *pointer;
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
    tide_type_bytes(tide_type_find(row->type), record->length, &used);
    const char *data = slot->data;
    return (data != NULL && pointer >= data && pointer < data + (used != 0 ? used : 1)) ||
           (const void *)slot->array == pointer;
}

static void escape_search_row(const tide_pool *pool, const tide_row *row, escape_query *query)
{
    tide_assert(pool->core->careful && row->shelf != NULL); /* else no record says what is live */
    for (const tide_slot *slot = row->slots; slot < row->shelf->next; slot++) {
        const tide_slot_record *record = tide_slot_record_of(row, slot);
        if (!record->live || record->tag != pool->tag ||
            !escape_slot_holds(row, slot, record, query->pointer))
            continue;
        query->pool = pool;
        query->row = row;
        query->record = record;
    }
}

static void escape_search_pool(tide_pool *pool, void *user)
{
    escape_query *query = user;
    const tide_pool_core *core = pool->core;
    if (core->check < TIDE_CHECK_POISON || tide_pool_owner(core) != query->thread ||
        pool->tag == TIDE_TAG_ROOT)
        return;
    for (uint32_t i = 0; i < core->rows.used_count; i++)
        escape_search_row(pool, core->rows.used[i], query);
}

/* What was found stays as it is until the report is out: the pool is this thread's. */
bool tide_escape_check(const void *pointer)
{
    escape_query query = {.pointer = pointer, .thread = tide_os_thread()};
    if (pointer != NULL)
        tide_pool_each(escape_search_pool, &query);
    if (query.pool == NULL)
        return true;
    tide_assert(query.row != NULL && query.record != NULL && query.record->live);
    tide_report(TIDE_REPORT_ESCAPE,
                "escape: a pointer to an array of %zu %.60s leaves the scope that will rewind "
                "it in pool '%s'\n  acquired  %s",
                query.record->length, tide_type_find(query.row->type)->name, query.pool->core->name,
                tide_place_text(query.record->place).text);
    return false;
}

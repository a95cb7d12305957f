/* SPDX-License-Identifier: MIT */
/* Does a pointer leave the scope that will rewind it? */
#include <tidepool/check.h>
#include <tidepool/inline/array.h>

#include "runtime/report.h"
#include "runtime/row.h"

int tide_checked_pools;

typedef struct escape_query {
    const char *pointer;
    uintptr_t thread;
    bool escapes;
} escape_query;

static bool holds(const tide_slot *slot, const tide_slot_record *record, const char *pointer)
{
    const char *data = slot->data;
    return record->live && ((pointer >= data && pointer < data + record->bytes) ||
                            (const void *)slot->array == pointer);
}

static void search_row(const tide_pool *pool, const tide_row *row, escape_query *query)
{
    for (const tide_slot *slot = row->slots; slot < row->shelf->next; slot++) {
        const tide_slot_record *record = tide_slot_record_of(row, slot);
        if (record->tag != pool->tag || !holds(slot, record, query->pointer))
            continue;
        query->escapes = true;
        tide_report(TIDE_REPORT_ESCAPE,
                    "escape: a pointer to an array of %zu %s leaves the scope that will rewind "
                    "it in pool '%s'\n  acquired  %s",
                    record->length, tide_type_find(row->type)->name, pool->core->name,
                    tide_place_text(record->place));
    }
}

static void search_pool(tide_pool *pool, void *user)
{
    escape_query *query = user;
    const tide_pool_core *core = pool->core;
    if (core->check < TIDE_CHECK_POISON || core->owner != query->thread ||
        pool->tag == TIDE_TAG_ROOT)
        return;
    for (uint32_t i = 0; i < core->used_count; i++)
        search_row(pool, core->used[i], query);
}

bool tide_escape_check(const void *pointer)
{
    escape_query query = {.pointer = pointer, .thread = tide_os_thread()};
    if (pointer != NULL)
        tide_pool_each(search_pool, &query);
    return !query.escapes;
}

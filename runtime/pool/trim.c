/* SPDX-License-Identifier: MIT */
/* Giving free memory back: all of it (trim), or what far exceeds its recent use (compact).
 * Both touch slots from `next` on only, so no live array moves or shrinks, at any depth. */
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/settings.h"
#include "runtime/pool/export.h"
#include "runtime/pool/header.h"
#include "runtime/pool/invariants.h"
#include "runtime/pool/row.h"
#include "runtime/pool/streams.h"

/* Exported memory becomes the slot's again if its consumer is done; then it is
 * ours to give back. */
static void trim_give_back(tide_pool *pool, tide_row *row, tide_slot *slot,
                           tide_trim_summary *summary)
{
    tide_assert(slot >= row->shelf->next && slot < row->slots + row->count); /* it is free */
    if (tide_slot_record_of(row, slot)->exported != NULL)
        tide_export_settle(pool, row, slot);
    if (slot->data == NULL)
        return;
    summary->slots++;
    summary->bytes += tide_slot_record_of(row, slot)->bytes;
    tide_slot_hollow(pool, row, slot);
    tide_assert(slot->data == NULL && slot->limit == 0);
}

/* Takes slots away, too: those that are free lie behind those that are live. */
static void trim_row(tide_pool *pool, tide_row *row, tide_trim_summary *summary)
{
    for (tide_slot *slot = row->shelf->next; slot < row->slots + row->count; slot++)
        trim_give_back(pool, row, slot, summary);
    while (row->count > tide_row_live(row))
        tide_header_forget(pool, &row->slots[--row->count]);
    tide_assert(row->shelf->next == row->slots + row->count);
}

/* Does the slot hold far more than was asked of it since the last compact? */
static bool trim_is_wasteful(const tide_row *row, const tide_slot_record *record)
{
    size_t used = 0;
    tide_type_bytes(tide_type_find(row->type), record->peak, &used);
    return (double)record->bytes >= tide_setting_get(TIDE_SETTING_compact_factor) * (double)used &&
           (double)(record->bytes - used) >= tide_setting_get(TIDE_SETTING_compact_gain) * 1024;
}

/* Afterwards every free slot shows a limit of 0, so that its next use comes by cold code once and
 * starts a new peak. */
static void trim_compact_row(tide_pool *pool, tide_row *row, tide_trim_summary *summary)
{
    for (tide_slot *slot = row->shelf->next; slot < row->slots + row->count; slot++) {
        tide_slot_record *record = tide_slot_record_of(row, slot);
        if (trim_is_wasteful(row, record))
            trim_give_back(pool, row, slot, summary);
        record->peak = 0;
        slot->limit = 0;
    }
}

static tide_trim_summary trim_each_row(tide_pool *pool, tide_type type, const char *call,
                                       void (*work)(tide_pool *, tide_row *, tide_trim_summary *))
{
    tide_trim_summary summary = {0};
    if (tide_pool_use(pool, call) != TIDE_OK || tide_streams_quiet(pool, call) != TIDE_OK)
        return summary;
    if (type != TIDE_ALL_TYPES && tide_type_find(type) == NULL) {
        tide_fail(TIDE_ERROR_TYPE, call, "no type %u, there are %u", type, tide_type_count());
        return summary;
    }
    for (uint32_t i = 0; i < pool->core->rows.used_count; i++) {
        tide_row *row = pool->core->rows.used[i];
        if (type == TIDE_ALL_TYPES || type == row->type)
            work(pool, row, &summary);
    }
    tide_assert_valid(pool);
    return summary;
}

tide_trim_summary tide_pool_trim(tide_pool *pool, tide_type type)
{
    return trim_each_row(pool, type, "tide_pool_trim", trim_row);
}

tide_trim_summary tide_pool_compact(tide_pool *pool, tide_type type)
{
    return trim_each_row(pool, type, "tide_pool_compact", trim_compact_row);
}

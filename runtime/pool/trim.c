/* SPDX-License-Identifier: MIT */
/* Free memory given back: all of it (trim), what far exceeds its use since the last time (compact), or,
 * when the library does it by itself in passes, what was not used lately and what far exceeds its use
 * lately. Steps of a loop may take turns, so what a slot was asked for lately is the most of several
 * passes.
 * All of them touch slots from `next` on only, so no live array moves or shrinks, at any depth. */
#include "runtime/pool/trim.h"

#include <tidepool/upkeep.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/probe.h"
#include "runtime/base/settings.h"
#include "runtime/device/budget.h"
#include "runtime/pool/export.h"
#include "runtime/pool/header.h"
#include "runtime/pool/press.h"
#include "runtime/pool/request.h"
#include "runtime/pool/row.h"
#include "runtime/pool/shell.h"

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
    while (row->count > tide_row_live(row)) {
        __atomic_store_n(&row->count, row->count - 1, __ATOMIC_RELAXED); /* others may look */
        tide_header_forget(&row->slots[row->count]);
    }
    tide_assert(row->shelf->next == row->slots + row->count);
}

/* Does the slot hold far more than so many elements? */
static bool trim_is_wasteful(const tide_row *row, const tide_slot_record *record, size_t elements)
{
    size_t used = 0;
    tide_type_bytes(tide_type_facts_of(row->type), elements, &used);
    return (double)record->bytes >=
               tide_constant_get(TIDE_CONSTANT_compact_factor) * (double)used &&
           (double)(record->bytes - used) >= tide_constant_get(TIDE_CONSTANT_compact_gain) * 1024;
}

void tide_slot_note_peak(tide_slot_record *record)
{
    if (record->peak >= record->recent) {
        record->recent = record->peak;
        record->since = record->less = 0;
    } else if (record->peak > record->since) {
        record->since = record->peak;
    }
    record->peak = 0;
}

/* A pass ends. When so many in a row have seen less, less is what the slot is used for lately. */
static void trim_pass(tide_slot_record *record)
{
    bool less = record->peak < record->recent;
    tide_slot_note_peak(record);
    if (!less || ++record->less < tide_setting_get(TIDE_SETTING_trim_after))
        return;
    record->recent = record->since;
    record->since = record->less = 0;
}

/* What goes: what was not used lately, what holds far more than was asked of it lately; what holds
 * far more than its peak since the last time. */
static bool trim_is_excess(const tide_row *row, const tide_slot_record *record, size_t peak,
                           uint32_t requests)
{
    return ((requests & TIDE_REQUEST_TRIM_UNUSED) != 0 && record->recent == 0) ||
           ((requests & TIDE_REQUEST_TRIM_WASTED) != 0 &&
            trim_is_wasteful(row, record, record->recent)) ||
           ((requests & TIDE_REQUEST_COMPACT) != 0 && trim_is_wasteful(row, record, peak));
}

/* Afterwards every free slot shows a limit of 0, so that its next use comes by cold code once and
 * starts a new peak. */
static void trim_row_excess(tide_pool *pool, tide_row *row, tide_trim_summary *summary,
                            uint32_t requests)
{
    for (tide_slot *slot = row->shelf->next; slot < row->slots + row->count; slot++) {
        tide_slot_record *record = tide_slot_record_of(row, slot);
        size_t peak = record->peak;
        if ((requests & (TIDE_REQUEST_TRIM_UNUSED | TIDE_REQUEST_TRIM_WASTED)) != 0)
            trim_pass(record);
        else
            tide_slot_note_peak(record);
        if (trim_is_excess(row, record, peak, requests))
            trim_give_back(pool, row, slot, summary);
        tide_assert(record->peak == 0);
        tide_slot_admit(slot, 0);
    }
}

/* Until tide_capture_end has taken what a capture used, free memory may be the graph's. */
tide_status tide_trim_admit(const tide_pool *pool, const char *call)
{
    if (pool->core->capture == NULL)
        return TIDE_OK;
    return tide_fail(TIDE_ERROR_STATE, call,
                     "pool '%s' notes what a capture uses: tide_capture_end comes before its "
                     "memory may go",
                     pool->core->name);
}

static bool trim_may(tide_pool *pool, tide_type type, const char *call)
{
    if (tide_pool_use_or_report(pool, call) != TIDE_OK || tide_trim_admit(pool, call) != TIDE_OK)
        return false;
    bool known = type == TIDE_ALL_TYPES || tide_type_facts_of(type) != NULL;
    if (!known)
        tide_type_refuse(type, call);
    return known;
}

tide_trim_summary tide_trim_each_row(tide_pool *pool, tide_type type, uint32_t requests)
{
    tide_trim_summary summary = {0};
    tide_pool_working(pool->core);
    for (uint32_t i = 0; i < pool->core->rows.used_count; i++) {
        tide_row *row = pool->core->rows.used[i];
        if (type != TIDE_ALL_TYPES && type != row->type)
            continue;
        if (requests != 0)
            trim_row_excess(pool, row, &summary, requests);
        else
            trim_row(pool, row, &summary);
    }
    tide_pool_worked(pool->core);
    tide_assert_valid(pool);
    if (summary.slots != 0) {
        TIDE_USDT(pool_trim, pool, (const char *)pool->core->name, summary.slots, summary.bytes,
                  pool->core->memory.bytes_held);
        tide_budget_trimmed(pool->core->device);
    }
    return summary;
}

void tide_pool_trim_slots(tide_pool *pool)
{
    (void)tide_trim_each_row(pool, TIDE_ALL_TYPES, 0);
}

tide_trim_summary tide_pool_trim(tide_pool *pool, tide_type type)
{
    const char *call = "tide_pool_trim";
    if (type == TIDE_ALL_TYPES)
        tide_shells_trim();
    return trim_may(pool, type, call) ? tide_trim_each_row(pool, type, 0) : (tide_trim_summary){0};
}

tide_trim_summary tide_pool_compact(tide_pool *pool, tide_type type)
{
    const char *call = "tide_pool_compact";
    return trim_may(pool, type, call) ? tide_trim_each_row(pool, type, TIDE_REQUEST_COMPACT)
                                      : (tide_trim_summary){0};
}

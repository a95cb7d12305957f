/* SPDX-License-Identifier: MIT */
/* Free memory given back, by the owner or because others ask: all of it (trim), what far exceeds its
 * use since the last time (compact), or, when the library does it by itself in passes, what was not
 * used lately and what far exceeds its use lately. Steps of a loop may take turns, so what a slot was
 * asked for lately is the most of several passes.
 * Both touch slots from `next` on only, so no live array moves or shrinks, at any depth. */
#include <tidepool/upkeep.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/probe.h"
#include "runtime/base/registry.h"
#include "runtime/base/settings.h"
#include "runtime/device/budget.h"
#include "runtime/pool/export.h"
#include "runtime/pool/header.h"
#include "runtime/pool/level.h"
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

/* One pass over the free slots for these of TIDE_REQUEST_TRIM_UNUSED, _WASTED and _COMPACT; 0: all that is
 * free goes. What was used in the last passes, of which the setting `trim_after` says how many, is the
 * pool's working set, and stays. Owner only. */
static tide_trim_summary trim_each_row(tide_pool *pool, tide_type type, uint32_t requests)
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
    (void)trim_each_row(pool, TIDE_ALL_TYPES, 0);
}

tide_trim_summary tide_pool_trim(tide_pool *pool, tide_type type)
{
    const char *call = "tide_pool_trim";
    if (type == TIDE_ALL_TYPES)
        tide_shells_trim();
    return trim_may(pool, type, call) ? trim_each_row(pool, type, 0) : (tide_trim_summary){0};
}

tide_trim_summary tide_pool_compact(tide_pool *pool, tide_type type)
{
    const char *call = "tide_pool_compact";
    return trim_may(pool, type, call) ? trim_each_row(pool, type, TIDE_REQUEST_COMPACT)
                                      : (tide_trim_summary){0};
}

/* ---- asked for by others ------------------------------------------------------------------- */

enum { TRIM_LATELY = TIDE_REQUEST_TRIM_UNUSED | TIDE_REQUEST_TRIM_WASTED };

_Static_assert((TRIM_LATELY & (TIDE_REQUEST_TRIM | TIDE_REQUEST_COMPACT)) == 0,
               "what the library asks for has bits of its own");

/* Asks for these, any thread; 0: takes back those of `own` that were asked for. */
static void trim_ask(tide_pool *pool, uint32_t requests, uint32_t own)
{
    tide_assert((requests & ~own) == 0);
    if (requests == 0) {
        __atomic_fetch_and(&pool->core->requests.asked, ~own, __ATOMIC_SEQ_CST);
        return;
    }
    __atomic_fetch_or(&pool->core->requests.asked, requests, __ATOMIC_SEQ_CST);
    tide_log_set_room(pool, pool->core->log.start);
}

tide_status tide_pool_request(tide_pool *pool, uint32_t requests)
{
    const char *call = "tide_pool_request";
    TIDE_FORWARD(tide_pool_of_ours(pool, call));
    if ((requests & ~(uint32_t)(TIDE_REQUEST_TRIM | TIDE_REQUEST_COMPACT)) != 0)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "unknown request bits %#x", requests);
    trim_ask(pool, requests, UINT32_MAX);
    return TIDE_OK;
}

void tide_request_lately(tide_pool *pool, uint32_t requests)
{
    tide_pool_requests *own = &pool->core->requests;
    tide_assert(tide_registry_held());
    uint32_t waiting = requests & __atomic_load_n(&own->asked, __ATOMIC_RELAXED);
    own->unserved = (waiting & TIDE_REQUEST_TRIM_UNUSED) != 0 ? own->unserved + 1 : 0;
    bool due = own->unserved >= tide_setting_get(TIDE_SETTING_trim_after);
    if (due && tide_pool_is_own_and_idle(pool)) {
        /* its owner steps, and opens no scope in it */
        tide_assert(pool->core->capture == NULL); /* it is of the host */
        (void)trim_each_row(pool, TIDE_ALL_TYPES, TIDE_REQUEST_TRIM_UNUSED);
    } else if (due) {
        own->unserved = 0;
        tide_pool_press_idle(pool);
    }
    trim_ask(pool, requests, TRIM_LATELY);
}

/* A trim does all that a compact does, and more. */
static void request_serve_bits(tide_pool *pool, uint32_t requests)
{
    tide_assert(requests != 0 && tide_at_root(pool));
    const tide_pool_core *core = pool->core;
    if (core->capture != NULL)
        return; /* not now, and nobody waits for it */
    if ((requests & TIDE_REQUEST_TRIM) != 0)
        tide_pool_trim(pool, TIDE_ALL_TYPES);
    else
        (void)trim_each_row(pool, TIDE_ALL_TYPES, requests);
    pool->core->requests.served++;
}

/* Takes the bits, does the work, then opens the log. Does all of it again if a bit was set
 * meanwhile; but what was not used since a moment ago is not given back, since that is all. */
static void request_serve_at_root(tide_pool *pool)
{
    tide_pool_core *core = pool->core;
    uint32_t served = 0;
    do {
        uint32_t requests = __atomic_exchange_n(&core->requests.asked, 0, __ATOMIC_SEQ_CST);
        if (served != 0)
            requests &= ~(uint32_t)TRIM_LATELY;
        if (requests != 0)
            request_serve_bits(pool, requests);
        served |= requests;
        tide_log_set_room(pool, tide_log_usual_room(core));
    } while (__atomic_load_n(&core->requests.asked, __ATOMIC_SEQ_CST) != 0);
}

/* Where the log is closed for other reasons, or full, nothing is gained, and the log stays
 * closed. */
static void request_defer(tide_pool *pool)
{
    tide_pool_core *core = pool->core;
    tide_assert(!tide_at_root(pool));
    if (!core->requests.deferred) {
        if (tide_log_usual_room(core) == core->log.start || pool->log_top == core->log.end)
            return;
        tide_log_push(pool, &core->log.undo[TIDE_UNDO_REQUEST], NULL, 0);
        core->requests.deferred = true;
    }
    tide_log_reopen(pool);
}

void tide_request_undo(tide_pool *pool, const tide_entry *entry)
{
    tide_assert(pool->core->requests.deferred && entry == pool->log_top);
    (void)entry;
    pool->core->requests.deferred = false;
    tide_log_set_room(pool, pool->core->log.start);
}

/* The log may be closed although nothing is asked: a request was taken back, or was served before
 * who asked had closed the log. */
void tide_request_serve(tide_pool *pool)
{
    tide_pool_core *core = pool->core;
    uint32_t requests = __atomic_load_n(&core->requests.asked, __ATOMIC_SEQ_CST);
    if (!tide_at_root(pool)) {
        if (requests != 0)
            request_defer(pool);
        else if (tide_log_open(pool) != tide_log_usual_room(core))
            tide_log_reopen(pool);
    } else if (requests != 0 || tide_log_open(pool) != tide_log_usual_room(core)) {
        request_serve_at_root(pool);
    }
}

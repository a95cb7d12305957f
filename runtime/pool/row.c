/* SPDX-License-Identifier: MIT */
/* Rows of slots: how a row is set up, and which slot serves a request: the next one, grown, or
 * exchanged for a larger free one. */
#include "runtime/pool/row.h"

#include <string.h>

#include <tidepool/inline/array.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/registry.h"
#include "runtime/base/settings.h"
#include "runtime/base/shim.h"
#include "runtime/check/guard.h"
#include "runtime/pool/export.h"
#include "runtime/pool/header.h"
#include "runtime/pool/level.h"
#include "runtime/pool/memory.h"
#include "runtime/pool/press.h"
#include "runtime/pool/shut.h"

_Static_assert(TIDE_ROW_SLOTS <= UINT32_MAX && TIDE_TYPE_LIMIT <= UINT32_MAX,
               "an exchange is one word of the log: type and distance");

/* ---- rows ------------------------------------------------------------------------------- */

/* Slots of one row more: those that a shell has left, or new ones. */
static tide_slot *row_reserve_slots(tide_pool_core *core)
{
    uint32_t number = core->rows.used_count;
    tide_assert(number < TIDE_TYPE_LIMIT);
    if (number < TIDE_ROWS_SPARE && core->rows.spare[number] != NULL) {
        tide_slot *slots = core->rows.spare[number];
        core->rows.spare[number] = NULL;
        return slots;
    }
    char *made = tide_os_reserve(TIDE_ROW_BYTES);
    if (made == NULL)
        return NULL;
    size_t offset = TIDE_ROW_IN_PAGE + (size_t)(number % TIDE_ROW_PLACES) * TIDE_ROW_APART;
    return (tide_slot *)(void *)(made + offset);
}

void tide_row_unreserve_slots(tide_slot *slots)
{
    uintptr_t in_page = (uintptr_t)slots % 4096;
    tide_assert(in_page >= TIDE_ROW_IN_PAGE);
    tide_os_unreserve((char *)slots - in_page, TIDE_ROW_BYTES);
}

/* The type's bit in tide_pool.saved. Built-in types have theirs by number; the others get what is
 * left, in the order of their first use in this pool; 0 if nothing is. */
static uint64_t row_give_bit(tide_pool_core *core, tide_type type)
{
    uint64_t bit = 0;
    if (type <= TIDE_BUILTIN_COUNT)
        bit = UINT64_C(1) << type;
    else if (TIDE_BUILTIN_COUNT + 1 + core->rows.bits_given < TIDE_SAVED_TYPES)
        bit = UINT64_C(1) << (TIDE_BUILTIN_COUNT + 1 + core->rows.bits_given++);
    tide_assert((core->rows.bits & bit) == 0);
    core->rows.bits |= bit;
    return bit;
}

tide_row *tide_row_ready(tide_pool *pool, tide_type type, const char *call)
{
    tide_pool_core *core = pool->core;
    tide_row *row = &core->rows.by_type[type];
    tide_assert(type != TIDE_NO_TYPE && tide_type_facts_of(type) != NULL);
    if (TIDE_LIKELY(row->shelf != NULL))
        return row;
    tide_slot *slots = row_reserve_slots(core);
    if (slots == NULL) {
        tide_fail(TIDE_ERROR_MEMORY, call, "no address space for slots of %s in pool '%s'",
                  tide_type_facts_of(type)->name, core->name);
        return NULL;
    }
    tide_assert(row->count == 0 && (uintptr_t)slots % 64 == 0);
    row->type = type;
    row->slots = slots;
    row->device = tide_header_is(type) && !core->device->host ? &tide_device_host : core->device;
    row->shelf = &pool->shelves[type];
    *row->shelf = (tide_shelf){.next = slots, .bit = row_give_bit(core, type)};
    if (tide_at_root(pool))
        pool->saved |= row->shelf->bit;
    core->rows.used[core->rows.used_count] = row;
    __atomic_store_n(&core->rows.used_count, core->rows.used_count + 1, __ATOMIC_RELEASE);
    return row;
}

/* ---- finding a slot that fits ----------------------------------------------------------- */

/* Room in `records` for one slot more. Who walks the pool from another thread has
 * the registry. */
static bool row_reserve_record(tide_row *row)
{
    if (row->count < row->records_room)
        return true;
    uint32_t room = row->records_room == 0 ? 8 : row->records_room * 2;
    tide_slot_record *records = tide_os_resize(NULL, room * sizeof *records), *old = row->records;
    if (records == NULL)
        return false;
    if (row->count != 0)
        memcpy(records, old, row->count * sizeof *records);
    tide_registry_lock();
    row->records = records;
    row->records_room = room;
    tide_registry_unlock();
    tide_os_free(old);
    return true;
}

/* The smallest free slot after `slot` that holds n elements, or NULL. */
static tide_slot *row_find_larger(const tide_row *row, const tide_slot *slot, size_t n)
{
    tide_slot *best = NULL;
    size_t best_capacity = SIZE_MAX;
    for (tide_slot *other = &row->slots[slot - row->slots + 1]; other < row->slots + row->count;
         other++) {
        size_t capacity = tide_slot_record_of(row, other)->capacity;
        if (other->data != NULL && capacity >= n && capacity < best_capacity) {
            best = other;
            best_capacity = capacity;
        }
    }
    return best;
}

/* The inlined path hands the slot's last header out as it is. */
static void row_point_header(const tide_slot *slot)
{
    if (slot->array != NULL)
        slot->array->tensor.data = slot->data;
}

/* The last free slot after `slot` that holds n elements in far less memory than so many bytes. */
static tide_slot *row_find_smaller(const tide_row *row, const tide_slot *slot, size_t n,
                                   size_t bytes)
{
    for (tide_slot *other = row->slots + row->count; --other > slot;) {
        const tide_slot_record *record = tide_slot_record_of(row, other);
        if (other->data != NULL && record->capacity >= n && record->bytes <= bytes / 2)
            return other;
    }
    return NULL;
}

/* Exchanges memory and records. Headers stay: each points to the memory that its slot has now. */
static void row_swap_slots(tide_row *row, tide_slot *left, tide_slot *right)
{
    tide_assert(left < right && right < row->slots + row->count);
    void *data = left->data;
    size_t limit = left->limit;
    left->data = right->data;
    tide_slot_admit(left, right->limit);
    right->data = data;
    tide_slot_admit(right, limit);
    row_point_header(left);
    row_point_header(right);
    tide_slot_record *a = tide_slot_record_of(row, left), *b = tide_slot_record_of(row, right);
    tide_slot_record record = *a;
    *a = *b;
    *b = record;
}

/* Is it worth an exchange to have, or to save, so many bytes? */
static bool row_exchanges(const tide_pool_core *core, const tide_slot_request *request,
                          size_t bytes)
{
    return (double)bytes >= tide_constant_get(TIDE_CONSTANT_exchange) * 1024 && !core->disabled &&
           !request->guarded;
}

/* Has the slot lately been asked for half as much, or more, and has the other not far more? */
static bool row_is_near(const tide_row *row, const tide_slot *slot, const tide_slot *other,
                        const tide_slot_request *request)
{
    const tide_slot_record *record = tide_slot_record_of(row, slot);
    size_t lately = 0;
    tide_type_bytes(request->facts, record->peak > record->recent ? record->peak : record->recent,
                    &lately);
    return lately >= request->bytes / 2 &&
           tide_slot_record_of(row, other)->bytes / 2 < request->bytes;
}

/* Exchanges the slot for a free one further along. That is undone with the level it happened in,
 * like all else that the level did. (Else sizes that alternate between two positions would leave the
 * large slot where the small size is asked for next, and would end with two large ones at once.) At
 * the root it is for good, and where the two are nearly as large: then it would come again in each
 * round, to save little. False, no message: there is no such slot, or no room in the log. */
static bool row_exchange(tide_pool *pool, tide_row *row, tide_slot *slot, tide_slot *other,
                         bool for_good)
{
    tide_pool_core *core = pool->core;
    if (other == NULL)
        return false;
    if (!for_good && !tide_at_root(pool)) {
        if (pool->log_top == core->log.end)
            return false;
        uint64_t distance = (uint64_t)(other - slot);
        tide_assert(distance > 0 && distance < TIDE_ROW_SLOTS);
        tide_log_push(pool, &core->log.undo[TIDE_UNDO_EXCHANGE], slot,
                      (uint64_t)row->type << 32 | distance);
    }
    row_swap_slots(row, slot, other);
    tide_figure_add(&core->memory.exchanges, 1);
    return true;
}

void tide_row_exchange_undo(tide_pool *pool, const tide_entry *entry)
{
    tide_row *row = &pool->core->rows.by_type[entry->more >> 32];
    tide_slot *slot = entry->next, *larger = slot + (uint32_t)entry->more;
    tide_assert(row->shelf != NULL && slot >= row->slots && slot < larger);
    if (larger < row->slots + row->count) /* else a trim has taken it */
        row_swap_slots(row, slot, larger);
}

/* ---- a large size that moves from slot to slot ------------------------------------------- */

/* Where one large array is acquired at another position each time, each position would come to hold
 * memory for it. So when a slot gets as much memory as one of those before it has, both are watched:
 * fast paths see a limit of 0 there, and cold code sees what is asked of them.
 *  - What is asked for is far less: the slot is exchanged for a small one further along, where the
 *    large size may be asked for next.
 *  - There is none further along, so nobody has needed the memory this time. After SURPLUS_TIMES of
 *    these in a row the slot gets memory of the size asked for, if watched slots hold half as much
 *    again as was ever live in them at once. Else, or where it has got less SHRUNK_TIMES before and
 *    then more again, the size does not move: calls that nest use one slot for large and for small
 *    arrays in each round, and need its memory again. The slot is watched no more.
 *  - It is as large as the memory: after WATCHED_TIMES of these in a row it is watched no more. */
enum { WATCHED_TIMES = 8, SURPLUS_TIMES = 4, SHRUNK_TIMES = 3, WATCH_REACH = 64, SMALL_BYTES = 64 };

static void row_watch(tide_row *row, tide_slot *slot)
{
    tide_slot_record *record = tide_slot_record_of(row, slot);
    if (record->watched == 0)
        record->asked = 0; /* nobody has seen it */
    record->watched = WATCHED_TIMES;
    tide_slot_admit(slot, 0);
}

/* The slot is about to be live with so many bytes, and those before it are live. */
static void row_note_live(tide_row *row, tide_slot *slot, size_t bytes)
{
    size_t live = 0;
    tide_slot_record_of(row, slot)->asked = bytes;
    for (tide_slot *other = slot + 1; other-- > row->slots && slot - other <= WATCH_REACH;) {
        const tide_slot_record *record = tide_slot_record_of(row, other);
        live += record->watched != 0 ? record->asked : 0;
    }
    if (live > row->watched_live)
        row->watched_live = live;
}

static bool row_holds_too_much(const tide_row *row)
{
    size_t held = 0;
    for (uint32_t i = 0; i < row->count; i++)
        held += row->records[i].watched != 0 ? row->records[i].bytes : 0;
    return held / 3 > row->watched_live / 2;
}

/* The slot has just got memory. */
static void row_watch_sizes(const tide_pool *pool, tide_row *row, tide_slot *slot,
                            const tide_slot_request *request)
{
    if (!row_exchanges(pool->core, request, request->bytes))
        return;
    for (tide_slot *other = slot; other-- > row->slots && slot - other <= WATCH_REACH;)
        if (other->data != NULL && tide_slot_record_of(row, other)->capacity >= request->n) {
            row_watch(row, other);
            row_watch(row, slot);
            row_note_live(row, slot, request->bytes);
            return;
        }
}

/* Nobody has needed so much memory lately. */
static void row_shrink(tide_pool *pool, tide_row *row, tide_slot *slot,
                       const tide_slot_request *request)
{
    tide_slot_request exact = *request;
    tide_failure before;
    exact.shrink = true;
    tide_failure_keep(&before);
    tide_status status = tide_slot_allocate(pool, row, slot, &exact);
    tide_failure_restore(&before); /* without memory for less, the memory that there is will do */
    if (status == TIDE_OK)
        tide_slot_record_of(row, slot)->shrunk++;
    else
        tide_slot_record_of(row, slot)->surplus = 0;
}

/* A watched slot that is large enough. */
static void row_serve_watched(tide_pool *pool, tide_row *row, tide_slot *slot,
                              const tide_slot_request *request)
{
    tide_slot_record *record = tide_slot_record_of(row, slot);
    tide_assert(record->watched > 0 && request->n <= record->capacity);
    row_note_live(row, slot, request->bytes);
    if (request->bytes > record->bytes / 2 || record->bytes <= SMALL_BYTES ||
        !row_exchanges(pool->core, request, record->bytes - request->bytes)) {
        record->watched--;
        record->surplus = 0;
        return;
    }
    record->watched = WATCHED_TIMES;
    if (row_exchange(pool, row, slot, row_find_smaller(row, slot, request->n, record->bytes),
                     false))
        tide_slot_record_of(row, slot)->asked = request->bytes;
    else if (++record->surplus >= SURPLUS_TIMES && record->shrunk < SHRUNK_TIMES &&
             row_holds_too_much(row))
        row_shrink(pool, row, slot, request);
    else if (record->surplus >= SURPLUS_TIMES)
        record->watched = 0;
}

/* ---- fitting ----------------------------------------------------------------------------- */

/* A new slot in the sentinel's place; what follows it is the new sentinel. */
static tide_slot *row_append(tide_pool *pool, tide_row *row, const tide_slot_request *request)
{
    const char *type = request->facts->name;
    if (row->count == TIDE_ROW_MAX) {
        tide_fail(TIDE_ERROR_LIMIT, request->call,
                  "%u arrays of %s are live in pool '%s', limit %d: is a scope missing?",
                  row->count, type, pool->core->name, TIDE_ROW_MAX);
        return NULL;
    }
    if (!row_reserve_record(row)) {
        tide_fail(TIDE_ERROR_MEMORY, request->call,
                  "no memory to remember slot %u of %s in pool '%s'", row->count, type,
                  pool->core->name);
        return NULL;
    }
    tide_slot *slot = &row->slots[row->count];
    tide_assert(slot->data == NULL && slot->limit == 0 && slot->array == NULL);
    tide_assert(slot == row->shelf->next); /* else a free slot would have served */
    row->records[row->count] = (tide_slot_record){0};
    if (tide_slot_allocate(pool, row, slot, request) != TIDE_OK)
        return NULL;
    __atomic_store_n(&row->count, row->count + 1, __ATOMIC_RELEASE);
    tide_assert(row->count <= TIDE_ROW_MAX && row->slots[row->count].limit == 0);
    row_watch_sizes(pool, row, slot, request);
    return slot;
}

static tide_slot *row_grow_free(tide_pool *pool, tide_row *row, tide_slot *slot,
                                const tide_slot_request *request)
{
    if (tide_slot_allocate(pool, row, slot, request) != TIDE_OK)
        return NULL;
    row_watch_sizes(pool, row, slot, request);
    return slot;
}

/* The slot at `next`, or the one that takes its place, with memory for the request. */
static tide_slot *row_find_or_grow(tide_pool *pool, tide_row *row, const tide_slot_request *request)
{
    tide_slot *slot = row->shelf->next;
    if (slot == row->slots + row->count)
        return row_append(pool, row, request);
    const tide_slot_record *record = tide_slot_record_of(row, slot);
    if (record->exported != NULL)
        tide_export_settle(pool, row, slot);
    if (!request->guarded && tide_slot_fits(slot, record, request)) {
        if (TIDE_UNLIKELY(record->watched != 0))
            row_serve_watched(pool, row, slot, request);
        return slot;
    }
    tide_slot *larger = row_exchanges(pool->core, request, request->bytes)
                            ? row_find_larger(row, slot, request->n)
                            : NULL;
    if (larger != NULL &&
        row_exchange(pool, row, slot, larger, row_is_near(row, slot, larger, request))) {
        tide_slot_record_of(row, slot)->surplus = 0;
        row_note_live(row, slot, request->bytes);
        return slot;
    }
    return row_grow_free(pool, row, slot, request);
}

tide_slot *tide_row_fit(tide_pool *pool, tide_row *row, size_t n, tide_place place,
                        const char *call)
{
    const tide_type_facts *facts = tide_type_facts_of(row->type);
    tide_assert(facts != NULL && row->shelf != NULL && call != NULL);
    tide_slot_request request = {.facts = facts, .n = n, .place = place, .call = call};
    if (!tide_type_bytes(facts, n, &request.bytes)) {
        tide_fail(TIDE_ERROR_SIZE, call, "%zu elements of %s (%zu bits each) overflow size_t", n,
                  facts->name, facts->size != 0 ? facts->size * 8 : 1);
        return NULL;
    }
    request.guarded = tide_guard_due(&pool->core->guards);
    tide_pool_working(pool->core);
    tide_slot *slot = row_find_or_grow(pool, row, &request);
    tide_assert(slot == NULL || (slot == row->shelf->next && slot->data != NULL));
    if (slot == NULL)
        tide_pool_worked(pool->core);
    return slot;
}

void *tide_row_take(tide_pool *pool, tide_row *row, tide_slot *slot, size_t n, tide_place place)
{
    tide_assert(slot == row->shelf->next && slot->data != NULL);
    tide_slot_record *record = tide_slot_record_of(row, slot);
    tide_assert(n <= record->capacity && record->exported == NULL);
    if (n > record->peak)
        record->peak = n;
    row->shelf->next = slot + 1;
    tide_pool_worked(pool->core);
    if (!pool->core->careful) {
        tide_assert(record->peak <= record->capacity && record->guard == NULL);
        tide_slot_admit(slot, record->watched != 0 ? 0 : record->peak + 1);
        row_point_header(slot);
        return slot->data;
    }
    record->live = true;
    record->length = n;
    record->tag = pool->tag;
    record->place = place;
    size_t used = 0;
    tide_type_bytes(tide_type_facts_of(row->type), n, &used);
    if (row->device->host && record->guard == NULL)
        tide_shim_live(slot->data, used, record->bytes);
    return slot->data;
}

/* ---- growing what is live --------------------------------------------------------------- */

/* The array moves. In a checked pool its old memory is retired as at a rewind, by this call. */
static tide_status row_move_live(tide_pool *pool, tide_row *row, tide_slot *slot,
                                 const tide_slot_request *request)
{
    tide_pool_core *core = pool->core;
    tide_slot_record *record = tide_slot_record_of(row, slot);
    const tide_slot_record was = *record;
    tide_pool_working(core);
    const tide_place closing = core->levels.closing;
    core->levels.closing = request->place;
    record->live = false;
    tide_status status = tide_slot_allocate(pool, row, slot, request);
    core->levels.closing = closing;
    tide_pool_worked(core);
    record->live = was.live;
    record->length = was.length;
    record->peak = was.peak;
    record->tag = was.tag;
    record->place = was.place;
    return status;
}

tide_status tide_row_grow(tide_pool *pool, tide_row *row, tide_slot *slot, size_t n,
                          tide_place place, const char *call)
{
    tide_pool_core *core = pool->core;
    tide_slot_record *record = tide_slot_record_of(row, slot);
    const tide_type_facts *facts = tide_type_facts_of(row->type);
    tide_assert(slot < row->shelf->next && slot->data != NULL && record->exported == NULL);
    tide_slot_request request = {
        .facts = facts, .n = n, .place = place, .call = call, .guarded = record->guard != NULL};
    size_t had = tide_slot_length(core, record);
    if (n <= had)
        return TIDE_OK;
    if (!tide_type_bytes(facts, n, &request.bytes))
        return tide_fail(TIDE_ERROR_SIZE, call, "%zu elements of %s overflow size_t", n,
                         facts->name);
    tide_type_bytes(facts, had, &request.keep);
    if (request.guarded || !tide_slot_fits(slot, record, &request))
        TIDE_FORWARD(row_move_live(pool, row, slot, &request));
    tide_assert(n <= record->capacity);
    if (n > record->peak)
        record->peak = n;
    if (core->careful)
        record->length = n;
    else
        tide_slot_admit(slot, record->watched != 0 ? 0 : n + 1);
    row_point_header(slot);
    if (core->careful && row->device->host && record->guard == NULL)
        tide_shim_longer(slot->data, request.keep, request.bytes, record->bytes);
    return TIDE_OK;
}

/* SPDX-License-Identifier: MIT */
/* Rows of slots: how a row is set up, how a slot gets memory and gives it back, and which slot
 * serves a request: the next one, grown, or exchanged for a larger free one. */
#include "runtime/pool/row.h"

#include <tidepool/inline/array.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/settings.h"
#include "runtime/base/shim.h"
#include "runtime/buffers/buffers.h"
#include "runtime/check/guard.h"
#include "runtime/pool/export.h"
#include "runtime/pool/header.h"
#include "runtime/pool/log.h"
#include "runtime/pool/streams.h"

enum { MIN_ALIGN = 64 };

_Static_assert(TIDE_ROW_SLOTS <= UINT32_MAX && TIDE_TYPE_LIMIT <= UINT32_MAX,
               "an exchange is one word of the log: type and distance");

/* ---- rows ------------------------------------------------------------------------------- */

/* Slots of one row more. The last extent may have none left: then another is reserved. */
static tide_slot *row_reserve_slots(tide_pool_core *core)
{
    tide_assert(core->rows.taken < TIDE_TYPE_LIMIT);
    uint32_t extent = core->rows.taken / TIDE_EXTENT_ROWS;
    tide_assert(extent < TIDE_EXTENT_MAX && extent <= core->rows.extent_count);
    if (extent == core->rows.extent_count) {
        char *made = tide_os_reserve(TIDE_EXTENT_BYTES);
        if (made == NULL)
            return NULL;
        core->rows.extents[core->rows.extent_count++] = made;
    }
    size_t offset = (size_t)(core->rows.taken % TIDE_EXTENT_ROWS) * TIDE_ROW_BYTES;
    core->rows.taken++;
    return (tide_slot *)(void *)(core->rows.extents[extent] + offset);
}

tide_row *tide_row_ready(tide_pool *pool, tide_type type, const char *call)
{
    tide_pool_core *core = pool->core;
    tide_row *row = &core->rows.by_type[type];
    tide_assert(type != TIDE_NO_TYPE && tide_type_find(type) != NULL);
    if (TIDE_LIKELY(row->shelf != NULL))
        return row;
    tide_slot *slots = row_reserve_slots(core);
    if (slots == NULL) {
        tide_fail(TIDE_ERROR_MEMORY, call, "no address space for slots of %s in pool '%s'",
                  tide_type_find(type)->name, core->name);
        return NULL;
    }
    tide_assert(row->count == 0 && (uintptr_t)slots % 64 == 0);
    row->type = type;
    row->slots = slots;
    row->device = tide_header_is(type) ? &tide_device_host : core->device;
    row->shelf = &pool->shelves[type];
    *row->shelf = (tide_shelf){.next = slots, .saved_at = TIDE_TAG_ROOT};
    tide_assert(core->rows.used_count < core->rows.taken); /* a row's slots were taken for it */
    core->rows.used[core->rows.used_count++] = row;
    return row;
}

/* ---- memory of one slot ----------------------------------------------------------------- */

static size_t row_slot_align(const tide_type_facts *facts)
{
    return facts->align > MIN_ALIGN ? facts->align : MIN_ALIGN;
}

static size_t row_round_up(size_t bytes, size_t to)
{
    tide_assert(to > 0 && bytes <= SIZE_MAX - to);
    return (bytes + to - 1) / to * to;
}

static void row_give_memory_back(const tide_pool *pool, const tide_row *row, const tide_slot *slot,
                                 const tide_slot_record *record)
{
    tide_assert(slot->data != NULL && record->bytes > 0);
    void *stream = tide_streams_last(pool);
    if (record->buffer.generation == 0) {
        row->device->methods->release(row->device, stream, TIDE_MEMORY_DEVICE, slot->data,
                                      record->bytes);
        return;
    }
    tide_status status = tide_buffer_release_on(pool->core->buffers, record->buffer, stream);
    tide_assert(status == TIDE_OK);
    (void)status;
}

void tide_slot_hollow(tide_pool *pool, tide_row *row, tide_slot *slot)
{
    tide_slot_record *record = tide_slot_record_of(row, slot);
    tide_pool_core *core = pool->core;
    if (record->exported != NULL) {
        tide_assert(slot->data == NULL && core->memory.bytes_exported >= record->exported->bytes);
        core->memory.bytes_exported -= record->exported->bytes;
        tide_export_drop_slot(record->exported, tide_streams_last(pool));
    } else if (record->guard != NULL) {
        tide_assert(core->memory.bytes_held >= record->bytes && !record->live);
        tide_guard_retire(record->guard, core->levels.closing);
        core->memory.bytes_held -= record->bytes;
        core->memory.releases++;
    } else if (slot->data != NULL) {
        if (core->careful && row->device->host)
            tide_shim_release(slot->data, record->bytes);
        row_give_memory_back(pool, row, slot, record);
        tide_assert(core->memory.bytes_held >= record->bytes);
        core->memory.bytes_held -= record->bytes;
        core->memory.releases++;
    }
    slot->data = NULL; /* its array headers stay: the next memory may be used the same way */
    slot->limit = 0;
    *record = (tide_slot_record){0};
}

/* One request for a slot. */
typedef struct row_request {
    size_t n, bytes; /* elements, and what they take */
    tide_place place;
    const char *call;
    bool guarded; /* its turn to end at an inaccessible page */
} row_request;

/* Grows geometrically, so that sizes that creep upward do not allocate each time; exactly to
 * the request for a new slot, or where the pool's limit leaves no room for more. */
static size_t row_grown_bytes(const tide_pool_core *core, const tide_slot_record *record,
                              size_t wanted, size_t room)
{
    size_t generous = record->bytes + record->bytes / 4;
    return !core->disabled && generous > wanted && generous <= room ? generous : wanted;
}

/* What the pool's limit leaves for a slot whose present memory goes back. */
static size_t row_room_beside(const tide_pool_core *core, const tide_slot_record *record)
{
    tide_assert(core->memory.bytes_held - record->bytes <= core->memory.limit_bytes);
    return core->memory.limit_bytes - (core->memory.bytes_held - record->bytes);
}

/* Does the row draw from buffers? They are aligned to MIN_ALIGN, and hold no headers. */
static bool row_draws_buffers(const tide_pool_core *core, const tide_row *row, size_t align)
{
    return core->buffers != NULL && row->device == core->device && align <= MIN_ALIGN;
}

/* The whole size of a buffer for so many bytes, where the limit has room for that. */
static size_t row_whole_buffer(const tide_pool_core *core, size_t bytes, size_t room)
{
    size_t whole = tide_buffers_round_up(core->buffers, bytes);
    return whole > bytes && whole <= room ? whole : bytes;
}

/* How many bytes to allocate for the request; refuses what cannot be. */
static tide_status row_size_memory(const tide_pool *pool, const tide_row *row,
                                   const tide_slot_record *record, const row_request *request,
                                   size_t align, size_t *bytes)
{
    const tide_pool_core *core = pool->core;
    const char *type = tide_type_find(row->type)->name;
    size_t room = row_room_beside(core, record);
    if (request->bytes > SIZE_MAX / 2)
        return tide_fail(TIDE_ERROR_SIZE, request->call, "%zu bytes of %s exceed the address space",
                         request->bytes, type);
    size_t wanted = request->bytes == 0 ? align : row_round_up(request->bytes, align);
    if (wanted > room)
        return tide_fail(TIDE_ERROR_LIMIT, request->call,
                         "%zu bytes of %s would take pool '%s' from %zu past its limit of %zu "
                         "bytes",
                         wanted, type, core->name, core->memory.bytes_held,
                         core->memory.limit_bytes);
    *bytes = row_round_up(row_grown_bytes(core, record, wanted, room / align * align), align);
    if (row_draws_buffers(core, row, align) && !core->disabled)
        *bytes = row_whole_buffer(core, *bytes, room);
    tide_assert(*bytes >= request->bytes && *bytes > 0 && *bytes <= room);
    return TIDE_OK;
}

/* A buffer of at least so many bytes, held until it is released. */
static tide_status row_draw_buffer(const tide_pool_core *core, size_t bytes, const char *call,
                                   tide_buffer *buffer, void **data)
{
    tide_buffers *buffers = core->buffers;
    *buffer = tide_buffer_acquire_on(buffers, bytes, TIDE_BUFFER_DEVICE | (buffers->flags & ~0xFFu),
                                     core->streams.own);
    if (buffer->generation == 0)
        return tide_fail(tide_error_status(), call, "%s", tide_error_message());
    *data = tide_buffer_pointer(buffers, *buffer);
    tide_assert(*data != NULL);
    return TIDE_OK;
}

/* Memory of the row's device. A pool whose stream is gone, or being recorded, gets none. */
static tide_status row_allocate_on(const tide_pool *pool, const tide_row *row, size_t bytes,
                                   size_t align, const char *call, tide_buffer *buffer, void **data)
{
    const tide_pool_core *core = pool->core;
    tide_device *device = row->device;
    if (!device->host) {
        TIDE_FORWARD(tide_streams_own(pool, call));
        TIDE_FORWARD(tide_streams_quiet(pool, call));
    }
    if (row_draws_buffers(core, row, align))
        return row_draw_buffer(core, bytes, call, buffer, data);
    tide_status status = device->methods->allocate(device, core->streams.own, TIDE_MEMORY_DEVICE,
                                                   bytes, align, data);
    if (status == TIDE_ERROR_MEMORY)
        return tide_fail(status, call, "device %s has no %zu bytes for %s in pool '%s'",
                         device->name, bytes, tide_type_find(row->type)->name, core->name);
    return status == TIDE_OK ? status : tide_fail(status, call, "%s", tide_error_message());
}

/* New memory for a slot; the old is released only once the new is there. */
static tide_status row_allocate(tide_pool *pool, tide_row *row, tide_slot *slot,
                                const row_request *request)
{
    tide_pool_core *core = pool->core;
    const tide_type_facts *facts = tide_type_find(row->type);
    tide_slot_record *record = tide_slot_record_of(row, slot);
    size_t align = row_slot_align(facts), bytes = 0;
    TIDE_FORWARD(row_size_memory(pool, row, record, request, align, &bytes));
    tide_guard *guard = NULL;
    void *data = NULL;
    tide_buffer buffer = {0};
    if (request->guarded && tide_guard_size(request->bytes, align) <= row_room_beside(core, record))
        guard = tide_guard_create(core->name, row->type, request->n, request->bytes, align,
                                  request->place, &data);
    if (guard != NULL)
        bytes = tide_guard_bytes(guard);
    else
        TIDE_FORWARD(row_allocate_on(pool, row, bytes, align, request->call, &buffer, &data));
    tide_assert((uintptr_t)data % align == 0 && data != NULL && bytes >= request->bytes);
    tide_slot_hollow(pool, row, slot);
    slot->data = data;
    record->guard = guard;
    record->buffer = buffer;
    record->bytes = bytes;
    record->capacity = guard != NULL ? request->n : tide_type_fit(facts, bytes);
    tide_assert(record->capacity >= request->n);
    core->memory.bytes_held += bytes;
    if (core->memory.bytes_held > core->memory.bytes_peak)
        core->memory.bytes_peak = core->memory.bytes_held;
    core->memory.allocations++;
    if (!row->device->host)
        tide_streams_follow(pool);
    return TIDE_OK;
}

/* ---- finding a slot that fits ----------------------------------------------------------- */

/* Room in `records` for one slot more. */
static bool row_reserve_record(tide_row *row)
{
    if (row->count < row->records_room)
        return true;
    uint32_t room = row->records_room == 0 ? 8 : row->records_room * 2;
    tide_slot_record *records = tide_os_resize(row->records, room * sizeof *records);
    if (records == NULL)
        return false;
    row->records = records;
    row->records_room = room;
    return true;
}

/* A new slot in the sentinel's place; what follows it is the new sentinel. */
static tide_slot *row_append(tide_pool *pool, tide_row *row, const row_request *request)
{
    const char *type = tide_type_find(row->type)->name;
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
    if (row_allocate(pool, row, slot, request) != TIDE_OK)
        return NULL;
    row->count++;
    tide_assert(row->count <= TIDE_ROW_MAX && row->slots[row->count].limit == 0);
    return slot;
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

/* Exchanges memory and records. Headers stay: each points to the memory that its slot has now. */
static void row_swap_slots(tide_row *row, tide_slot *left, tide_slot *right)
{
    tide_assert(left < right && right < row->slots + row->count);
    void *data = left->data;
    size_t limit = left->limit;
    left->data = right->data;
    left->limit = right->limit;
    right->data = data;
    right->limit = limit;
    row_point_header(left);
    row_point_header(right);
    tide_slot_record *a = tide_slot_record_of(row, left), *b = tide_slot_record_of(row, right);
    tide_slot_record record = *a;
    *a = *b;
    *b = record;
}

/* Exchanges the slot for a larger free one further along, if growing it would waste much. The
 * exchange is undone with the level it happened in, like all else that the level did. (Else sizes
 * that alternate between two positions would leave the large slot where the small size is asked for
 * next, and would end with two large ones.) At the root it is for good. */
static bool row_exchange(tide_pool *pool, tide_row *row, tide_slot *slot,
                         const row_request *request)
{
    tide_pool_core *core = pool->core;
    if ((double)request->bytes < tide_setting_get(TIDE_SETTING_exchange) * 1024 || core->disabled ||
        request->guarded)
        return false;
    tide_slot *larger = row_find_larger(row, slot, request->n);
    if (larger == NULL)
        return false;
    if (pool->tag != TIDE_TAG_ROOT) {
        if (pool->log_top == core->log.end) /* not tide_log_room: growing will do, so no message */
            return false;
        uint64_t distance = (uint64_t)(larger - slot);
        tide_assert(distance > 0 && distance < TIDE_ROW_SLOTS);
        tide_log_push(pool, &core->log.undo[TIDE_UNDO_EXCHANGE], slot,
                      (uint64_t)row->type << 32 | distance);
    }
    row_swap_slots(row, slot, larger);
    core->memory.exchanges++;
    return true;
}

void tide_row_exchange_undo(tide_pool *pool, const tide_entry *entry)
{
    tide_row *row = &pool->core->rows.by_type[entry->saved_at >> 32];
    tide_slot *slot = entry->next, *larger = slot + (uint32_t)entry->saved_at;
    tide_assert(row->shelf != NULL && slot >= row->slots && slot < larger);
    if (larger < row->slots + row->count) /* else a trim has taken it */
        row_swap_slots(row, slot, larger);
}

/* The slot at `next`, or the one that takes its place, with memory for the request. */
static tide_slot *row_find_or_grow(tide_pool *pool, tide_row *row, const row_request *request)
{
    tide_slot *slot = row->shelf->next;
    if (slot == row->slots + row->count)
        return row_append(pool, row, request);
    const tide_slot_record *record = tide_slot_record_of(row, slot);
    if (record->exported != NULL && tide_streams_quiet(pool, request->call) != TIDE_OK)
        return NULL;
    if (record->exported != NULL)
        tide_export_settle(pool, row, slot);
    if (slot->data != NULL && request->n <= record->capacity && !request->guarded)
        return slot;
    if (row_exchange(pool, row, slot, request))
        return slot;
    return row_allocate(pool, row, slot, request) == TIDE_OK ? slot : NULL;
}

/* Getting new memory may leave the pool unordered: then the slot keeps it, but nobody gets it. */
tide_slot *tide_row_fit(tide_pool *pool, tide_row *row, size_t n, tide_place place,
                        const char *call)
{
    const tide_type_facts *facts = tide_type_find(row->type);
    tide_assert(facts != NULL && row->shelf != NULL && call != NULL);
    row_request request = {.n = n, .place = place, .call = call};
    if (!tide_type_bytes(facts, n, &request.bytes)) {
        tide_fail(TIDE_ERROR_SIZE, call, "%zu elements of %s (%zu bits each) overflow size_t", n,
                  facts->name, facts->size != 0 ? facts->size * 8 : 1);
        return NULL;
    }
    if (tide_streams_ordered(pool, call) != TIDE_OK)
        return NULL;
    request.guarded = tide_guard_due(&pool->core->guards);
    tide_slot *slot = row_find_or_grow(pool, row, &request);
    tide_assert(slot == NULL || (slot == row->shelf->next && slot->data != NULL));
    return tide_streams_ordered(pool, call) == TIDE_OK ? slot : NULL;
}

void *tide_row_take(tide_pool *pool, tide_row *row, tide_slot *slot, size_t n, tide_place place)
{
    tide_assert(slot == row->shelf->next && slot->data != NULL);
    tide_slot_record *record = tide_slot_record_of(row, slot);
    tide_assert(n <= record->capacity && record->exported == NULL);
    if (n > record->peak)
        record->peak = n;
    row->shelf->next = slot + 1;
    if (!pool->core->careful) {
        tide_assert(record->peak <= record->capacity && record->guard == NULL);
        slot->limit = record->peak + 1;
        row_point_header(slot);
        return slot->data;
    }
    record->live = true;
    record->length = n;
    record->tag = pool->tag;
    record->place = place;
    size_t used = 0;
    tide_type_bytes(tide_type_find(row->type), n, &used);
    if (row->device->host && record->guard == NULL)
        tide_shim_live(slot->data, used, record->bytes);
    return slot->data;
}

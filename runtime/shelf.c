/* SPDX-License-Identifier: MIT */
/* How a shelf gets its row and a row its slots. */
#include "runtime/shelf.h"

#include "runtime/assert.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/settings.h"
#include "runtime/shim.h"

enum { LEAST_ALIGN = 64 };

/* ---- rows ------------------------------------------------------------------------------- */

static tide_slot *take_row(tide_pool_core *core)
{
    uint32_t extent = core->rows_taken / TIDE_EXTENT_ROWS;
    if (extent == core->extent_count) {
        char *made = tide_os_reserve(TIDE_EXTENT_BYTES);
        if (made == NULL)
            return NULL;
        core->extents[core->extent_count++] = made;
    }
    size_t offset = (size_t)(core->rows_taken % TIDE_EXTENT_ROWS) * TIDE_ROW_BYTES;
    core->rows_taken++;
    return (tide_slot *)(void *)(core->extents[extent] + offset);
}

tide_shelf *tide_shelf_ready(tide_pool *pool, tide_type type, const char *call)
{
    tide_shelf *shelf = &pool->shelves[type];
    if (TIDE_LIKELY(shelf->saved_at != 0))
        return shelf;
    tide_pool_core *core = pool->core;
    tide_slot *row = take_row(core);
    if (row == NULL) {
        tide_fail(TIDE_ERROR_MEMORY, call, "no address space for slots of %s in pool '%s'",
                  tide_type_find(type)->name, core->name);
        return NULL;
    }
    shelf->type = type;
    shelf->row = row;
    shelf->next = row;
    shelf->saved_at = TIDE_TAG_ROOT;
    core->used[core->used_count++] = shelf;
    return shelf;
}

/* ---- memory of one slot ----------------------------------------------------------------- */

static size_t slot_align(const tide_type_facts *facts)
{
    return facts->align > LEAST_ALIGN ? facts->align : LEAST_ALIGN;
}

static size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

void tide_slot_hollow(tide_pool *pool, tide_shelf *shelf, tide_slot *slot)
{
    tide_slot_record *record = tide_slot_record_of(shelf, slot);
    tide_pool_core *core = pool->core;
    if (slot->data != NULL) {
        if (core->careful && core->device->host)
            tide_shim_release(slot->data, record->bytes);
        core->device->release(core->device, slot->data, record->bytes);
        tide_assert(core->bytes_held >= record->bytes);
        core->bytes_held -= record->bytes;
        core->releases++;
    }
    *slot = (tide_slot){0};
    *record = (tide_slot_record){0};
}

/* Grows geometrically, so that sizes that creep upward do not allocate each time; exactly to
 * the request for a new slot, or where the pool's limit leaves no room for more. */
static size_t grown_bytes(const tide_pool_core *core, const tide_slot_record *record,
                          size_t wanted, size_t room)
{
    size_t generous = record->bytes + record->bytes / 4;
    return !core->disabled && generous > wanted && generous <= room ? generous : wanted;
}

/* New memory for a slot, of `bytes` or somewhat more; the old is released only once the new is
 * there. */
static tide_status allocate(tide_pool *pool, tide_shelf *shelf, tide_slot *slot, size_t bytes,
                            const char *call)
{
    tide_pool_core *core = pool->core;
    const tide_type_facts *facts = tide_type_find(shelf->type);
    tide_slot_record *record = tide_slot_record_of(shelf, slot);
    size_t align = slot_align(facts);
    size_t room = core->limit_bytes - (core->bytes_held - record->bytes);
    if (bytes > SIZE_MAX / 2)
        return tide_fail(TIDE_ERROR_SIZE, call, "%zu bytes of %s exceed the address space", bytes,
                         facts->name);
    size_t wanted = bytes == 0 ? align : round_up(bytes, align);
    if (wanted > room)
        return tide_fail(TIDE_ERROR_LIMIT, call,
                         "%zu bytes of %s would take pool '%s' from %zu past its limit of %zu bytes",
                         wanted, facts->name, core->name, core->bytes_held, core->limit_bytes);
    wanted = round_up(grown_bytes(core, record, wanted, room / align * align), align);
    void *data = core->device->allocate(core->device, wanted, align);
    if (data == NULL)
        return tide_fail(TIDE_ERROR_MEMORY, call, "device %s has no %zu bytes for %s in pool '%s'",
                         core->device->name, wanted, facts->name, core->name);
    tide_slot_hollow(pool, shelf, slot);
    slot->data = data;
    record->bytes = wanted;
    record->capacity = tide_type_fit(facts, wanted);
    core->bytes_held += wanted;
    if (core->bytes_held > core->bytes_peak)
        core->bytes_peak = core->bytes_held;
    core->allocations++;
    return TIDE_OK;
}

/* ---- finding a slot that fits ----------------------------------------------------------- */

/* Room in `records` for one slot more. */
static bool reserve_record(tide_shelf *shelf)
{
    if (shelf->count < shelf->records_room)
        return true;
    uint32_t room = shelf->records_room == 0 ? 8 : shelf->records_room * 2;
    tide_slot_record *records = tide_os_resize(shelf->records, room * sizeof *records);
    if (records == NULL)
        return false;
    shelf->records = records;
    shelf->records_room = room;
    return true;
}

static tide_slot *append(tide_pool *pool, tide_shelf *shelf, size_t bytes, const char *call)
{
    const char *type = tide_type_find(shelf->type)->name;
    if (shelf->count == TIDE_ROW_MOST) {
        tide_fail(TIDE_ERROR_LIMIT, call,
                  "%u arrays of %s are live in pool '%s', limit %d: is a scope missing?",
                  shelf->count, type, pool->core->name, TIDE_ROW_MOST);
        return NULL;
    }
    if (!reserve_record(shelf)) {
        tide_fail(TIDE_ERROR_MEMORY, call, "no memory to remember slot %u of %s in pool '%s'",
                  shelf->count, type, pool->core->name);
        return NULL;
    }
    tide_slot *slot = &shelf->row[shelf->count];
    tide_assert(slot->data == NULL && slot->capacity == 0);
    shelf->records[shelf->count] = (tide_slot_record){0};
    if (allocate(pool, shelf, slot, bytes, call) != TIDE_OK)
        return NULL;
    shelf->count++;
    return slot;
}

/* The smallest free slot after `slot` that holds n elements, or NULL. */
static tide_slot *find_larger(const tide_shelf *shelf, const tide_slot *slot, size_t n)
{
    tide_slot *best = NULL;
    size_t best_capacity = SIZE_MAX;
    for (tide_slot *other = &shelf->row[slot - shelf->row + 1]; other < shelf->row + shelf->count;
         other++) {
        size_t capacity = tide_slot_record_of(shelf, other)->capacity;
        if (capacity >= n && capacity < best_capacity) {
            best = other;
            best_capacity = capacity;
        }
    }
    return best;
}

static void swap_slots(tide_shelf *shelf, tide_slot *left, tide_slot *right)
{
    tide_slot slot = *left;
    *left = *right;
    *right = slot;
    tide_slot_record *a = tide_slot_record_of(shelf, left), *b = tide_slot_record_of(shelf, right);
    tide_slot_record record = *a;
    *a = *b;
    *b = record;
}

/* Exchanges the slot for a larger free one further along, if growing it would waste much. The
 * exchange is undone with the level it happened in, like everything else that the level did:
 * else sizes that alternate between two positions would leave the large slot where the small
 * size is asked for next, and end with two large ones. At the root it is for good. */
static bool exchange(tide_pool *pool, tide_shelf *shelf, tide_slot *slot, size_t n, size_t bytes)
{
    tide_pool_core *core = pool->core;
    if ((double)bytes < tide_setting_get(TIDE_SETTING_exchange) * 1024 || core->disabled)
        return false;
    tide_slot *larger = find_larger(shelf, slot, n);
    if (larger == NULL)
        return false;
    if (pool->tag != TIDE_TAG_ROOT) {
        if (pool->log_top == core->log_end)
            return false;
        uint64_t distance = (uint64_t)(larger - slot);
        tide_log_push(pool, &core->exchanged, slot, (uint64_t)shelf->type << 32 | distance);
    }
    swap_slots(shelf, slot, larger);
    core->exchanges++;
    return true;
}

void tide_shelf_exchange_undo(tide_pool *pool, const tide_entry *entry)
{
    tide_shelf *shelf = &pool->shelves[entry->saved_at >> 32];
    tide_slot *slot = entry->next, *larger = slot + (uint32_t)entry->saved_at;
    tide_assert(slot >= shelf->row && slot < larger);
    if (larger < shelf->row + shelf->count) /* else a trim has taken it */
        swap_slots(shelf, slot, larger);
}

tide_slot *tide_shelf_fit(tide_pool *pool, tide_shelf *shelf, size_t n, const char *call)
{
    const tide_type_facts *facts = tide_type_find(shelf->type);
    size_t bytes;
    if (!tide_type_bytes(facts, n, &bytes)) {
        tide_fail(TIDE_ERROR_SIZE, call, "%zu elements of %s (%zu bytes each) overflow size_t", n,
                  facts->name, facts->size);
        return NULL;
    }
    tide_slot *slot = shelf->next;
    if (slot == shelf->row + shelf->count)
        return append(pool, shelf, bytes, call);
    const tide_slot_record *record = tide_slot_record_of(shelf, slot);
    if (slot->data != NULL && n <= record->capacity)
        return slot;
    if (exchange(pool, shelf, slot, n, bytes))
        return slot;
    return allocate(pool, shelf, slot, bytes, call) == TIDE_OK ? slot : NULL;
}

void *tide_shelf_take(tide_pool *pool, tide_shelf *shelf, tide_slot *slot, size_t n)
{
    tide_assert(slot == shelf->next && slot->data != NULL);
    tide_slot_record *record = tide_slot_record_of(shelf, slot);
    tide_assert(n <= record->capacity);
    if (n > record->peak)
        record->peak = n;
    shelf->next = slot + 1;
    if (!pool->core->careful) {
        slot->capacity = record->peak;
        return slot->data;
    }
    record->live = true;
    record->length = n;
    size_t used = 0;
    tide_type_bytes(tide_type_find(shelf->type), n, &used);
    if (pool->core->device->host)
        tide_shim_live(slot->data, used, record->bytes);
    return slot->data;
}

/* SPDX-License-Identifier: MIT */
/* The invariants:
 *
 *  1. `next` lies in the row's slots or on the sentinel; every live slot has memory.
 *  2. A slot shows no more capacity than it has memory for; none beyond the row's count, where
 *     all is zero; none in a careful pool.
 *  3. Memory is aligned, and adds up to what the pool says it holds.
 *  4. Two slots with memory never overlap, live or not.
 *  5. From the bottom of the log to its top the levels that pushed never decrease, and the open
 *     level is no older than the last of them.
 *  6. A shelf's saved positions never decrease from the bottom to the top, nor past `next`. */
#include "runtime/check.h"

#include <stdlib.h>

#include <tidepool/inline/map.h>

#include "runtime/error.h"
#include "runtime/shelf.h"

static const char call[] = "tide_pool_check";

#define HOLDS(condition, ...)                             \
    do {                                                  \
        if (!(condition)) {                               \
            tide_fail(TIDE_ERROR_STATE, call, __VA_ARGS__); \
            return false;                                 \
        }                                                 \
    } while (0)

static bool check_slot(const tide_pool *pool, const tide_shelf *shelf, uint32_t i)
{
    const tide_type_facts *facts = tide_type_find(shelf->type);
    const tide_slot *slot = &shelf->row[i];
    const tide_slot_record *record = &shelf->records[i];
    HOLDS(slot->capacity <= record->capacity, "slot %u of %s shows %zu of %zu elements", i,
          facts->name, slot->capacity, record->capacity);
    HOLDS(!pool->core->careful || slot->capacity == 0, "slot %u of %s shows its capacity", i,
          facts->name);
    HOLDS((slot->data == NULL) == (record->bytes == 0), "slot %u of %s: %p holds %zu bytes", i,
          facts->name, slot->data, record->bytes);
    HOLDS(slot->data != NULL || i >= tide_shelf_live(shelf), "live slot %u of %s is hollow", i,
          facts->name);
    HOLDS((uintptr_t)slot->data % (facts->align > 64 ? facts->align : 64) == 0,
          "slot %u of %s is misaligned: %p", i, facts->name, slot->data);
    return true;
}

static bool check_shelf(const tide_pool *pool, const tide_shelf *shelf, size_t *bytes)
{
    const tide_type_facts *facts = tide_type_find(shelf->type);
    HOLDS(facts != NULL, "a shelf has unknown type %u", shelf->type);
    HOLDS(shelf->next >= shelf->row && shelf->next <= shelf->row + shelf->count,
          "next of %s is %td, of %u slots", facts->name, shelf->next - shelf->row, shelf->count);
    for (uint32_t i = 0; i < shelf->count; i++) {
        if (!check_slot(pool, shelf, i))
            return false;
        *bytes += shelf->records[i].bytes;
    }
    for (uint32_t i = shelf->count; i < shelf->count + TIDE_TYPED_MOST; i++)
        HOLDS(shelf->row[i].data == NULL && shelf->row[i].capacity == 0,
              "%s: slot %u beyond the last of %u is not zero", facts->name, i, shelf->count);
    return true;
}

/* The state of `shelf` that the entry above this one (or the shelf itself) holds. */
static tide_entry state_above(const tide_pool *pool, const tide_entry *entry)
{
    for (const tide_entry *above = entry + 1; above < pool->log_top; above++)
        if (above->shelf == entry->shelf)
            return *above;
    return (tide_entry){entry->shelf, entry->shelf->next, entry->shelf->saved_at};
}

static bool check_log(const tide_pool *pool)
{
    const tide_pool_core *core = pool->core;
    uint32_t level = tide_level(pool->tag);
    HOLDS(pool->log_top >= core->log && pool->log_top <= core->log_end, "the log's top is outside");
    for (const tide_entry *entry = pool->log_top; entry-- > core->log;) {
        if (!tide_shelf_real(entry->shelf))
            continue;
        tide_entry above = state_above(pool, entry);
        uint32_t pushed = tide_level(above.saved_at);
        HOLDS(pushed <= level, "entry %td of the log was pushed at level %u, a later one at %u",
              entry - core->log, pushed, level);
        HOLDS(entry->next <= above.next, "entry %td of the log lies past what follows it",
              entry - core->log);
        level = pushed;
    }
    return true;
}

bool tide_check_structure(const tide_pool *pool)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < pool->core->used_count; i++)
        if (!check_shelf(pool, pool->core->used[i], &bytes))
            return false;
    HOLDS(bytes == pool->core->bytes_held, "slots hold %zu bytes, the pool says %zu", bytes,
          pool->core->bytes_held);
    return check_log(pool);
}

/* ---- overlap ---------------------------------------------------------------------------- */

typedef struct extent {
    uintptr_t first, last;
} extent;

static int compare_extents(const void *left, const void *right)
{
    const extent *a = left, *b = right;
    return (a->first > b->first) - (a->first < b->first);
}

static size_t collect(const tide_pool *pool, extent *extents)
{
    size_t count = 0;
    for (uint32_t i = 0; i < pool->core->used_count; i++) {
        const tide_shelf *shelf = pool->core->used[i];
        for (uint32_t j = 0; j < shelf->count; j++)
            if (shelf->row[j].data != NULL)
                extents[count++] = (extent){(uintptr_t)shelf->row[j].data,
                                            (uintptr_t)shelf->row[j].data + shelf->records[j].bytes};
    }
    return count;
}

static bool check_overlap(const tide_pool *pool)
{
    size_t most = 1;
    for (uint32_t i = 0; i < pool->core->used_count; i++)
        most += pool->core->used[i]->count;
    extent *extents = tide_os_resize(NULL, most * sizeof *extents);
    HOLDS(extents != NULL, "no memory to compare %zu slots", most);
    size_t count = collect(pool, extents), i = 1;
    qsort(extents, count, sizeof *extents, compare_extents);
    while (i < count && extents[i - 1].last <= extents[i].first)
        i++;
    bool apart = i >= count;
    uintptr_t where = apart ? 0 : extents[i].first;
    tide_os_free(extents);
    HOLDS(apart, "two slots overlap at %#zx", (size_t)where);
    return true;
}

tide_status tide_pool_check(const tide_pool *pool)
{
    TIDE_FORWARD(tide_pool_use(pool, call));
    return tide_check_structure(pool) && check_overlap(pool) ? TIDE_OK : TIDE_ERROR_STATE;
}

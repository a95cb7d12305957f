/* SPDX-License-Identifier: MIT */
/* The invariants:
 *
 *  1. `next` lies in the row's slots or on the sentinel; every live slot has memory, or has
 *     exported it.
 *  2. A slot's limit admits no more than it has memory for; beyond the row's count all is zero;
 *     in a careful pool every limit is 0.
 *     A slot's last header points to its memory wherever the inlined path may hand it out.
 *  3. Memory is aligned, and adds up to what the pool says it holds.
 *  4. For each shelf, from the bottom of the log to its top and then to the shelf itself, its
 *     positions never fall.
 *  5. Only types that are set up have bits, each its own; what the open level has saved are types
 *     with bits. */
#include "runtime/pool/core.h"

#include <tidepool/inline/array.h>
#include <tidepool/inline/map.h>
#include <tidepool/upkeep.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/pool/row.h"

_Static_assert(TIDE_ROW_MAX + TIDE_TYPED_MAX <= TIDE_ROW_SLOTS,
               "a frame reads slots beyond the last one of a full row");
_Static_assert(TIDE_ROW_MAX < TIDE_ROW_SLOTS, "a full row has its sentinel");

static const char call[] = "tide_pool_check";

#define HOLDS(condition, ...)                               \
    do {                                                    \
        if (!(condition)) {                                 \
            tide_fail(TIDE_ERROR_STATE, call, __VA_ARGS__); \
            return false;                                   \
        }                                                   \
    } while (0)

/* Invariants 1 to 3, of one slot. */
static bool invariants_check_slot(const tide_pool *pool, const tide_row *row, uint32_t i)
{
    const tide_type_facts *facts = tide_type_facts_of(row->type);
    const tide_slot *slot = &row->slots[i];
    const tide_slot_record *record = &row->records[i];
    HOLDS(slot->limit <= record->capacity + 1, "slot %u of %s admits %zu of %zu elements", i,
          facts->name, slot->limit, record->capacity);
    HOLDS(!pool->core->careful || slot->limit == 0, "slot %u of %s shows its limit", i,
          facts->name);
    HOLDS(slot->data != NULL || slot->limit == 0, "hollow slot %u of %s admits %zu elements", i,
          facts->name, slot->limit);
    HOLDS(slot->limit == 0 || slot->array == NULL || slot->array->tensor.data == slot->data,
          "the header of slot %u of %s points elsewhere", i, facts->name);
    HOLDS(slot->form ==
              (slot->array != NULL && slot->array->length < slot->limit ? slot->array->form : 0),
          "the header of slot %u of %s is ready, or not, in spite of its limit", i, facts->name);
    HOLDS((slot->data == NULL) == (record->bytes == 0), "slot %u of %s: %p holds %zu bytes", i,
          facts->name, slot->data, record->bytes);
    HOLDS(slot->data != NULL || record->exported != NULL || i >= tide_row_live(row),
          "live slot %u of %s is hollow", i, facts->name);
    HOLDS((uintptr_t)slot->data % (facts->align > 64 ? facts->align : 64) == 0,
          "slot %u of %s is misaligned: %p", i, facts->name, slot->data);
    return true;
}

static bool invariants_is_zero(const tide_slot *slot)
{
    return slot->data == NULL && slot->limit == 0 && slot->array == NULL && slot->form == 0;
}

/* Adds what the row's slots hold to *bytes. */
static bool invariants_check_row(const tide_pool *pool, const tide_row *row, size_t *bytes)
{
    const tide_type_facts *facts = tide_type_facts_of(row->type);
    HOLDS(facts != NULL, "a row has unknown type %u", row->type);
    HOLDS(row->shelf == &pool->shelves[row->type], "the row of %s has another's shelf",
          facts->name);
    HOLDS(row->shelf->next >= row->slots && row->shelf->next <= row->slots + row->count,
          "next of %s is %td, of %u slots", facts->name, row->shelf->next - row->slots, row->count);
    for (uint32_t i = 0; i < row->count; i++) {
        if (!invariants_check_slot(pool, row, i))
            return false;
        *bytes += row->records[i].bytes;
    }
    for (uint32_t i = row->count; i < row->count + TIDE_TYPED_MAX; i++)
        HOLDS(invariants_is_zero(&row->slots[i]), "%s: slot %u beyond the last of %u is not zero",
              facts->name, i, row->count);
    return true;
}

/* Where the entry above this one, or the shelf itself, says that the shelf stood. */
static const tide_slot *invariants_next_above(const tide_pool *pool, const tide_entry *entry)
{
    for (const tide_entry *above = entry + 1; above < pool->log_top; above++)
        if (above->shelf == entry->shelf)
            return above->next;
    return entry->shelf->next;
}

/* Invariant 4. */
static bool invariants_check_log(const tide_pool *pool)
{
    const tide_pool_core *core = pool->core;
    HOLDS(pool->log_top >= core->log.start && pool->log_top <= core->log.end,
          "the log's top is outside");
    for (const tide_entry *entry = pool->log_top; entry-- > core->log.start;) {
        if (!tide_shelf_real(pool, entry->shelf))
            continue;
        HOLDS(entry->next <= invariants_next_above(pool, entry),
              "entry %td of the log lies past what follows it", entry - core->log.start);
    }
    return true;
}

/* Invariant 5. */
static bool invariants_check_bits(const tide_pool *pool)
{
    const tide_pool_core *core = pool->core;
    uint64_t bits = 0;
    for (uint32_t i = 0; i < core->rows.used_count; i++) {
        uint64_t bit = core->rows.used[i]->shelf->bit;
        HOLDS((bit & (bit - 1)) == 0 && (bit & bits) == 0, "%s has the bits %#llx",
              tide_type_facts_of(core->rows.used[i]->type)->name, (unsigned long long)bit);
        bits |= bit;
    }
    HOLDS(bits == core->rows.bits, "types have the bits %#llx, the pool says %#llx",
          (unsigned long long)bits, (unsigned long long)core->rows.bits);
    HOLDS((pool->saved & ~TIDE_SAVED_ASKED & ~bits) == 0,
          "the open level says that it saved %#llx, of %#llx", (unsigned long long)pool->saved,
          (unsigned long long)bits);
    return true;
}

bool tide_pool_invariants_hold(const tide_pool *pool)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < pool->core->rows.used_count; i++) {
        const tide_row *row = pool->core->rows.used[i];
        if (!invariants_check_row(pool, row, &bytes))
            return false;
        HOLDS(row->saved_at == 0 || row->shelf->bit == 0, "%s has a bit and a tag",
              tide_type_facts_of(row->type)->name);
    }
    HOLDS(bytes == pool->core->memory.bytes_held, "slots hold %zu bytes, the pool says %zu", bytes,
          pool->core->memory.bytes_held);
    return invariants_check_bits(pool) && invariants_check_log(pool);
}

tide_status tide_pool_check(const tide_pool *pool)
{
    TIDE_FORWARD(tide_pool_use(pool, call));
    return tide_pool_invariants_hold(pool) ? TIDE_OK : tide_error_status();
}

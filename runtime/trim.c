/* SPDX-License-Identifier: MIT */
/* Giving free memory back: all of it (trim), or what far exceeds its recent use (compact).
 * Both touch slots from `next` on only, so no live array moves or shrinks, at any depth. */
#include "runtime/check.h"
#include "runtime/assert.h"
#include "runtime/error.h"
#include "runtime/settings.h"
#include "runtime/shelf.h"

static void give_back(tide_pool *pool, tide_shelf *shelf, tide_slot *slot,
                      tide_trim_summary *summary)
{
    if (slot->data == NULL)
        return;
    summary->slots++;
    summary->bytes += tide_slot_record_of(shelf, slot)->bytes;
    tide_slot_hollow(pool, shelf, slot);
}

static void trim_shelf(tide_pool *pool, tide_shelf *shelf, tide_trim_summary *summary)
{
    for (tide_slot *slot = shelf->next; slot < shelf->row + shelf->count; slot++)
        give_back(pool, shelf, slot, summary);
    shelf->count = tide_shelf_live(shelf);
}

/* Does the slot hold far more than was asked of it since the last compact? */
static bool is_wasteful(const tide_shelf *shelf, const tide_slot_record *record)
{
    size_t used = 0;
    tide_type_bytes(tide_type_find(shelf->type), record->peak, &used);
    return (double)record->bytes >= tide_setting_get(TIDE_SETTING_compact_factor) * (double)used &&
           (double)(record->bytes - used) >= tide_setting_get(TIDE_SETTING_compact_gain) * 1024;
}

/* Afterwards every free slot shows no capacity, so that its next use comes by cold code once and
 * starts a new peak. */
static void compact_shelf(tide_pool *pool, tide_shelf *shelf, tide_trim_summary *summary)
{
    for (tide_slot *slot = shelf->next; slot < shelf->row + shelf->count; slot++) {
        tide_slot_record *record = tide_slot_record_of(shelf, slot);
        if (is_wasteful(shelf, record))
            give_back(pool, shelf, slot, summary);
        record->peak = 0;
        slot->capacity = 0;
    }
}

static tide_trim_summary each_shelf(tide_pool *pool, tide_type type, const char *call,
                                    void (*work)(tide_pool *, tide_shelf *, tide_trim_summary *))
{
    tide_trim_summary summary = {0};
    if (tide_pool_use(pool, call) != TIDE_OK)
        return summary;
    if (type != TIDE_ALL_TYPES && tide_type_find(type) == NULL) {
        tide_fail(TIDE_ERROR_TYPE, call, "no type %u, there are %u", type, tide_type_count());
        return summary;
    }
    for (uint32_t i = 0; i < pool->core->used_count; i++) {
        tide_shelf *shelf = pool->core->used[i];
        if (type == TIDE_ALL_TYPES || type == shelf->type)
            work(pool, shelf, &summary);
    }
    tide_assert_valid(pool);
    return summary;
}

tide_trim_summary tide_pool_trim(tide_pool *pool, tide_type type)
{
    return each_shelf(pool, type, "tide_pool_trim", trim_shelf);
}

tide_trim_summary tide_pool_compact(tide_pool *pool, tide_type type)
{
    return each_shelf(pool, type, "tide_pool_compact", compact_shelf);
}

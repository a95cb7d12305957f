/* SPDX-License-Identifier: MIT */
/* The cold side of acquire: first touch, growth, checks, errors. */
#include <tidepool/acquire.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/check/report.h"
#include "runtime/pool/level.h"
#include "runtime/pool/row.h"

static const char call[] = "tide_acquire";

/* The type is known. */
TIDE_INLINE void *acquire_change(tide_pool *pool, tide_type type, size_t n, tide_place place)
{
    tide_row *row = tide_row_ready(pool, type, call);
    if (row == NULL || !tide_log_touch(pool, row->shelf, call))
        return NULL;
    tide_slot *slot = tide_row_fit(pool, row, n, place, call);
    if (slot == NULL)
        return NULL;
    void *data = tide_row_take(pool, row, slot, n, place);
    tide_assert(data != NULL && tide_log_saved(pool, row->shelf));
    return data;
}

/* Any acquire, in any pool: checks what was asked, and does all of it. */
static TIDE_COLD void *acquire_cold(tide_pool *pool, tide_type type, size_t n, TIDE_PLACE)
{
    if (!tide_pool_plain(pool) && tide_pool_use_or_report(pool, call) != TIDE_OK)
        return NULL;
    bool known = type < TIDE_TYPE_LIMIT && pool->shelves[type].next != NULL;
    if (!known && tide_type_facts_of(type) == NULL) {
        tide_type_refuse(type, call);
        return NULL;
    }
    void *data = acquire_change(pool, type, n, (tide_place){TIDE_PASS_PLACE});
    tide_assert_valid(pool);
    return data;
}

/* The same for a type without a bit, whose slot is ready. */
static __attribute__((noinline)) void *acquire_without_bit(tide_pool *pool, tide_shelf *shelf)
{
    tide_slot *slot = shelf->next;
    if (!tide_log_touch(pool, shelf, call))
        return NULL;
    shelf->next = slot + 1;
    return slot->data;
}

/* Most calls that miss the inlined path are first touches of a shelf whose slot is ready. In a
 * careful pool no log has room here and no slot has a limit above 0, so none passes.
 *
 * A mark or a scope that nothing is known of has one of these for each type, so this is no cold
 * code, whatever it is to its callers. (GCC optimises cold functions for size: it cleared the entry
 * with one string instruction, 30 cycles. It treats a function that only cold code calls as cold,
 * too; so this one is not static.) */
void *tide_acquire_touch(tide_pool *pool, tide_type type, size_t n, TIDE_PLACE)
{
    if (TIDE_UNLIKELY(pool == NULL || type >= TIDE_TYPE_LIMIT))
        return acquire_cold(pool, type, n, TIDE_PASS_PLACE);
    tide_shelf *shelf = &pool->shelves[type];
    tide_entry *top = pool->log_top;
    tide_slot *slot = shelf->next;
    uint64_t saved = pool->saved;
    if (TIDE_UNLIKELY(slot == NULL || top >= tide_log_open(pool) || n >= slot->limit))
        return acquire_cold(pool, type, n, TIDE_PASS_PLACE);
    tide_assert(slot->data != NULL && !pool->core->careful);
    if (TIDE_UNLIKELY(shelf->bit == 0))
        return acquire_without_bit(pool, shelf);
    if ((saved & shelf->bit) == 0 && !tide_at_root(pool)) {
        tide_log_write(top, shelf, slot);
        pool->log_top = top + 1;
    }
    pool->saved = saved | shelf->bit;
    shelf->next = slot + 1;
    return slot->data;
}

void *tide_acquire_slow(tide_pool *pool, tide_type type, size_t n, TIDE_PLACE)
{
    return tide_acquire_touch(pool, type, n, TIDE_PASS_PLACE);
}

void *tide_acquire_type(tide_pool *pool, tide_type type, size_t n)
{
    return TIDE_LIKELY(type < TIDE_TYPE_LIMIT) ? tide_acquire_inline(pool, type, n, TIDE_CALLER)
                                               : acquire_cold(pool, type, n, TIDE_CALLER);
}

/* SPDX-License-Identifier: MIT */
/* The cold side of acquire: first touch, growth, checks, errors. */
#include <tidepool/acquire.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/check/report.h"
#include "runtime/pool/invariants.h"
#include "runtime/pool/log.h"
#include "runtime/pool/row.h"

static const char call[] = "tide_acquire";

/* Any acquire, in any pool: checks what was asked, and does all of it. */
static TIDE_COLD void *acquire_cold(tide_pool *pool, tide_type type, size_t n, tide_place place)
{
    if (tide_pool_use(pool, call) != TIDE_OK)
        return NULL;
    if (type == TIDE_NO_TYPE) { /* tide_type_of() failed: its message says why */
        tide_fail(TIDE_ERROR_TYPE, call, "no type (%.200s)", tide_error_message());
        return NULL;
    }
    if (tide_type_find(type) == NULL) {
        tide_fail(TIDE_ERROR_TYPE, call, "no type %u, there are %u", type, tide_type_count());
        return NULL;
    }
    tide_row *row = tide_row_ready(pool, type, call);
    if (row == NULL || !tide_log_touch(pool, row->shelf, call))
        return NULL;
    tide_slot *slot = tide_row_fit(pool, row, n, place, call);
    if (slot == NULL)
        return NULL;
    void *data = tide_row_take(pool, row, slot, n, place);
    tide_assert(data != NULL && row->shelf->saved_at == pool->tag);
    tide_assert_valid(pool);
    return data;
}

/* Most calls that miss the inlined path are first touches of a shelf whose slot is ready. In a
 * careful pool no log has room here and no slot has a limit above 0, so none passes. */
void *tide_acquire_slow(tide_pool *pool, tide_type type, size_t n, TIDE_PLACE)
{
    if (TIDE_LIKELY(pool != NULL && type < TIDE_TYPE_LIMIT)) {
        tide_shelf *shelf = &pool->shelves[type];
        tide_entry *top = pool->log_top;
        if (TIDE_LIKELY(shelf->saved_at != 0 && top < tide_log_open(pool))) {
            tide_slot *slot = shelf->next;
            if (TIDE_LIKELY(n < slot->limit)) {
                tide_assert(slot->data != NULL && !pool->core->careful);
                if (shelf->saved_at != pool->tag) {
                    *top = (tide_entry){shelf, slot, shelf->saved_at};
                    pool->log_top = top + 1;
                    shelf->saved_at = pool->tag;
                }
                shelf->next = slot + 1;
                return slot->data;
            }
        }
    }
    return acquire_cold(pool, type, n, (tide_place){TIDE_PASS_PLACE});
}

void *tide_acquire_type(tide_pool *pool, tide_type type, size_t n)
{
    return TIDE_LIKELY(type < TIDE_TYPE_LIMIT)
               ? tide_acquire_inline(pool, type, n, TIDE_CALLER)
               : acquire_cold(pool, type, n, (tide_place){TIDE_CALLER});
}

/* SPDX-License-Identifier: MIT */
/* The inlined acquire. tide_acquire_type does the same as an exported function. */
#ifndef TIDEPOOL_INLINE_ACQUIRE_H
#define TIDEPOOL_INLINE_ACQUIRE_H

#include <tidepool/inline/layout.h>
#ifdef TIDE_LANGUAGE_OK

TIDE_BEGIN_DECLS

/* All that the inlined path does not do: first touch, growth, checks and every error. The place is
 * where the source asks for the array, if that is known. */
TIDE_API TIDE_COLD void *tide_acquire_slow(tide_pool *pool, tide_type type, size_t n, TIDE_PLACE);

/* The guard: the open level has saved this shelf, and the next slot is large enough. The sentinel
 * that ends a row has limit 0 and no n is less than 0, so it is never handed out, not even for n =
 * 0. */
TIDE_INLINE void *tide_acquire_inline(tide_pool *pool, tide_type type, size_t n, TIDE_PLACE)
{
    if (TIDE_LIKELY(pool != NULL)) {
        tide_shelf *shelf = &pool->shelves[type];
        if (TIDE_LIKELY(tide_type_saved(pool, type))) {
            tide_slot *slot = shelf->next;
            if (TIDE_LIKELY(n < slot->limit)) {
                shelf->next = slot + 1;
                return slot->data;
            }
        }
    }
    return tide_acquire_slow(pool, type, n, TIDE_PASS_PLACE);
}

TIDE_END_DECLS

#endif
#endif

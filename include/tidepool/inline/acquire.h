/* SPDX-License-Identifier: MIT */
/* The inlined acquire. Its exported twin is tide_acquire_type. */
#ifndef TIDEPOOL_INLINE_ACQUIRE_H
#define TIDEPOOL_INLINE_ACQUIRE_H

#include <tidepool/inline/layout.h>

TIDE_BEGIN_DECLS

/* The cold side: first touch, growth, checks and every error. The place says where the array was
 * asked for, if that is known. */
TIDE_API TIDE_COLD void *tide_acquire_slow(tide_pool *pool, tide_type type, size_t n, TIDE_PLACE);

/* One question decides: did the open level save this shelf already? If so, the next slot is ours
 * if it is large enough. No n is less than the sentinel's limit of 0, so the sentinel is never
 * handed out, not even for n = 0. */
TIDE_INLINE void *tide_acquire_inline(tide_pool *pool, tide_type type, size_t n, TIDE_PLACE)
{
    if (TIDE_LIKELY(pool != NULL)) {
        tide_shelf *shelf = &pool->shelves[type];
        if (TIDE_LIKELY(shelf->saved_at == pool->tag)) {
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

/* SPDX-License-Identifier: MIT */
/* The loop scope: what the first iteration saved stays in the log, each later iteration only
 * puts `next` back from there. */
#ifndef TIDEPOOL_INLINE_LOOP_H
#define TIDEPOOL_INLINE_LOOP_H

#include <tidepool/inline/layout.h>

TIDE_BEGIN_DECLS

typedef struct tide_loop {
    tide_pool *pool;  /* NULL: refused */
    tide_entry *base; /* the log as it was before the loop                       */
    tide_entry *top;  /* the log as an iteration should leave it; NULL: not known */
    uint64_t tag;
    uint64_t outer;
} tide_loop;

TIDE_API tide_loop tide_loop_begin(tide_pool *pool);
TIDE_API void tide_loop_end(tide_loop *loop);

/* An iteration that touched a new type, left an inner scope open or exchanged slots; also the
 * exported twin of tide_loop_next. */
TIDE_API TIDE_COLD void tide_loop_next_slow(tide_loop *loop);

/* With the level and the length of the log as they should be, every shelf stands in the log at
 * most once above the base, so the order of putting back does not matter. */
TIDE_INLINE void tide_loop_next(tide_loop *loop)
{
    tide_pool *pool = loop->pool;
    if (TIDE_LIKELY(pool != NULL && pool->tag == loop->tag && pool->log_top == loop->top)) {
        for (tide_entry *entry = loop->base; entry != loop->top; entry++)
            entry->shelf->next = entry->next;
    } else {
        tide_loop_next_slow(loop);
    }
}

TIDE_END_DECLS

#endif

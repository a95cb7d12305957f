/* SPDX-License-Identifier: MIT */
/* The scope of TIDE_LOOP. The states that the first iteration saved stay in the log; each later
 * iteration only puts `next` back from there. */
#ifndef TIDEPOOL_INLINE_LOOP_H
#define TIDEPOOL_INLINE_LOOP_H

#include <tidepool/inline/layout.h>

TIDE_BEGIN_DECLS

typedef struct tide_loop {
    tide_pool *pool;  /* if refused: one whose guards fail */
    tide_entry *base; /* the log as it was before the loop                       */
    tide_entry *top;  /* the log as an iteration should leave it; NULL: not known */
    uint64_t tag;
    uint64_t outer_saved; /* what the level around had saved                                   */
    tide_entry *rest;     /* the entries after the first two, up to `top`; `top` if none      */
    tide_shelf *shelf[2]; /* the first two entries, which registers may hold. If there are    */
    tide_slot *next[2];   /* fewer, they name the pool's shelf of TIDE_NO_TYPE                */
} tide_loop;

/* Loops are passed to cold code by value, so that the loop itself can stay in registers. */
TIDE_API tide_loop tide_loop_enter_slow(tide_pool *pool, TIDE_PLACE);
TIDE_API void tide_loop_leave_slow(tide_loop loop);

/* Ends an iteration that touched a new type, left an inner scope open or exchanged slots. It is
 * also the exported function that ends any iteration. */
TIDE_API TIDE_COLD tide_loop tide_loop_next_slow(tide_loop loop);

/* A loop that is passed or returned by value lies in memory. This copy of it can be in
 * registers. */
TIDE_INLINE tide_loop tide_loop_copy(const tide_loop *made)
{
    tide_loop loop;
    loop.pool = TIDE_APART(made->pool);
    loop.base = TIDE_APART(made->base);
    loop.top = TIDE_APART(made->top);
    loop.tag = TIDE_APART(made->tag);
    loop.outer_saved = TIDE_APART(made->outer_saved);
    loop.rest = TIDE_APART(made->rest);
    loop.shelf[0] = TIDE_APART(made->shelf[0]);
    loop.shelf[1] = TIDE_APART(made->shelf[1]);
    loop.next[0] = TIDE_APART(made->next[0]);
    loop.next[1] = TIDE_APART(made->next[1]);
    return loop;
}

TIDE_INLINE tide_loop tide_loop_enter(tide_pool *pool, TIDE_PLACE)
{
    tide_loop made = tide_loop_enter_slow(pool, TIDE_PASS_PLACE);
    return tide_loop_copy(&made);
}

/* The guard: level and length of the log are as expected. Then the log has at most one entry for
 * each shelf above `base`, so the shelves may be put back in any order. */
TIDE_INLINE void tide_loop_next(tide_loop *loop)
{
    tide_pool *pool = loop->pool;
    if (TIDE_UNLIKELY(pool->tag != loop->tag || pool->log_top != loop->top)) {
        tide_loop made = tide_loop_next_slow(tide_loop_copy(loop));
        *loop = tide_loop_copy(&made);
        return;
    }
    loop->shelf[0]->next = loop->next[0];
    loop->shelf[1]->next = loop->next[1];
    for (const tide_entry *entry = loop->rest; TIDE_UNLIKELY(entry != loop->top); entry++)
        entry->shelf->next = entry->next;
}

TIDE_INLINE void tide_loop_leave(tide_loop *loop)
{
    tide_loop_leave_slow(tide_loop_copy(loop));
}

TIDE_END_DECLS

#endif

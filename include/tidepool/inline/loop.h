/* SPDX-License-Identifier: MIT */
/* The loop scope. What the first iteration saved stays in the log; each later iteration only puts
 * `next` back from there. */
#ifndef TIDEPOOL_INLINE_LOOP_H
#define TIDEPOOL_INLINE_LOOP_H

#include <tidepool/inline/layout.h>

TIDE_BEGIN_DECLS

typedef struct tide_loop {
    tide_pool *pool;  /* tide_pool_refusing if refused */
    tide_entry *base; /* the log as it was before the loop                       */
    tide_entry *top;  /* the log as an iteration should leave it; NULL: not known */
    uint64_t tag;
    uint64_t outer;
    tide_entry *rest;     /* entries from here to `top` are more than the two below; or `top` */
    tide_shelf *shelf[2]; /* the first two entries, in registers with luck. Where there are   */
    tide_slot *next[2];   /* fewer, the pool's shelf of no type stands in                     */
} tide_loop;

/* Loops go to cold code by value, so that their own copy can stay in registers. */
TIDE_API tide_loop tide_loop_enter_slow(tide_pool *pool, TIDE_PLACE);
TIDE_API void tide_loop_leave_slow(tide_loop loop);

/* Ends an iteration that touched a new type, left an inner scope open or exchanged slots. Also the
 * exported twin of tide_loop_next. */
TIDE_API TIDE_COLD tide_loop tide_loop_next_slow(tide_loop loop);

/* A loop that a function is given, or returns, by value lies in memory. This copy need not. */
TIDE_INLINE tide_loop tide_loop_copy(const tide_loop *made)
{
    tide_loop loop;
    loop.pool = TIDE_APART(made->pool);
    loop.base = TIDE_APART(made->base);
    loop.top = TIDE_APART(made->top);
    loop.tag = TIDE_APART(made->tag);
    loop.outer = TIDE_APART(made->outer);
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

/* If the level and the length of the log are as they should be, each shelf stands in the log at
 * most once above the base. So shelves may be put back in any order. */
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

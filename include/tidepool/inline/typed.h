/* SPDX-License-Identifier: MIT */
/* Typed scopes and frames, inlined: types named in the source need no plan.
 *
 * All loops here run over constants, written as cascades (TIDE_EACH_TYPED) so that any
 * optimiser unrolls them, folds the tests for repeated types and keeps the scope in registers. */
#ifndef TIDEPOOL_INLINE_TYPED_H
#define TIDEPOOL_INLINE_TYPED_H

#include <tidepool/inline/layout.h>
#include <tidepool/inline/map.h>

TIDE_BEGIN_DECLS

typedef struct tide_typed_scope {
    tide_pool *pool;  /* NULL: refused */
    tide_entry *base; /* the log as it was at entry                             */
    tide_entry *top;  /* the log as the scope should end; NULL: never fast       */
    uint64_t tag;
    uint64_t outer;
    uint32_t count;
    tide_type types[TIDE_TYPED_MOST];
} tide_typed_scope;

/* Cold twins; exported, so that code without macros can use them too. `scope` gets top == NULL:
 * what was entered here is left by tide_typed_leave_slow. */
TIDE_API TIDE_COLD void tide_typed_enter_slow(tide_typed_scope *scope, tide_pool *pool,
                                              uint32_t count, const tide_type *types);
TIDE_API TIDE_COLD void tide_typed_leave_slow(tide_pool *pool, tide_entry *base, uint64_t tag,
                                              uint64_t outer);
TIDE_API TIDE_COLD void tide_frame_acquire_slow(tide_pool *pool, uint32_t count,
                                                const tide_type *types, const size_t *counts,
                                                void **data);

#define TIDE_EACH_TYPED(count, STEP) \
    do {                             \
        if ((count) > 0) STEP(0);    \
        if ((count) > 1) STEP(1);    \
        if ((count) > 2) STEP(2);    \
        if ((count) > 3) STEP(3);    \
        if ((count) > 4) STEP(4);    \
        if ((count) > 5) STEP(5);    \
        if ((count) > 6) STEP(6);    \
        if ((count) > 7) STEP(7);    \
    } while (0)

/* How many of the types before the i-th are the same as the i-th. */
TIDE_INLINE uint32_t tide_typed_repeats(const tide_type *types, uint32_t i)
{
    uint32_t repeats = 0;
#define TIDE_STEP(j) repeats += types[j] == types[i]
    TIDE_EACH_TYPED(i, TIDE_STEP);
#undef TIDE_STEP
    return repeats;
}

/* Saves each named shelf and opens the level. The guard: the log has room, and every shelf has
 * been set up in this pool (`saved_at` is 0 before that). Loads come before stores, so that the
 * compiler need not fear that one changes the other. */
TIDE_INLINE void tide_typed_enter(tide_typed_scope *scope, tide_pool *pool, uint32_t count,
                                  const tide_type *types)
{
    tide_entry saved[TIDE_TYPED_MOST];
    bool ready = pool != NULL && pool->log_top + count <= pool->log_room;
    scope->count = count;
#define TIDE_STEP(i) scope->types[i] = types[i]
    TIDE_EACH_TYPED(count, TIDE_STEP);
#undef TIDE_STEP
    if (TIDE_LIKELY(ready)) {
#define TIDE_STEP(i)                                          \
    do {                                                      \
        saved[i].shelf = &pool->shelves[types[i]];            \
        saved[i].next = saved[i].shelf->next;                 \
        saved[i].saved_at = saved[i].shelf->saved_at;         \
        ready = ready && saved[i].saved_at != 0;              \
    } while (0)
        TIDE_EACH_TYPED(count, TIDE_STEP);
#undef TIDE_STEP
    }
    if (TIDE_UNLIKELY(!ready)) {
        tide_type copy[TIDE_TYPED_MOST]; /* so that `types` itself need not be in memory */
        tide_typed_scope slow;
#define TIDE_STEP(i) copy[i] = types[i]
        TIDE_EACH_TYPED(count, TIDE_STEP);
#undef TIDE_STEP
        tide_typed_enter_slow(&slow, pool, count, copy);
        scope->pool = slow.pool;
        scope->base = slow.base;
        scope->top = NULL;
        scope->tag = slow.tag;
        scope->outer = slow.outer;
        return;
    }
    tide_entry *top = pool->log_top;
    scope->pool = pool;
    scope->base = top;
    scope->outer = pool->tag;
    scope->tag = tide_tag_inner(pool);
#define TIDE_STEP(i)                                  \
    do {                                              \
        if (tide_typed_repeats(types, i) == 0) {      \
            *top++ = saved[i];                        \
            saved[i].shelf->saved_at = scope->tag;    \
        }                                             \
    } while (0)
    TIDE_EACH_TYPED(count, TIDE_STEP);
#undef TIDE_STEP
    scope->top = top;
    pool->log_top = top;
    pool->tag = scope->tag;
}

/* The guard: this level is the open one, and nothing but its own types was touched in it. */
TIDE_INLINE void tide_typed_leave(tide_typed_scope *scope)
{
    tide_pool *pool = scope->pool;
    if (TIDE_UNLIKELY(pool == NULL))
        return;
    if (TIDE_UNLIKELY(pool->tag != scope->tag || pool->log_top != scope->top)) {
        tide_typed_leave_slow(pool, scope->base, scope->tag, scope->outer);
        return;
    }
    const tide_entry *entry = scope->base;
#define TIDE_STEP(i)                                                  \
    do {                                                              \
        if (tide_typed_repeats(scope->types, i) == 0) {               \
            tide_shelf *shelf = &pool->shelves[scope->types[i]];      \
            shelf->next = entry->next;                                \
            shelf->saved_at = entry->saved_at;                        \
            entry++;                                                  \
        }                                                             \
    } while (0)
    TIDE_EACH_TYPED(scope->count, TIDE_STEP);
#undef TIDE_STEP
    pool->log_top = scope->base;
    pool->tag = scope->outer;
}

/* A typed scope, then all its arrays under one guard: the i-th array of a type is the i-th slot
 * from that shelf's `next`, and each must be large enough. Slots past the sentinel are zero, so
 * a row that is too short fails the same test. */
TIDE_INLINE void tide_frame_enter(tide_typed_scope *scope, tide_pool *pool, uint32_t count,
                                  const tide_type *types, const size_t *counts, void **data)
{
    tide_typed_enter(scope, pool, count, types);
    if (TIDE_LIKELY(scope->top != NULL)) {
        tide_slot *slots[TIDE_TYPED_MOST];
        bool fits = true;
#define TIDE_STEP(i)                                                                        \
    do {                                                                                    \
        slots[i] = pool->shelves[types[i]].next + tide_typed_repeats(types, i);             \
        fits = fits && counts[i] - 1 < slots[i]->capacity;                                  \
        data[i] = slots[i]->data;                                                           \
    } while (0)
        TIDE_EACH_TYPED(count, TIDE_STEP);
#undef TIDE_STEP
        if (TIDE_LIKELY(fits)) {
#define TIDE_STEP(i) pool->shelves[types[i]].next = slots[i] + 1
            TIDE_EACH_TYPED(count, TIDE_STEP);
#undef TIDE_STEP
            return;
        }
    }
    tide_type type_copy[TIDE_TYPED_MOST];
    size_t count_copy[TIDE_TYPED_MOST];
    void *data_copy[TIDE_TYPED_MOST];
#define TIDE_STEP(i)               \
    do {                           \
        type_copy[i] = types[i];   \
        count_copy[i] = counts[i]; \
    } while (0)
    TIDE_EACH_TYPED(count, TIDE_STEP);
#undef TIDE_STEP
    tide_frame_acquire_slow(scope->pool, count, type_copy, count_copy, data_copy);
#define TIDE_STEP(i) data[i] = data_copy[i]
    TIDE_EACH_TYPED(count, TIDE_STEP);
#undef TIDE_STEP
}

TIDE_END_DECLS

#endif

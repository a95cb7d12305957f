/* SPDX-License-Identifier: MIT */
/* Typed scopes and frames, inlined. Types that the source names need no plan, and mostly no log.
 *
 * Often the level around the scope has saved a shelf already: `saved_at == pool->tag`, which at the
 * root always holds. Then that level will put the shelf back, whatever happens to this scope. So
 * this scope need not write the shelf's state to the undo log. It keeps `next` in a variable of its
 * own, which the compiler keeps in a register. There are four ways in which the scope can end:
 *
 *  1. It ends by itself. It puts `next` back from its variable, and sets `saved_at` to the level
 *     around it, as it was before.
 *  2. A longjmp skips it. The level around it rewinds its own entry for the shelf, which is older
 *     than this scope. (At the root there is nothing older to restore.)
 *  3. Something else was saved meanwhile (another type, an exchange, a scope left open). Then the
 *     log is longer or the tag is another, and the cold twin rewinds the log first.
 *  4. A reset abandoned it. Then the tag is another, and the cold twin does nothing.
 *
 * If the level around has not saved a shelf, the cold twin writes the log as usual.
 *
 * All loops here run over constants. They are written as a row of tests (TIDE_EACH_TYPED). So any
 * optimiser unrolls them, folds the tests for repeated types and keeps the scope in registers. */
#ifndef TIDEPOOL_INLINE_TYPED_H
#define TIDEPOOL_INLINE_TYPED_H

#include <tidepool/inline/layout.h>
#include <tidepool/inline/map.h>

TIDE_BEGIN_DECLS

typedef struct tide_typed_scope {
    tide_pool *pool;  /* tide_pool_refusing if refused */
    tide_entry *base; /* the log as it was at entry; NULL: see next */
    uint64_t tag;
    uint64_t outer;
    uint32_t count;
    tide_type types[TIDE_TYPED_MAX];
    /* `next` of each shelf at entry. If `base` is NULL, they are in the log instead, and next[0] is
     * the log as it was at entry. So the fast path has one word less to keep. */
    tide_slot *next[TIDE_TYPED_MAX];
} tide_typed_scope;

/* Cold twins. They are exported, so code without macros can use them, too. They work on a copy of
 * the scope, so that the scope itself can stay in registers. */
TIDE_API TIDE_COLD tide_typed_scope tide_typed_enter_slow(tide_pool *pool, uint32_t count,
                                                          const tide_type *types, TIDE_PLACE);
TIDE_API TIDE_COLD void tide_typed_leave_slow(const tide_typed_scope *scope);
TIDE_API TIDE_COLD void tide_frame_acquire_slow(tide_pool *pool, uint32_t count,
                                                const tide_type *types, const size_t *counts,
                                                void **data, TIDE_PLACE);

#define TIDE_EACH_TYPED(count, STEP) \
    do {                             \
        if ((count) > 0)             \
            STEP(0);                 \
        if ((count) > 1)             \
            STEP(1);                 \
        if ((count) > 2)             \
            STEP(2);                 \
        if ((count) > 3)             \
            STEP(3);                 \
        if ((count) > 4)             \
            STEP(4);                 \
        if ((count) > 5)             \
            STEP(5);                 \
        if ((count) > 6)             \
            STEP(6);                 \
        if ((count) > 7)             \
            STEP(7);                 \
    } while (0)

/* How many of the types before the i-th are equal to it. */
TIDE_INLINE uint32_t tide_typed_repeats(const tide_type *types, uint32_t i)
{
    uint32_t repeats = 0;
#define TIDE_STEP(j) repeats += types[j] == types[i]
    TIDE_EACH_TYPED(i, TIDE_STEP);
#undef TIDE_STEP
    return repeats;
}

/* Opens the level without the log if the guard holds. If it returns false, nothing has changed. The
 * guard: the pool need not see every call, and the open level has saved every shelf. */
TIDE_INLINE bool tide_typed_open(tide_typed_scope *scope, tide_pool *pool, uint32_t count,
                                 const tide_type *types)
{
    if (TIDE_UNLIKELY(pool == NULL))
        return false;
    tide_entry *top = pool->log_top;
    uint64_t outer = pool->tag;
    if (TIDE_UNLIKELY(top >= tide_log_open(pool)))
        return false;
#define TIDE_STEP(i)                                                  \
    do {                                                              \
        if (TIDE_UNLIKELY(pool->shelves[types[i]].saved_at != outer)) \
            return false;                                             \
        TIDE_ONE_BY_ONE();                                            \
    } while (0)
    TIDE_EACH_TYPED(count, TIDE_STEP);
#undef TIDE_STEP
    scope->pool = pool;
    scope->base = top;
    scope->outer = outer;
    scope->tag = tide_tag_inner(pool);
    scope->count = count;
#define TIDE_STEP(i)                                   \
    do {                                               \
        scope->types[i] = types[i];                    \
        scope->next[i] = pool->shelves[types[i]].next; \
    } while (0)
    TIDE_EACH_TYPED(count, TIDE_STEP);
#undef TIDE_STEP
    pool->tag = scope->tag;
    return true;
}

/* Opens the level by the cold twin, which gets a copy of `types`; so `types` need not be in
 * memory. */
TIDE_INLINE void tide_typed_open_slow(tide_typed_scope *scope, tide_pool *pool, uint32_t count,
                                      const tide_type *types, TIDE_PLACE)
{
    tide_type copy[TIDE_TYPED_MAX];
#define TIDE_STEP(i) copy[i] = types[i]
    TIDE_EACH_TYPED(count, TIDE_STEP);
#undef TIDE_STEP
    tide_typed_scope slow = tide_typed_enter_slow(pool, count, copy, TIDE_PASS_PLACE);
    scope->pool = slow.pool;
    scope->base = NULL;
    scope->tag = slow.tag;
    scope->outer = slow.outer;
    scope->count = count;
#define TIDE_STEP(i)                \
    do {                            \
        scope->types[i] = types[i]; \
        scope->next[i] = NULL;      \
    } while (0)
    TIDE_EACH_TYPED(count, TIDE_STEP);
#undef TIDE_STEP
    scope->next[0] = slow.next[0];
}

TIDE_INLINE void tide_typed_enter(tide_typed_scope *scope, tide_pool *pool, uint32_t count,
                                  const tide_type *types, TIDE_PLACE)
{
    if (TIDE_UNLIKELY(!tide_typed_open(scope, pool, count, types))) {
        tide_typed_open_slow(scope, pool, count, types, TIDE_PASS_PLACE);
        return;
    }
#define TIDE_STEP(i) pool->shelves[types[i]].saved_at = scope->tag
    TIDE_EACH_TYPED(count, TIDE_STEP);
#undef TIDE_STEP
}

TIDE_INLINE bool tide_typed_undisturbed(const tide_typed_scope *scope)
{
    return scope->pool->tag == scope->tag && scope->pool->log_top == scope->base;
}

TIDE_INLINE void tide_typed_leave_copy(const tide_typed_scope *scope)
{
    tide_typed_scope copy = *scope;
    tide_typed_leave_slow(&copy);
}

/* If a type is repeated, all its copies of `next` are equal, so any of them may be put back. */
TIDE_INLINE void tide_typed_leave(tide_typed_scope *scope)
{
    tide_pool *pool = scope->pool;
    if (TIDE_UNLIKELY(!tide_typed_undisturbed(scope))) {
        tide_typed_leave_copy(scope);
        return;
    }
#define TIDE_STEP(i)                                             \
    do {                                                         \
        if (tide_typed_repeats(scope->types, i) == 0) {          \
            tide_shelf *shelf = &pool->shelves[scope->types[i]]; \
            shelf->next = scope->next[i];                        \
            shelf->saved_at = scope->outer;                      \
        }                                                        \
    } while (0)
    TIDE_EACH_TYPED(scope->count, TIDE_STEP);
#undef TIDE_STEP
    pool->tag = scope->outer;
}

/* The guard over all arrays: each slot must be large enough. The i-th array of a type gets the i-th
 * slot from the shelf's `next` on. Slots past the sentinel are zero, so the same test fails if a
 * row is too short. */
TIDE_INLINE bool tide_frame_fits(const tide_typed_scope *scope, uint32_t count,
                                 const tide_type *types, const size_t *counts, void **data)
{
#define TIDE_STEP(i)                                                           \
    do {                                                                       \
        const tide_slot *slot = scope->next[i] + tide_typed_repeats(types, i); \
        if (TIDE_UNLIKELY(counts[i] >= slot->limit))                           \
            return false;                                                      \
        TIDE_ONE_BY_ONE();                                                     \
        data[i] = slot->data;                                                  \
    } while (0)
    TIDE_EACH_TYPED(count, TIDE_STEP);
#undef TIDE_STEP
    return true;
}

/* A frame takes all its arrays at once, so it need not claim the shelves: `saved_at` stays the tag
 * of the level around. A later acquire of the same type in this scope is then a first touch. */
TIDE_INLINE void tide_frame_enter(tide_typed_scope *scope, tide_pool *pool, uint32_t count,
                                  const tide_type *types, const size_t *counts, void **data,
                                  TIDE_PLACE)
{
    if (TIDE_LIKELY(tide_typed_open(scope, pool, count, types))) {
        if (TIDE_LIKELY(tide_frame_fits(scope, count, types, counts, data))) {
#define TIDE_STEP(i) \
    pool->shelves[types[i]].next = scope->next[i] + tide_typed_repeats(types, i) + 1
            TIDE_EACH_TYPED(count, TIDE_STEP);
#undef TIDE_STEP
            return;
        }
    } else {
        tide_typed_open_slow(scope, pool, count, types, TIDE_PASS_PLACE);
    }
    tide_type type_copy[TIDE_TYPED_MAX];
    size_t count_copy[TIDE_TYPED_MAX];
    void *data_copy[TIDE_TYPED_MAX];
#define TIDE_STEP(i)               \
    do {                           \
        type_copy[i] = types[i];   \
        count_copy[i] = counts[i]; \
    } while (0)
    TIDE_EACH_TYPED(count, TIDE_STEP);
#undef TIDE_STEP
    tide_frame_acquire_slow(pool, count, type_copy, count_copy, data_copy, TIDE_PASS_PLACE);
#define TIDE_STEP(i) data[i] = data_copy[i]
    TIDE_EACH_TYPED(count, TIDE_STEP);
#undef TIDE_STEP
}

/* A frame claimed no shelf, so it puts back `next` alone. */
TIDE_INLINE void tide_frame_leave(tide_typed_scope *scope)
{
    tide_pool *pool = scope->pool;
    if (TIDE_UNLIKELY(!tide_typed_undisturbed(scope))) {
        tide_typed_leave_copy(scope);
        return;
    }
#define TIDE_STEP(i)                                              \
    do {                                                          \
        if (tide_typed_repeats(scope->types, i) == 0)             \
            pool->shelves[scope->types[i]].next = scope->next[i]; \
    } while (0)
    TIDE_EACH_TYPED(scope->count, TIDE_STEP);
#undef TIDE_STEP
    pool->tag = scope->outer;
}

TIDE_END_DECLS

#endif

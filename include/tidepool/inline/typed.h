/* SPDX-License-Identifier: MIT */
/* Typed scopes and frames, inlined. Types that the source names need no plan and no log.
 *
 * The pool's word `saved` holds the types that the open level has saved, a bit each: their shelves are
 * put back when it ends, whatever happens until then. The guard asks for all types of the scope at once.
 * Where it fails, tide_typed_prepare first lets the open level save the missing ones, as first acquires
 * would; then it holds, for this scope and for all later ones in that level. So a typed scope need not
 * write to the log. It keeps `next` of each shelf in variables of its own, which may be registers, and
 * its level's `saved` is the set of its types. There are four ways in which it can end:
 *
 *  1. By itself: it puts `next` back from its variables, and `saved` to that of the level around.
 *  2. A longjmp skips it. The level around has saved the shelf, so it puts it back to an older state.
 *     (At the root there is nothing older to put back.)
 *  3. Something else was saved meanwhile (another type, an exchange, a scope left open). Then the log is
 *     longer or the tag is another, and tide_typed_rewind first rewinds the log.
 *  4. A reset abandoned it. Then the tag is another, and tide_typed_rewind says to do nothing.
 *
 * The same holds for its own level, one step further in, so scopes inside it need no log either. */
#ifndef TIDEPOOL_INLINE_TYPED_H
#define TIDEPOOL_INLINE_TYPED_H

#include <tidepool/inline/layout.h>
#include <tidepool/inline/map.h>

TIDE_BEGIN_DECLS

/* Under -fsanitize=undefined GCC does not fold the rows of tests, and then warns of the fields
 * beyond `count`, which nothing reads. */
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

typedef struct tide_typed_scope {
    tide_pool *pool;  /* if refused: one whose guards fail */
    tide_entry *base; /* the log as it was at entry; NULL: see next */
    uint64_t tag;     /* around it one less; of a newer epoch if levels were abandoned in here */
    uint64_t outer_saved; /* what the level around had saved */
    uint32_t count;
    tide_type types[TIDE_TYPED_MAX];
    /* `next` of each shelf at entry. If `base` is NULL, they are in the log instead, and next[0] is
     * the log as it was at entry. So the fast path has one word less to keep. */
    tide_slot *next[TIDE_TYPED_MAX];
} tide_typed_scope;

/* Lets the open level save what it has not saved of these types; sets up shelves. True: the guard
 * may be asked again. False: only tide_typed_enter_slow can open a level in this pool now. */
TIDE_API bool tide_typed_prepare(tide_pool *pool, uint32_t count, const tide_type *types);

/* Ends a disturbed scope: rewinds the log to `base` (if that is NULL, to `log`) and closes levels
 * left open. Returns the tag that the level around has now: the shelves that the scope keeps are to
 * be put back. 0: nothing is left to do. It gets words, not the scope, so that the scope itself can
 * stay in registers. */
TIDE_API uint64_t tide_typed_rewind(tide_pool *pool, tide_entry *base, uint64_t tag,
                                    uint64_t outer_saved, tide_slot *log);

/* Cold twins. They are exported, so code without macros can use them, too. */
TIDE_API TIDE_COLD tide_typed_scope tide_typed_enter_slow(tide_pool *pool, uint32_t count,
                                                          const tide_type *types, TIDE_PLACE);
TIDE_API TIDE_COLD void tide_frame_acquire_slow(tide_pool *pool, uint32_t count,
                                                const tide_type *types, const size_t *counts,
                                                void **data, TIDE_PLACE);

/* The statements once for each i from 0 to count - 1, in which i is a constant. */
#define TIDE_EACH_TYPED(...)                                    \
    do {                                                        \
        TIDE_EACH_4(0, __VA_ARGS__) TIDE_EACH_4(4, __VA_ARGS__) \
    } while (0)
#define TIDE_EACH_4(at, ...) TIDE_EACH_2(at, __VA_ARGS__) TIDE_EACH_2((at) + 2, __VA_ARGS__)
#define TIDE_EACH_2(at, ...) TIDE_EACH_1(at, __VA_ARGS__) TIDE_EACH_1((at) + 1, __VA_ARGS__)
#define TIDE_EACH_1(at, i, count, ...) \
    if ((count) > (at)) {              \
        const uint32_t i = (at);       \
        __VA_ARGS__                    \
    }

/* How many of the types before the i-th are equal to it. */
TIDE_INLINE uint32_t tide_typed_repeats(const tide_type *types, uint32_t i)
{
    uint32_t repeats = 0;
    TIDE_EACH_TYPED(j, i, repeats += types[j] == types[i];);
    return repeats;
}

/* The guard: the pool need not see every call, levels are not too deep, and the open level has saved
 * every shelf. Then the level opens without the log. If it returns false, nothing has changed. */
TIDE_INLINE bool tide_typed_open(tide_typed_scope *scope, tide_pool *pool, uint32_t count,
                                 const tide_type *types)
{
    if (TIDE_UNLIKELY(pool == NULL))
        return false;
    tide_entry *top = pool->log_top;
    uint64_t outer_saved = pool->saved, saved = 0;
    if (TIDE_UNLIKELY(top >= tide_log_open(pool) || (pool->tag & TIDE_TAG_DEEP) != 0))
        return false;
    TIDE_EACH_TYPED(i, count, {
        uint64_t bit = tide_type_bit(pool, types[i]);
        if (TIDE_UNLIKELY((outer_saved & bit) == 0))
            return false;
        saved |= bit;
    });
    scope->pool = pool;
    scope->base = top;
    scope->outer_saved = outer_saved;
    scope->tag = pool->tag + 1;
    scope->count = count;
    TIDE_EACH_TYPED(i, count, {
        scope->types[i] = types[i];
        scope->next[i] = pool->shelves[types[i]].next;
    });
    pool->tag = scope->tag;
    pool->saved = saved;
    return true;
}

/* Opens the level by the cold twin. `copy` are the types once more: cold code, which gets their
 * address, might change those. */
TIDE_INLINE void tide_typed_open_slow(tide_typed_scope *scope, tide_pool *pool, uint32_t count,
                                      const tide_type *types, const tide_type *copy, TIDE_PLACE)
{
    tide_typed_scope slow = tide_typed_enter_slow(pool, count, copy, TIDE_PASS_PLACE);
    scope->pool = slow.pool;
    scope->base = NULL;
    scope->tag = slow.tag;
    scope->outer_saved = slow.outer_saved;
    scope->count = count;
    TIDE_EACH_TYPED(i, count, {
        scope->types[i] = types[i];
        scope->next[i] = NULL;
    });
    scope->next[0] = slow.next[0];
}

/* Opens the level. True: without the log. */
TIDE_INLINE bool tide_typed_enter(tide_typed_scope *scope, tide_pool *pool, uint32_t count,
                                  const tide_type *types, TIDE_PLACE)
{
    while (TIDE_UNLIKELY(!tide_typed_open(scope, pool, count, types))) {
        tide_type copy[TIDE_TYPED_MAX];
        TIDE_EACH_TYPED(i, count, copy[i] = types[i];);
        if (tide_typed_prepare(pool, count, copy))
            continue;
        tide_typed_open_slow(scope, pool, count, types, copy, TIDE_PASS_PLACE);
        return false;
    }
    return true;
}

TIDE_INLINE bool tide_typed_undisturbed(const tide_typed_scope *scope)
{
    return scope->pool->tag == scope->tag && scope->pool->log_top == scope->base;
}

/* Of typed scopes and of frames. If a type is repeated, all its copies of `next` are equal, so any
 * of them may be put back. */
TIDE_INLINE void tide_typed_leave(tide_typed_scope *scope)
{
    tide_pool *pool = scope->pool;
    uint64_t outer = scope->tag - 1;
    if (TIDE_UNLIKELY(!tide_typed_undisturbed(scope))) {
        outer =
            tide_typed_rewind(pool, scope->base, scope->tag, scope->outer_saved, scope->next[0]);
        if (outer == 0)
            return;
    }
    TIDE_EACH_TYPED(i, scope->count, {
        if (tide_typed_repeats(scope->types, i) == 0)
            pool->shelves[scope->types[i]].next = scope->next[i];
    });
    pool->tag = outer;
    pool->saved = scope->outer_saved;
}

/* The guard over all arrays: each slot must be large enough. The i-th array of a type gets the i-th
 * slot from the shelf's `next` on. Slots past the sentinel are zero, so the same test fails if a
 * row is too short. */
TIDE_INLINE bool tide_frame_fits(const tide_typed_scope *scope, uint32_t count,
                                 const tide_type *types, const size_t *counts, void **data)
{
    TIDE_EACH_TYPED(i, count, {
        const tide_slot *slot = scope->next[i] + tide_typed_repeats(types, i);
        if (TIDE_UNLIKELY(counts[i] >= slot->limit))
            return false;
        TIDE_ONE_BY_ONE();
        data[i] = slot->data;
    });
    return true;
}

/* A typed scope, and all arrays of it at once. */
TIDE_INLINE void tide_frame_enter(tide_typed_scope *scope, tide_pool *pool, uint32_t count,
                                  const tide_type *types, const size_t *counts, void **data,
                                  TIDE_PLACE)
{
    if (TIDE_LIKELY(tide_typed_enter(scope, pool, count, types, TIDE_PASS_PLACE)) &&
        TIDE_LIKELY(tide_frame_fits(scope, count, types, counts, data))) {
        TIDE_EACH_TYPED(i, count,
                        pool->shelves[types[i]].next =
                            scope->next[i] + tide_typed_repeats(types, i) + 1;);
        return;
    }
    tide_type type_copy[TIDE_TYPED_MAX];
    size_t count_copy[TIDE_TYPED_MAX];
    void *data_copy[TIDE_TYPED_MAX];
    TIDE_EACH_TYPED(i, count, {
        type_copy[i] = types[i];
        count_copy[i] = counts[i];
    });
    tide_frame_acquire_slow(scope->pool, count, type_copy, count_copy, data_copy, TIDE_PASS_PLACE);
    TIDE_EACH_TYPED(i, count, data[i] = data_copy[i];);
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

TIDE_END_DECLS

#endif

/* SPDX-License-Identifier: MIT */
/* The inlined acquire. tide_acquire_type does the same as an exported function. */
#ifndef TIDEPOOL_INLINE_ACQUIRE_H
#define TIDEPOOL_INLINE_ACQUIRE_H

#include <tidepool/inline/layout.h>

TIDE_BEGIN_DECLS

/* All that the inlined path does not do: first touch, growth, checks and every error. The place is
 * where the source asks for the array, if that is known. */
TIDE_API TIDE_COLD void *tide_acquire_slow(tide_pool *pool, tide_type type, size_t n, TIDE_PLACE);

/* The guard: the open level has saved this shelf, and the next slot is large enough. The sentinel that
 * ends a row has limit 0 and no n is less than 0, so it is never handed out, not even for n = 0. */
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

/* For the macros tide_zeros, tide_ones and tide_fill, with the place in the source that calls. */
TIDE_API void *tide_zeros_at(tide_pool *pool, tide_type type, size_t n, TIDE_PLACE);
TIDE_API void *tide_ones_at(tide_pool *pool, tide_type type, size_t n, TIDE_PLACE);
TIDE_API void *tide_fill_at(tide_pool *pool, tide_type type, size_t n, const void *value,
                            TIDE_PLACE);

TIDE_END_DECLS

#define TIDE_ACQUIRE_BY(acquire, pool, T, ...) \
    TIDE_PASTE(TIDE_ACQUIRE_BY_, TIDE_GIVEN(__VA_ARGS__))(acquire, pool, T, __VA_ARGS__)
#define TIDE_ACQUIRE_BY_0(...) \
    TIDE_MISUSED(GCC error "three arguments are wanted: (pool, type, count)") NULL
#define TIDE_ACQUIRE_BY_1(acquire, pool, T, ...) \
    TIDE_AS(TIDE_BARE(T) *,                      \
            acquire((pool), tide_type_of(T), TIDE_AS(size_t, __VA_ARGS__), TIDE_HERE))

#define TIDE_GROW_BY(grown, pool, T, array, ...) \
    TIDE_PASTE(TIDE_GROW_BY_, TIDE_GIVEN(__VA_ARGS__))(grown, pool, T, array, __VA_ARGS__)
#define TIDE_GROW_BY_0(...) \
    TIDE_MISUSED(GCC error "four arguments are wanted: tide_grow(pool, type, array, count)") NULL
#define TIDE_GROW_BY_1(grown, pool, T, array, ...)                                             \
    __extension__({                                                                            \
        TIDE_BARE(T) *grown = (array);                                                         \
        TIDE_AS(TIDE_BARE(T) *,                                                                \
                tide_grow_type((pool), tide_type_of(T), grown, TIDE_AS(size_t, __VA_ARGS__))); \
    })

#define TIDE_FILL_BY(value, pool, T, n, ...) \
    TIDE_PASTE(TIDE_FILL_BY_, TIDE_GIVEN(__VA_ARGS__))(value, pool, T, n, __VA_ARGS__)
#define TIDE_FILL_BY_0(...) \
    TIDE_MISUSED(GCC error "four arguments are wanted: tide_fill(pool, type, count, value)") NULL
#define TIDE_FILL_BY_1(value, pool, T, n, ...)                                                   \
    __extension__({                                                                              \
        TIDE_BARE(T) value = (__VA_ARGS__);                                                      \
        TIDE_AS(TIDE_BARE(T) *,                                                                  \
                tide_fill_at((pool), tide_type_of(T), TIDE_AS(size_t, n), &(value), TIDE_HERE)); \
    })

#endif

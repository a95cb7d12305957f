/* SPDX-License-Identifier: MIT */
/* Acquires as call sites: for a type, or a type and shape, that is known only at run time.
 *
 * If a site often asks for the same few types (of an array: and ranks), it gets code that tests for these first.
 * In all other ways these calls behave like tide_acquire_type and tide_array_acquire. */
#ifndef TIDEPOOL_CALLSITE_H
#define TIDEPOOL_CALLSITE_H

#include <tidepool/acquire.h>
#include <tidepool/array.h>
#include <tidepool/scope.h>

TIDE_BEGIN_DECLS

/* For sites of tide_site_register_kind: of the kind TIDE_KIND_ACQUIRE here, TIDE_KIND_ARRAY in the
 * second function, which is not checked. */
TIDE_INLINE void *tide_site_acquire(tide_site *site, tide_pool *pool, tide_type type, size_t n)
{
    if (TIDE_UNLIKELY(pool == NULL))
        return tide_acquire_slow(pool, type, n, TIDE_NOWHERE);
    tide_pool_count_use(pool, &site->number);
    const tide_plan *plan = __atomic_load_n(&site->plan, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&plan->acquire, __ATOMIC_RELAXED)(pool, type, n, plan, site);
}

TIDE_INLINE tide_array *tide_site_acquire_array(tide_site *site, tide_pool *pool, tide_type type,
                                                int ndim, const int64_t *shape)
{
    if (TIDE_UNLIKELY(pool == NULL || shape == NULL)) /* so plans need not ask; at most sites   */
        return tide_array_acquire_slow(pool, type, TIDE_ROW_MAJOR, ndim, shape, TIDE_NOWHERE);
    tide_pool_count_use(pool, &site->number);
    const tide_plan *plan = __atomic_load_n(&site->plan, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&plan->array, __ATOMIC_RELAXED)(pool, type, ndim, shape, plan, site);
}

/* TIDE_SCOPE with a name (a string literal) for reports. */
#define TIDE_SCOPE_NAMED(pool, name) TIDE_SCOPE_AT(TIDE_UNIQUE(tide_scope_), pool, name)

/* TIDE_FRAME as a call site of its own, entered by one call, which needs less code where it stands.
 * Where the types are known only at run time, use tide_scope_enter_frame. */
#define TIDE_FRAME_SITE(pool, ...) TIDE_FRAME_SITE_AT(TIDE_UNIQUE(tide_frame_), pool, __VA_ARGS__)
#define TIDE_FRAME_SITE_AT(frame, pool, ...)                                \
    TIDE_FRAME_ARRAYS(frame, __VA_ARGS__)                                   \
    tide_scope frame __attribute__((cleanup(tide_site_leave), unused));     \
    tide_site_enter_frame(&frame, (pool), TIDE_SITE(TIDE_KIND_FRAME, NULL), \
                          TIDE_FRAME_ARRAYS_OF(frame, __VA_ARGS__));        \
    TIDE_FRAME_VARIABLES(frame, __VA_ARGS__)

/* tide_acquire_type(pool, type, n) as a call site of its own. */
#define TIDE_ACQUIRE_SITE(pool, type, ...)                                \
    tide_site_acquire(TIDE_SITE(TIDE_KIND_ACQUIRE, NULL), (pool), (type), \
                      TIDE_AS(size_t, __VA_ARGS__))

/* tide_array_acquire(pool, type, ndim, shape) as a call site of its own. */
#define TIDE_ARRAY_SITE(pool, type, ndim, ...) \
    tide_site_acquire_array(TIDE_SITE(TIDE_KIND_ARRAY, NULL), (pool), (type), (ndim), (__VA_ARGS__))

TIDE_END_DECLS

#endif

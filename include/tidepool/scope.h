/* SPDX-License-Identifier: MIT */
/* Scopes: one checkpoint and one rewind, bound to a C block.
 *
 *   TIDE_SCOPE(pool);                       a call site, registered by itself
 *   TIDE_SCOPE_TYPES(pool, double, int);    types named: inlined, no plan, no site
 *   TIDE_FRAME(pool, (double, r, n), …);    all temporaries at once: r is a double *
 *   TIDE_LOOP(pool, i, count) { … }         a scope per iteration, the checkpoint hoisted
 *
 * The first three are declarations: the scope lasts to the end of the enclosing block, and every
 * way out of it rewinds (return, break, continue, goto; in C++ an exception). A longjmp, or an
 * exception through frames compiled without -fexceptions, skips the rewind; the enclosing scope
 * then does it. Do not jump into a block past one of these declarations. They may stand in
 * headers, macros and templates, nest, recurse, and share a line. The scopes of a pool must nest in
 * time, too: a coroutine that is suspended inside a scope needs a pool of its own.
 *
 * A helper called from a scope may acquire any type, named or not: the first touch saves it.
 * A NULL pool (tide_pool_local() without memory) is accepted: every acquire then gives NULL. */
#ifndef TIDEPOOL_SCOPE_H
#define TIDEPOOL_SCOPE_H

#include <tidepool/acquire.h>
#include <tidepool/inline/loop.h>
#include <tidepool/inline/map.h>
#include <tidepool/inline/typed.h>
#include <tidepool/site.h>

TIDE_BEGIN_DECLS

/* Scopes for FFI. *scope is filled and must stay where it is until it is left. A NULL site is
 * one shared, unnamed site. Leaving it twice, or after an older scope or mark has taken it along,
 * is TIDE_ERROR_STALE and changes nothing. */
TIDE_API tide_status tide_scope_enter(tide_pool *pool, tide_site *site, tide_scope *scope);
TIDE_API tide_status tide_scope_leave(tide_scope *scope);

/* The same for a frame: a scope and all its temporaries, data[i] of counts[i] elements of types[i].
 * If one cannot be had, all are NULL (what was taken before it goes back with the scope) and the
 * status says why; the scope is open all the same. The site is of TIDE_KIND_FRAME. */
TIDE_API tide_status tide_scope_enter_frame(tide_pool *pool, tide_site *site, uint32_t count,
                                            const tide_type *types, const size_t *counts,
                                            void **data, tide_scope *scope);

/* Enters a TIDE_SCOPE or a TIDE_FRAME_SITE that has no pool. No plan is asked, so what a plan runs
 * always belongs to some pool. That tells when nobody is inside a plan (jit/learn/limbo.h). */
TIDE_API TIDE_COLD void tide_scope_without_pool(tide_scope *scope);

TIDE_INLINE void tide_site_enter(tide_scope *scope, tide_pool *pool, tide_site *site)
{
    if (TIDE_UNLIKELY(pool == NULL)) {
        tide_scope_without_pool(scope);
        return;
    }
    const tide_plan *plan = __atomic_load_n(&site->plan, __ATOMIC_ACQUIRE);
    __atomic_load_n(&plan->enter, __ATOMIC_RELAXED)(scope, pool, plan, site);
}

TIDE_INLINE void tide_site_enter_frame(tide_scope *scope, tide_pool *pool, tide_site *site,
                                       uint32_t count, const tide_type *types, const size_t *counts,
                                       void **data)
{
    if (TIDE_UNLIKELY(pool == NULL)) {
        tide_scope_without_pool(scope);
        for (uint32_t i = 0; i < count; i++)
            data[i] = NULL;
        return;
    }
    const tide_plan *plan = __atomic_load_n(&site->plan, __ATOMIC_ACQUIRE);
    scope->plan = plan;
    scope->site = site;
    __atomic_load_n(&plan->frame, __ATOMIC_RELAXED)(scope, pool, count, types, counts, data);
}

TIDE_INLINE void tide_site_leave(tide_scope *scope)
{
    __atomic_load_n(&scope->plan->leave, __ATOMIC_RELAXED)(scope);
}

TIDE_END_DECLS

/* In C, static sites stand in a list of their own in the binary, so that they are known before
 * they are first entered. C++ puts statics of inline functions and templates elsewhere, which a
 * section attribute cannot follow; there a site is listed when it is first entered. */
#ifndef __cplusplus
#define TIDE_SITE_LIST(site)                         \
    static tide_site *const TIDE_PASTE(site, _entry) \
        __attribute__((section("tide_sites"), used, TIDE_RETAIN)) = &(site)
#else
#define TIDE_SITE_LIST(site) static_assert(true, "")
#endif

/* A static site. `given` is a string literal, or NULL. */
#define TIDE_SITE(site, kind, given)                                                         \
    static tide_site site = {                                                                \
        &tide_plans_arriving[kind], (given), {__FILE__, __func__, __LINE__}, 0, kind, NULL}; \
    TIDE_SITE_LIST(site)

#define TIDE_SCOPE_AT(scope, pool, name)                                \
    TIDE_SITE(TIDE_PASTE(scope, _site), TIDE_KIND_SCOPE, name);         \
    tide_scope scope __attribute__((cleanup(tide_site_leave), unused)); \
    tide_site_enter(&scope, (pool), &TIDE_PASTE(scope, _site))

/* A scope of the rest of this block; a call site of its own. */
#define TIDE_SCOPE(pool) TIDE_SCOPE_AT(TIDE_UNIQUE(tide_scope_), pool, NULL)

/* The same, with a name (a string literal) for reports. */
#define TIDE_SCOPE_NAMED(pool, name) TIDE_SCOPE_AT(TIDE_UNIQUE(tide_scope_), pool, name)

/* A scope that saves the named types (1 to 8) on entry, inlined. */
#define TIDE_SCOPE_TYPES(pool, ...) TIDE_TYPED_AT(TIDE_UNIQUE(tide_typed_), pool, __VA_ARGS__)
#define TIDE_TYPED_AT(scope, pool, ...)                                                   \
    const tide_type TIDE_PASTE(scope, _types)[] = {TIDE_MAP(TIDE_TYPED_ID, __VA_ARGS__)}; \
    tide_typed_scope scope __attribute__((cleanup(tide_typed_leave), unused));            \
    tide_typed_enter(&scope, (pool), TIDE_COUNT(__VA_ARGS__), TIDE_PASTE(scope, _types), TIDE_HERE)
#define TIDE_TYPED_ID(i, T) tide_type_of(T),

/* A scope and all its temporaries (1 to 8) under one guard: TIDE_FRAME(pool, (T, name, n), …)
 * declares T *name, of n elements, for each. If one cannot be had, all are NULL (what was taken
 * before it goes back with the scope). */
#define TIDE_FRAME(pool, ...) TIDE_FRAME_AT(TIDE_UNIQUE(tide_frame_), pool, __VA_ARGS__)
#define TIDE_FRAME_AT(frame, pool, ...)                                                   \
    const tide_type TIDE_PASTE(frame, _types)[] = {TIDE_MAP(TIDE_FRAME_ID, __VA_ARGS__)}; \
    const size_t TIDE_PASTE(frame, _counts)[] = {TIDE_MAP(TIDE_FRAME_N, __VA_ARGS__)};    \
    void *TIDE_PASTE(frame, _data)[TIDE_COUNT(__VA_ARGS__)];                              \
    tide_typed_scope frame __attribute__((cleanup(tide_frame_leave), unused));            \
    tide_frame_enter(&frame, (pool), TIDE_COUNT(__VA_ARGS__), TIDE_PASTE(frame, _types),  \
                     TIDE_PASTE(frame, _counts), TIDE_PASTE(frame, _data), TIDE_HERE);    \
    TIDE_MAP_WITH(TIDE_FRAME_VARIABLE, TIDE_PASTE(frame, _data), __VA_ARGS__)             \
    struct tide_frame_needs_a_semicolon_

/* The same as a call site of its own, entered by one call. It needs less code where it stands, and
 * its types may be known at run time only (frames of an FFI: tide_scope_enter_frame). */
#define TIDE_FRAME_SITE(pool, ...) TIDE_FRAME_SITE_AT(TIDE_UNIQUE(tide_frame_), pool, __VA_ARGS__)
#define TIDE_FRAME_SITE_AT(frame, pool, ...)                                                  \
    TIDE_SITE(TIDE_PASTE(frame, _site), TIDE_KIND_FRAME, NULL);                               \
    const tide_type TIDE_PASTE(frame, _types)[] = {TIDE_MAP(TIDE_FRAME_ID, __VA_ARGS__)};     \
    const size_t TIDE_PASTE(frame, _counts)[] = {TIDE_MAP(TIDE_FRAME_N, __VA_ARGS__)};        \
    void *TIDE_PASTE(frame, _data)[TIDE_COUNT(__VA_ARGS__)];                                  \
    tide_scope frame __attribute__((cleanup(tide_site_leave), unused));                       \
    tide_site_enter_frame(&frame, (pool), &TIDE_PASTE(frame, _site), TIDE_COUNT(__VA_ARGS__), \
                          TIDE_PASTE(frame, _types), TIDE_PASTE(frame, _counts),              \
                          TIDE_PASTE(frame, _data));                                          \
    TIDE_MAP_WITH(TIDE_FRAME_VARIABLE, TIDE_PASTE(frame, _data), __VA_ARGS__)                 \
    struct tide_frame_needs_a_semicolon_
#define TIDE_FRAME_ID(i, item)                  TIDE_FRAME_ID_ item
#define TIDE_FRAME_ID_(T, name, n)              tide_type_of(T),
#define TIDE_FRAME_N(i, item)                   TIDE_FRAME_N_ item
#define TIDE_FRAME_N_(T, name, n)               (size_t)(n),
#define TIDE_FRAME_VARIABLE(i, data, item)      TIDE_FRAME_VARIABLE_(data, i, TIDE_FRAME_OPEN item)
#define TIDE_FRAME_OPEN(T, name, n)             T, name
#define TIDE_FRAME_VARIABLE_(data, i, ...)      TIDE_FRAME_VARIABLE__(data, i, __VA_ARGS__)
#define TIDE_FRAME_VARIABLE__(data, i, T, name) T *name = (T *)(data)[i];

/* for (size_t i = 0; i < count; i++), each iteration a scope. What the first iteration saved
 * stays in the log; each later one only puts the shelves back. break, continue, return and goto
 * mean what they mean in a for loop. `count` is evaluated once. A reset (or the rewind of a mark
 * older than the loop) inside it ends the scope, not the loop: what later iterations acquire
 * belongs to the level then open. */
#define TIDE_LOOP(pool, i, count) TIDE_LOOP_AT(TIDE_UNIQUE(tide_loop_), pool, i, count)
#define TIDE_LOOP_AT(loop, pool, i, count)                                             \
    for (tide_loop loop                                                                \
         __attribute__((cleanup(tide_loop_leave))) = tide_loop_enter(pool, TIDE_HERE), \
         *TIDE_PASTE(loop, _once) = &loop;                                             \
         TIDE_PASTE(loop, _once); TIDE_PASTE(loop, _once) = NULL)                      \
        for (size_t i = 0, TIDE_PASTE(loop, _count) = (size_t)(count);                 \
             i < TIDE_PASTE(loop, _count); i++, tide_loop_next(&loop))

/* Every translation unit hands the library its module's list of sites; the library knows each
 * module once, however many units say so. */
#ifndef __cplusplus
extern tide_site *const __start_tide_sites[] __attribute__((weak, visibility("hidden")));
extern tide_site *const __stop_tide_sites[] __attribute__((weak, visibility("hidden")));
#endif

static __attribute__((constructor, unused)) void tide_module_constructor_(void)
{
    static const char anchor = 0;
#ifndef __cplusplus
    tide_module_enter(__start_tide_sites, __stop_tide_sites, &anchor);
#else
    tide_module_enter(NULL, NULL, &anchor);
#endif
}

/* 101: after every destructor of the module's own objects, which may still enter scopes. */
static __attribute__((destructor(101), unused)) void tide_module_destructor_(void)
{
    static const char anchor = 0;
    tide_module_leave(&anchor);
}

#endif

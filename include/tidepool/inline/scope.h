/* SPDX-License-Identifier: MIT */
/* What the scope forms are made of: entering and leaving a site, the static sites of a module. */
#ifndef TIDEPOOL_INLINE_SCOPE_H
#define TIDEPOOL_INLINE_SCOPE_H

#include <tidepool/inline/loop.h>
#include <tidepool/inline/map.h>
#include <tidepool/inline/site.h>
#include <tidepool/inline/type.h>
#include <tidepool/inline/typed.h>

TIDE_BEGIN_DECLS

/* Enters a TIDE_SCOPE whose pool is NULL. It runs no plan. */
TIDE_API TIDE_COLD void tide_scope_without_pool(tide_scope *scope);

TIDE_INLINE void tide_site_enter(tide_scope *scope, tide_pool *pool, tide_site *site)
{
    if (TIDE_UNLIKELY(pool == NULL)) {
        tide_scope_without_pool(scope);
        return;
    }
    pool->uses[__atomic_load_n(&site->number, __ATOMIC_RELAXED)]++; /* the owner alone stores it */
    const tide_plan *plan = __atomic_load_n(&site->plan, __ATOMIC_ACQUIRE);
    __atomic_load_n(&plan->enter, __ATOMIC_RELAXED)(scope, pool, plan, site);
}

TIDE_INLINE void tide_site_leave(tide_scope *scope)
{
    __atomic_load_n(&scope->plan->leave, __ATOMIC_RELAXED)(scope);
}

TIDE_END_DECLS

/* In C, the static sites stand in a list in a section of the binary. In C++, the statics of inline
 * functions and templates lie in other sections, and a section attribute cannot name these; there
 * each site is listed by the initialisation of a static member of a template, which is made with the
 * function. Both are before the program's main, or its dlopen returns. */
#ifndef __cplusplus
#define TIDE_SITE_LIST(site)                         \
    static tide_site *const TIDE_PASTE(site, _entry) \
        __attribute__((section("tide_sites"), used, TIDE_RETAIN)) = &(site)
#else
extern "C++" {
namespace tidepool
{
struct site_entry {
    explicit site_entry(tide_site *site) noexcept
    {
        tide_site *const list[] = {site};
        tide_module_enter(list, list + 1, site);
    }
};
template <tide_site *site> struct site_listed {
    static const site_entry entry;
};
template <tide_site *site> const site_entry site_listed<site>::entry(site);
} /* namespace tidepool */
}
#define TIDE_SITE_LIST(site) static_cast<void>(&tidepool::site_listed<&(site)>::entry)
#endif

/* The address of a site of this place. `given` is its name, a string literal, or NULL. The site is
 * a static variable of a block of its own, and always has the same name: so each unit that includes
 * an inline C++ function gives the same names to the function's sites, in the order in which they
 * stand there, and the linker makes one of each. */
#define TIDE_SITE(kind, given)                                                                   \
    __extension__({                                                                              \
        static tide_site tide_site_ = {                                                          \
            &tide_plans_arriving[kind], (given), {__FILE__, __func__, __LINE__}, 0, kind, NULL}; \
        TIDE_SITE_LIST(tide_site_);                                                              \
        &tide_site_;                                                                             \
    })

/* The constant is there for jumps past it: compilers refuse these, or warn, where there is a value. */
#define TIDE_SCOPE_AT(scope, pool, name)                                \
    const char TIDE_PASTE(scope, _begun) __attribute__((unused)) = 1;   \
    tide_scope scope __attribute__((cleanup(tide_site_leave), unused)); \
    tide_site_enter(&scope, (pool), TIDE_SITE(TIDE_KIND_SCOPE, name))

#define TIDE_SCOPE_AT_1(...) TIDE_SCOPE_AT(TIDE_UNIQUE(tide_scope_), (__VA_ARGS__), NULL)
#define TIDE_SCOPE_AT_0(...) TIDE_MISUSED(GCC error "TIDE_SCOPE(pool) has no pool")

#define TIDE_TYPED_AT(scope, pool, ...)                                                    \
    TIDE_PASTE(TIDE_PASTE(TIDE_TYPED_AT_, TIDE_FEW(__VA_ARGS__)), TIDE_GIVEN(__VA_ARGS__)) \
    (scope, pool, __VA_ARGS__)
#define TIDE_TYPED_AT_01(...) \
    TIDE_MISUSED(GCC error "TIDE_SCOPE_TYPES(pool, type, ...) names 1 to 8 types")
#define TIDE_TYPED_AT_10 TIDE_TYPED_AT_01
#define TIDE_TYPED_AT_11(scope, pool, ...)                                                   \
    const tide_type TIDE_PASTE(scope, _types)[] = {TIDE_MAP(TIDE_TYPED_ID, ~, __VA_ARGS__)}; \
    tide_typed_scope scope __attribute__((cleanup(tide_typed_leave), unused));               \
    tide_typed_enter(&scope, (pool), TIDE_COUNT(__VA_ARGS__), TIDE_PASTE(scope, _types), TIDE_HERE)
#define TIDE_TYPED_ID(i, x, T) tide_type_of(T),

#define TIDE_FRAME_AT(frame, pool, ...)                                                            \
    TIDE_PASTE(TIDE_PASTE(TIDE_FRAME_AT_, TIDE_FEW(__VA_ARGS__)), TIDE_HAS_PARENS(__VA_ARGS__, ~)) \
    (frame, pool, __VA_ARGS__)
#define TIDE_FRAME_AT_00(...) \
    TIDE_MISUSED(GCC error    \
                 "TIDE_FRAME(pool, (type, name, count), ...): 1 to 8 arrays, each in parentheses")
#define TIDE_FRAME_AT_01 TIDE_FRAME_AT_00
#define TIDE_FRAME_AT_10 TIDE_FRAME_AT_00
#define TIDE_FRAME_AT_11(frame, pool, ...)                                                   \
    const tide_type TIDE_PASTE(frame, _types)[] = {TIDE_MAP(TIDE_FRAME_ID, ~, __VA_ARGS__)}; \
    const size_t TIDE_PASTE(frame, _counts)[] = {TIDE_MAP(TIDE_FRAME_N, ~, __VA_ARGS__)};    \
    void *TIDE_PASTE(frame, _data)[TIDE_COUNT(__VA_ARGS__)];                                 \
    tide_typed_scope frame __attribute__((cleanup(tide_typed_leave), unused));               \
    tide_frame_enter(&frame, (pool), TIDE_COUNT(__VA_ARGS__), TIDE_PASTE(frame, _types),     \
                     TIDE_PASTE(frame, _counts), TIDE_PASTE(frame, _data), TIDE_HERE);       \
    TIDE_MAP(TIDE_FRAME_VARIABLE, TIDE_PASTE(frame, _data), __VA_ARGS__) TIDE_SEMICOLON
#define TIDE_FRAME_ID(i, x, item)    TIDE_FRAME_ID_ item
#define TIDE_FRAME_ID_(T, name, ...) tide_type_of(T),
#define TIDE_FRAME_N(i, x, item)     TIDE_FRAME_N_ item
#define TIDE_FRAME_N_(T, name, ...)  TIDE_PASTE(TIDE_FRAME_N_, TIDE_GIVEN(__VA_ARGS__))(__VA_ARGS__)
#define TIDE_FRAME_N_1(...)          TIDE_AS(size_t, __VA_ARGS__),
#define TIDE_FRAME_N_0(...) \
    TIDE_MISUSED(GCC error "an array of TIDE_FRAME has no count: (type, name, count)") 0,
#define TIDE_FRAME_VARIABLE(i, data, item) TIDE_FRAME_VARIABLE_(data, i, TIDE_FRAME_OPEN item)
#define TIDE_FRAME_OPEN(T, name, ...)      T, name
#define TIDE_FRAME_VARIABLE_(data, i, ...) TIDE_FRAME_VARIABLE__(data, i, __VA_ARGS__)
#define TIDE_FRAME_VARIABLE__(data, i, T, name) \
    TIDE_BARE(T) *name = TIDE_AS(__typeof__(name), (data)[i]);

/* How often a loop runs; a count below 0 is none. Evaluated once. */
#define TIDE_LOOP_COUNT(given, ...)             \
    __extension__({                             \
        TIDE_AUTO given = (__VA_ARGS__);        \
        given > 0 ? TIDE_AS(size_t, given) : 0; \
    })

#define TIDE_LOOP_AT(loop, pool, i, ...) \
    TIDE_PASTE(TIDE_LOOP_AT_, TIDE_GIVEN(__VA_ARGS__))(loop, pool, i, __VA_ARGS__)
#define TIDE_LOOP_AT_0(loop, pool, i, ...) \
    TIDE_MISUSED(GCC error "TIDE_LOOP(pool, variable, count) has no count") for (size_t i = 0; i;)
#define TIDE_LOOP_AT_1(loop, pool, i, ...)                                             \
    for (tide_loop loop                                                                \
         __attribute__((cleanup(tide_loop_leave))) = tide_loop_enter(pool, TIDE_HERE), \
         *TIDE_PASTE(loop, _once) = &loop;                                             \
         TIDE_PASTE(loop, _once); TIDE_PASTE(loop, _once) = NULL)                      \
        for (size_t i = 0, TIDE_PASTE(loop, _count) =                                  \
                               TIDE_LOOP_COUNT(TIDE_PASTE(loop, _given), __VA_ARGS__); \
             i < TIDE_PASTE(loop, _count); i++, tide_loop_next(&loop))

/* A module is the program or one shared library. Each of its translation units hands the module's
 * list of sites to the library, which keeps it once. (The library has no sites of its own.) */
#ifndef TIDEPOOL_LIBRARY
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

/* Priority 101 runs after every destructor of the module's own objects, which may still enter
 * scopes. */
static __attribute__((destructor(101), unused)) void tide_module_destructor_(void)
{
    static const char anchor = 0;
    tide_module_leave(&anchor);
}
#endif

#endif

/* SPDX-License-Identifier: MIT */
/* Generic functions: one name, one method for each element type, or for each integer of a range,
 * chosen at run time.
 *
 *   static tide_generic *norm;                          norm = tide_generic_create("norm");
 *   tide_generic_add(norm, TIDE_F64, norm_f64);
 *   TIDE_DISPATCH(norm, array->type, &arguments);       a call site of its own
 *
 * A site that often dispatches on the same few types gets a table of these: they are tested for one by
 * one, the most frequent first, and their methods are called directly. No compiler is needed. The idea
 * is Catwalk.jl's. Any thread, all functions. */
#ifndef TIDEPOOL_GENERIC_H
#define TIDEPOOL_GENERIC_H

#include <tidepool/scope.h>

TIDE_BEGIN_DECLS

/* Where types are told of a dispatch, by tide_site_info and in profiles, key k of a generic
 * function by keys (tide_generic_create_keys) is the number TIDE_KEY_FIRST + k. No type has it. */
#define TIDE_KEY_FIRST TIDE_TYPE_LIMIT

typedef struct tide_generic tide_generic;

/* A new generic function without methods, for good. The name is copied; it need not be unique. NULL with
 * a message when the name is NULL or empty, or memory is short. */
TIDE_API tide_generic *tide_generic_create(const char *name);

/* The same for a function that chooses by one of the keys 0 to count - 1, whatever they mean: a key then
 * stands wherever a call speaks of the function's types, and sites learn which keys come. Any number that
 * is no key meets the method of TIDE_ALL_TYPES. NULL also when count is 0 or above TIDE_TYPE_LIMIT. */
TIDE_API tide_generic *tide_generic_create_keys(const char *name, size_t count);

/* Adds the method of a type, or replaces it. A call that has begun uses the method that it found.
 * With TIDE_ALL_TYPES it is the method of every type that has none of its own. TIDE_ERROR_TYPE for
 * an unknown type or for what is no key of a function by keys, TIDE_ERROR_ARGUMENT for NULLs,
 * TIDE_ERROR_MEMORY; nothing is changed then. */
TIDE_API tide_status tide_generic_add(tide_generic *generic, tide_type type, tide_method *method);

/* The name; it lasts as long as the generic function. "" for NULL. */
TIDE_API const char *tide_generic_name(const tide_generic *generic);

/* The method that a call would use; NULL with a message (TIDE_ERROR_TYPE) when there is none. */
TIDE_API tide_method *tide_generic_find(const tide_generic *generic, tide_type type);

/* TIDE_DISPATCH for a site that was registered: it is of the kind TIDE_KIND_DISPATCH, which is not
 * checked. If there is no method, nothing is called: the message is set, and tide_generic_unmet
 * counts one more. */
TIDE_INLINE void tide_site_dispatch(tide_site *site, tide_generic *generic, tide_type type,
                                    void *args)
{
    const tide_plan *plan = __atomic_load_n(&site->plan, __ATOMIC_ACQUIRE);
    __atomic_load_n(&plan->dispatch, __ATOMIC_RELAXED)(generic, type, args, plan, site);
}

/* How many calls have found no method since the generic function was created. 0 for NULL. */
TIDE_API uint64_t tide_generic_unmet(const tide_generic *generic);

/* TIDE_DISPATCH(generic, type, args): calls the method for the type, as a call site of its own. Use
 * a site with one generic function only: a table is of one. Any other costs more there than without
 * a table, and a site that meets several gets none. */
#define TIDE_DISPATCH(generic, type, ...) \
    tide_site_dispatch(TIDE_SITE(TIDE_KIND_DISPATCH, NULL), (generic), (type), (__VA_ARGS__))

TIDE_END_DECLS

#endif

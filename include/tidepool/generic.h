/* SPDX-License-Identifier: MIT */
/* Generic functions: one name, one method for each element type, or for each integer of a range,
 * chosen at run time.
 *
 *   static tide_generic *norm;                          norm = tide_generic_create("norm");
 *   tide_generic_add(norm, TIDE_F64, norm_f64);
 *   TIDE_DISPATCH(norm, array->type, &arguments);       a call site of its own
 *
 * If a site often dispatches on the same few types, it gets a table of these: they are tested for
 * one by one, the most frequent first, and their methods are called directly. No compiler is needed. Methods of other types are looked up. The idea
 * is Catwalk.jl's. */
#ifndef TIDEPOOL_GENERIC_H
#define TIDEPOOL_GENERIC_H

#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/type.h>
#ifdef TIDE_LANGUAGE_OK

TIDE_BEGIN_DECLS

/* Where types are told of a dispatch, by tide_site_info and in profiles, key k of a generic
 * function by keys (tide_generic_create_keys) is the number TIDE_KEY_FIRST + k. No type has it. */
#define TIDE_KEY_FIRST TIDE_TYPE_LIMIT

typedef struct tide_generic tide_generic;

/* A new generic function without methods. It lives until the process ends. The name is copied; it
 * need not be unique. NULL with a message when the name is NULL or empty, or memory is short. Any
 * thread, as all functions of this header. */
TIDE_API tide_generic *tide_generic_create(const char *name);

/* The same for a function that chooses by integer: by one of the keys 0 to count - 1, whatever they
 * mean to the program. At each call that speaks of the function's types, a key stands in their
 * place, also at TIDE_DISPATCH, and sites learn which keys come as they learn types. Any number
 * that is no key meets the method of TIDE_ALL_TYPES. Pages of 256 methods are made as keys get
 * methods. NULL with a message also when count is 0 or above TIDE_TYPE_LIMIT. */
TIDE_API tide_generic *tide_generic_create_keys(const char *name, size_t count);

/* Adds the method of a type, or replaces it. A call that has begun uses the method that it found.
 * With TIDE_ALL_TYPES it is the method of every type that has none of its own. TIDE_ERROR_TYPE for
 * an unknown type or for what is no key of a function by keys, TIDE_ERROR_ARGUMENT for NULLs,
 * TIDE_ERROR_MEMORY; nothing is changed then. */
TIDE_API tide_status tide_generic_add(tide_generic *generic, tide_type type, tide_method *method);

/* A method for many values of one type: `args` has `count` of them, at least one; the list lasts
 * until the method returns. */
typedef void tide_method_many(void *const *args, size_t count);

/* Adds or replaces the method that tide_dispatch_each calls for many values of a type;
 * TIDE_DISPATCH never calls it. With TIDE_ALL_TYPES it is that of every type that has no method of
 * its own, of either sort. Errors as tide_generic_add. */
TIDE_API tide_status tide_generic_add_many(tide_generic *generic, tide_type type,
                                           tide_method_many *method);

/* Calls the methods for `count` values: value i has types[i] and args[i]. Values of one type are
 * called in their order; values of different types in any order, since they are collected by type
 * first, 64 at a time. Where types come at random that is two to four times as fast as
 * TIDE_DISPATCH for each, whose calls the processor cannot foresee; most with methods for many
 * values. Up to 32 types whose numbers differ in the low five bits are collected apart. Both lists
 * must stay as they are meanwhile. It needs 17 KiB of the stack and takes no lock. A method may
 * call it again.
 *
 * Returns how many values met a method. For each other value tide_generic_unmet counts one more,
 * and there is a message. 0 with a message (TIDE_ERROR_ARGUMENT) for NULLs. */
TIDE_API size_t tide_dispatch_each(tide_generic *generic, const tide_type *types, void *const *args,
                                   size_t count);

/* The name; it lasts as long as the generic function. "" for NULL. */
TIDE_API const char *tide_generic_name(const tide_generic *generic);

/* The method that a call would use; NULL with a message (TIDE_ERROR_TYPE) when there is none. */
TIDE_API tide_method *tide_generic_find(const tide_generic *generic, tide_type type);

/* For TIDE_DISPATCH. The site must be of the kind TIDE_KIND_DISPATCH; this is not checked. */
TIDE_INLINE void tide_site_dispatch_inline(tide_site *site, tide_generic *generic, tide_type type,
                                           void *args)
{
    const tide_plan *plan = __atomic_load_n(&site->plan, __ATOMIC_ACQUIRE);
    __atomic_load_n(&plan->dispatch, __ATOMIC_RELAXED)(generic, type, args, plan, site);
}

/* Calls the generic function's method for the type with `args`, as the macro TIDE_DISPATCH does. If
 * there is no method, nothing is called: the message is set, and tide_generic_unmet counts one
 * more. */
TIDE_API void tide_site_dispatch(tide_site *site, tide_generic *generic, tide_type type,
                                 void *args);

/* How many calls have found no method since the generic function was created. 0 for NULL. */
TIDE_API uint64_t tide_generic_unmet(const tide_generic *generic);

/* TIDE_DISPATCH(generic, type, args): calls the method for the type, as a call site of its own. Use
 * a site with one generic function only: a table is of one, and any other goes the slower general
 * path. */
#define TIDE_DISPATCH(generic, type, ...) \
    tide_site_dispatch_inline(TIDE_SITE(TIDE_KIND_DISPATCH, NULL), (generic), (type), (__VA_ARGS__))

TIDE_END_DECLS

#endif
#endif

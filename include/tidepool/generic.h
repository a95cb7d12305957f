/* SPDX-License-Identifier: MIT */
/* Generic functions: one name, one method for each element type, chosen at run time.
 *
 *   static tide_generic *norm;                          norm = tide_generic_create("norm");
 *   tide_generic_add(norm, TIDE_F64, norm_f64);
 *   TIDE_DISPATCH(norm, array->type, &arguments);       a call site of its own
 *
 * If a site often dispatches on the same few types, it gets code that tests for these, the most
 * frequent first, and calls their methods directly. Methods of other types are looked up. The idea
 * is Catwalk.jl's. */
#ifndef TIDEPOOL_GENERIC_H
#define TIDEPOOL_GENERIC_H

#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/type.h>

TIDE_BEGIN_DECLS

typedef struct tide_generic tide_generic;

/* A new generic function without methods. It lives until the process ends. The name is copied; it
 * need not be unique. NULL with a message when the name is NULL or empty, or memory is short. Any
 * thread, as all functions of this header. */
TIDE_API tide_generic *tide_generic_create(const char *name);

/* Adds the method of a type, or replaces it. A call that has begun uses the method that it found.
 * With TIDE_ALL_TYPES it is the method of every type that has none of its own. TIDE_ERROR_TYPE for
 * an unknown type, TIDE_ERROR_ARGUMENT for NULLs, TIDE_ERROR_MEMORY; nothing is changed then. */
TIDE_API tide_status tide_generic_add(tide_generic *generic, tide_type type, tide_method *method);

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
 * a site with one generic function only: compiled code is made for one, and any other goes the
 * slower general path. */
#define TIDE_DISPATCH(generic, type, args) \
    TIDE_DISPATCH_AT(TIDE_UNIQUE(tide_dispatch_), generic, type, args)
#define TIDE_DISPATCH_AT(site, generic, type, args)                  \
    __extension__({                                                  \
        TIDE_SITE(site, TIDE_KIND_DISPATCH, NULL);                   \
        tide_site_dispatch_inline(&site, (generic), (type), (args)); \
    })

TIDE_END_DECLS

#endif

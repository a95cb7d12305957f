/* SPDX-License-Identifier: MIT */
/* Generic functions: one name, one method for each element type, chosen at run time.
 *
 *   static tide_generic *norm;                          norm = tide_generic_create("norm");
 *   tide_generic_add(norm, TIDE_F64, norm_f64);
 *   TIDE_DISPATCH(norm, array->type, &arguments);       a call site of its own
 *
 * A site that is seen to dispatch on the same few types is given code that tests for those in order
 * of frequency and calls their methods directly. Others are looked up. The idea is Catwalk.jl's. */
#ifndef TIDEPOOL_GENERIC_H
#define TIDEPOOL_GENERIC_H

#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/type.h>

TIDE_BEGIN_DECLS

typedef struct tide_generic tide_generic;

/* A generic function without methods. The name is copied; it need not be unique. NULL with a
 * message when it is NULL or empty, or memory is short. It lives until the process ends. Any
 * thread. */
TIDE_API tide_generic *tide_generic_create(const char *name);

/* Adds the method of a type, or replaces it; a call that has begun uses the one it found. With
 * TIDE_ALL_TYPES: of every type that has none of its own. TIDE_ERROR_TYPE for an unknown type;
 * TIDE_ERROR_ARGUMENT for NULLs; TIDE_ERROR_MEMORY; nothing changed. Any thread. */
TIDE_API tide_status tide_generic_add(tide_generic *generic, tide_type type, tide_method *method);

TIDE_API const char *tide_generic_name(const tide_generic *generic);

/* The method a call would use; NULL with a message (TIDE_ERROR_TYPE) when there is none. */
TIDE_API tide_method *tide_generic_find(const tide_generic *generic, tide_type type);

TIDE_INLINE void tide_site_dispatch_inline(tide_site *site, tide_generic *generic, tide_type type,
                                           void *args)
{
    const tide_plan *plan = __atomic_load_n(&site->plan, __ATOMIC_ACQUIRE);
    __atomic_load_n(&plan->dispatch, __ATOMIC_RELAXED)(generic, type, args, plan, site);
}

/* Calls the generic function's method for the type with `args`. Without a method nothing is called:
 * the message is set, and the generic's count of such calls goes up. The exported twin of the
 * macro. */
TIDE_API void tide_site_dispatch(tide_site *site, tide_generic *generic, tide_type type,
                                 void *args);

/* Calls that found no method, since it was created. */
TIDE_API uint64_t tide_generic_unmet(const tide_generic *generic);

/* A site should always be used with the same generic function: its compiled code is for one, and
 * tests which it is given. */
#define TIDE_DISPATCH(generic, type, args) \
    TIDE_DISPATCH_AT(TIDE_UNIQUE(tide_dispatch_), generic, type, args)
#define TIDE_DISPATCH_AT(site, generic, type, args)                  \
    __extension__({                                                  \
        TIDE_SITE(site, TIDE_KIND_DISPATCH, NULL);                   \
        tide_site_dispatch_inline(&site, (generic), (type), (args)); \
    })

TIDE_END_DECLS

#endif

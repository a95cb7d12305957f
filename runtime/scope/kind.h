/* SPDX-License-Identifier: MIT */
/* The kinds of sites, one row each. Whatever differs by kind alone is made from these rows: names,
 * general plans, the plans that static sites start with (kind.c). */
#ifndef TIDEPOOL_RUNTIME_SCOPE_KIND_H
#define TIDEPOOL_RUNTIME_SCOPE_KIND_H

#include <tidepool/site.h>

/* In the order of tide_kind: the kind; its name; the member of a plan that a use of the site calls;
 * the general path of that, and of leaving, if a use opens a level. */
#define TIDE_KINDS(X)                                                      \
    X(SCOPE, "scope", enter, tide_plan_enter_full, tide_plan_leave_full)   \
    X(FRAME, "frame", frame, tide_general_frame, tide_general_frame_leave) \
    X(ACQUIRE, "acquire", acquire, tide_general_acquire, NULL)             \
    X(ARRAY, "array", array, tide_general_array, NULL)                     \
    X(DISPATCH, "dispatch", dispatch, tide_general_dispatch, NULL)

/* Can sites of this kind have plans of tier table? A scope's lists the shelves to save, a dispatch's
 * the methods to jump to. */
static inline bool tide_kind_has_tables(tide_kind kind)
{
    return kind == TIDE_KIND_SCOPE || kind == TIDE_KIND_DISPATCH;
}

/* Gives a plan of such a kind, whose types are filled in, the code of a table. False: a type has no
 * method of its own. */
bool tide_kind_use_table(tide_plan *plan, const struct tide_generic *generic);

/* Is code of their own made for sites of this kind? For a dispatch it would be that of its table. */
static inline bool tide_kind_compiles(tide_kind kind)
{
    return kind != TIDE_KIND_DISPATCH;
}

/* Does a use of such a site open a level, which a second function leaves? */
static inline bool tide_kind_opens_level(tide_kind kind)
{
    return kind == TIDE_KIND_SCOPE || kind == TIDE_KIND_FRAME;
}

/* Says that the site is of another kind. */
TIDE_COLD tide_status tide_kind_refuse(const tide_site *site, tide_kind kind, const char *call);

/* TIDE_ERROR_ARGUMENT with a message unless the site is of this kind. */
static inline tide_status tide_kind_expect(const tide_site *site, tide_kind kind, const char *call)
{
    return TIDE_LIKELY(site->kind == kind) ? TIDE_OK : tide_kind_refuse(site, kind, call);
}

#endif

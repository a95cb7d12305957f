/* SPDX-License-Identifier: MIT */
/* The general path of acquires, arrays and dispatches as sites, and the table of general paths that compiled
 * code is handed. */
#include "runtime/scope/general.h"

#include <tidepool/callsite.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/dispatch/generic.h"
#include "runtime/pool/log.h"
#include "runtime/pool/row.h"
#include "runtime/scope/compiled.h"
#include "runtime/scope/plan.h"

/* ---- acquires --------------------------------------------------------------------------- */

void *tide_general_acquire(tide_pool *pool, tide_type type, size_t n, const tide_plan *plan,
                           tide_site *site)
{
    tide_assert(plan != NULL && site != NULL);
    tide_place place = site->place;
    tide_plan_missed(plan);
    return type < TIDE_TYPE_LIMIT
               ? tide_acquire_inline(pool, type, n, place.file, place.function, place.line)
               : tide_acquire_slow(pool, type, n, place.file, place.function, place.line);
}

void *tide_general_acquire_slow(tide_pool *pool, tide_type type, size_t n, const tide_plan *plan,
                                tide_site *site)
{
    (void)plan;
    tide_assert(type < TIDE_TYPE_LIMIT); /* the code's guard has found it among its types */
    tide_place place = site->place;
    return tide_acquire_touch(pool, type, n, place.file, place.function, place.line);
}

tide_array *tide_general_array(tide_pool *pool, tide_type type, int ndim, const int64_t *shape,
                               const tide_plan *plan, tide_site *site)
{
    tide_assert(plan != NULL && site != NULL);
    tide_place place = site->place;
    tide_plan_missed(plan);
    return tide_array_acquire_inline(pool, type, TIDE_ROW_MAJOR, ndim, shape, place.file,
                                     place.function, place.line);
}

tide_array *tide_general_array_slow(tide_pool *pool, tide_type type, int ndim, const int64_t *shape,
                                    const tide_plan *plan, tide_site *site)
{
    (void)plan;
    tide_assert(type < TIDE_TYPE_LIMIT && ndim >= 0 && ndim <= TIDE_NDIM_MAX);
    tide_place place = site->place;
    return tide_array_acquire_slow(pool, type, TIDE_ROW_MAJOR, ndim, shape, place.file,
                                   place.function, place.line);
}

/* Returns the site, or NULL with a message unless it is of this kind. */
static tide_site *general_site_of_kind(tide_site *site, tide_kind kind, const char *call)
{
    tide_assert((unsigned)kind < TIDE_KIND_COUNT);
    if (site == NULL)
        tide_fail(TIDE_ERROR_ARGUMENT, call, "the site is NULL");
    else if (site->kind != kind)
        tide_fail(TIDE_ERROR_ARGUMENT, call, "site '%s' is of kind %s, not %s",
                  site->name != NULL ? site->name : "?", tide_kind_name(site->kind),
                  tide_kind_name(kind));
    return site != NULL && site->kind == kind ? site : NULL;
}

void *tide_site_acquire(tide_site *site, tide_pool *pool, tide_type type, size_t n)
{
    site = general_site_of_kind(site, TIDE_KIND_ACQUIRE, "tide_site_acquire");
    return site != NULL ? tide_site_acquire_inline(site, pool, type, n) : NULL;
}

tide_array *tide_site_acquire_array(tide_site *site, tide_pool *pool, tide_type type, int ndim,
                                    const int64_t *shape)
{
    site = general_site_of_kind(site, TIDE_KIND_ARRAY, "tide_site_acquire_array");
    return site != NULL ? tide_site_array_inline(site, pool, type, ndim, shape) : NULL;
}

/* ---- dispatches -------------------------------------------------------------------------- */

void tide_site_dispatch(tide_site *site, tide_generic *generic, tide_type type, void *args)
{
    if (site == NULL || site->kind != TIDE_KIND_DISPATCH) {
        tide_fail(TIDE_ERROR_ARGUMENT, "tide_site_dispatch", "the site is %s",
                  site == NULL ? "NULL" : "of another kind");
        return;
    }
    tide_site_dispatch_inline(site, generic, type, args);
}

/* ---- the table handed to compiled code -------------------------------------------------- */

_Static_assert(sizeof(tide_runtime) == 8 * sizeof(tide_enter_function *),
               "every member of the table below is a function, and each is filled in");

const tide_runtime tide_runtime_general = {
    .enter = tide_plan_enter_table,
    .leave = tide_plan_leave_table,
    .frame = tide_general_frame,
    .frame_leave = tide_general_frame_leave,
    .acquire = tide_general_acquire,
    .acquire_slow = tide_general_acquire_slow,
    .array = tide_general_array,
    .array_slow = tide_general_array_slow,
};

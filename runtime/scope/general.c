/* SPDX-License-Identifier: MIT */
/* The general path of acquires, arrays and dispatches as sites, and the table of general paths that compiled
 * code is handed. */
#include "runtime/scope/general.h"

#include <tidepool/callsite.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/dispatch/generic.h"
#include "runtime/pool/level.h"
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

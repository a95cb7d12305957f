/* SPDX-License-Identifier: MIT */
/* The code of the plans that static sites start with: it lists the site, has the site's first real
 * plan published, and does by that plan what was asked. */
#include <tidepool/callsite.h>
#include <tidepool/generic.h>

#include "runtime/base/assert.h"
#include "runtime/base/ring.h"
#include "runtime/scope/kind.h"
#include "runtime/scope/plan.h"
#include "runtime/scope/site.h"

/* Without memory to list it, a site works by the general plan and arrives again at its next use. */
static const tide_plan *arrive_first_plan(tide_site *site)
{
    tide_assert(site != NULL && (unsigned)site->kind < TIDE_KIND_COUNT);
    tide_attach();
    tide_site_arrive(site);
    const tide_plan *plan = __atomic_load_n(&site->plan, __ATOMIC_ACQUIRE);
    tide_assert(plan != NULL && plan->kind == site->kind);
    return plan != &tide_plans_arriving[site->kind] ? plan : &tide_plans_general[site->kind];
}

void tide_arrive_enter(tide_scope *scope, tide_pool *pool, const tide_plan *plan, tide_site *site)
{
    plan = arrive_first_plan(site);
    __atomic_load_n(&plan->enter, __ATOMIC_RELAXED)(scope, pool, plan, site);
}

void tide_arrive_frame(tide_scope *scope, tide_pool *pool, uint32_t count, const tide_type *types,
                       const size_t *counts, void **data)
{
    scope->plan = arrive_first_plan(scope->site);
    __atomic_load_n(&scope->plan->frame, __ATOMIC_RELAXED)(scope, pool, count, types, counts, data);
}

void *tide_arrive_acquire(tide_pool *pool, tide_type type, size_t n, const tide_plan *plan,
                          tide_site *site)
{
    plan = arrive_first_plan(site);
    return __atomic_load_n(&plan->acquire, __ATOMIC_RELAXED)(pool, type, n, plan, site);
}

tide_array *tide_arrive_array(tide_pool *pool, tide_type type, int ndim, const int64_t *shape,
                              const tide_plan *plan, tide_site *site)
{
    plan = arrive_first_plan(site);
    return __atomic_load_n(&plan->array, __ATOMIC_RELAXED)(pool, type, ndim, shape, plan, site);
}

void tide_arrive_dispatch(tide_generic *generic, tide_type type, void *args, const tide_plan *plan,
                          tide_site *site)
{
    plan = arrive_first_plan(site);
    __atomic_load_n(&plan->dispatch, __ATOMIC_RELAXED)(generic, type, args, plan, site);
}

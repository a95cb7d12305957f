/* SPDX-License-Identifier: MIT */
/* The plans that static sites start with: each lists its site, has its first real plan published,
 * and does by that what was asked of it. */
#include <tidepool/callsite.h>
#include <tidepool/generic.h>

#include "runtime/scope/plan.h"
#include "runtime/base/hooks.h"
#include "runtime/scope/site.h"

/* A site that cannot be listed for want of memory works by the general plan and arrives again. */
static const tide_plan *arrive_first_plan(tide_site *site)
{
    tide_attach();
    tide_site_arrive(site);
    const tide_plan *plan = __atomic_load_n(&site->plan, __ATOMIC_ACQUIRE);
    return plan != &tide_plans_arriving[site->kind] ? plan : &tide_plans_general[site->kind];
}

static void arrive_enter(tide_scope *scope, tide_pool *pool, const tide_plan *plan, tide_site *site)
{
    plan = arrive_first_plan(site);
    __atomic_load_n(&plan->enter, __ATOMIC_RELAXED)(scope, pool, plan, site);
}

static void arrive_frame(tide_scope *scope, tide_pool *pool, uint32_t count, const tide_type *types,
                  const size_t *counts, void **data)
{
    scope->plan = arrive_first_plan(scope->site);
    __atomic_load_n(&scope->plan->frame, __ATOMIC_RELAXED)(scope, pool, count, types, counts, data);
}

static void *arrive_acquire(tide_pool *pool, tide_type type, size_t n, const tide_plan *plan,
                     tide_site *site)
{
    plan = arrive_first_plan(site);
    return __atomic_load_n(&plan->acquire, __ATOMIC_RELAXED)(pool, type, n, plan, site);
}

static tide_array *arrive_array(tide_pool *pool, tide_type type, int ndim, const int64_t *shape,
                         const tide_plan *plan, tide_site *site)
{
    plan = arrive_first_plan(site);
    return __atomic_load_n(&plan->array, __ATOMIC_RELAXED)(pool, type, ndim, shape, plan, site);
}

static void arrive_dispatch(tide_generic *generic, tide_type type, void *args, const tide_plan *plan,
                     tide_site *site)
{
    plan = arrive_first_plan(site);
    __atomic_load_n(&plan->dispatch, __ATOMIC_RELAXED)(generic, type, args, plan, site);
}

/* No scope is ever inside one: entering goes through to a real plan. */
const tide_plan tide_plans_arriving[TIDE_KIND_COUNT] = {
    [TIDE_KIND_SCOPE] = {.enter = arrive_enter, .kind = TIDE_KIND_SCOPE},
    [TIDE_KIND_FRAME] = {.frame = arrive_frame, .kind = TIDE_KIND_FRAME},
    [TIDE_KIND_ACQUIRE] = {.acquire = arrive_acquire, .kind = TIDE_KIND_ACQUIRE},
    [TIDE_KIND_ARRAY] = {.array = arrive_array, .kind = TIDE_KIND_ARRAY},
    [TIDE_KIND_DISPATCH] = {.dispatch = arrive_dispatch, .kind = TIDE_KIND_DISPATCH},
};

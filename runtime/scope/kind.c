/* SPDX-License-Identifier: MIT */
/* What differs by a site's kind alone: its name, its general plan, and the plan that a static site
 * starts with. That one lists the site, has its first real plan published, and does by that what was
 * asked. */
#include <tidepool/generic.h>

#include "runtime/base/assert.h"
#include "runtime/base/ring.h"
#include "runtime/dispatch/generic.h"
#include "runtime/scope/plan.h"
#include "runtime/scope/site.h"

_Static_assert(TIDE_TIER_FULL == 0, "plans that name no tier are of the full tier");
_Static_assert(sizeof(tide_enter_function *) == sizeof(tide_dispatch_function *),
               "whoever reads a plan's code as `enter` reads it of every kind");

const tide_plan tide_plans_general[TIDE_KIND_COUNT] = {
    [TIDE_KIND_SCOPE] = {.enter = tide_plan_enter_full,
                         .leave = tide_plan_leave_full,
                         .kind = TIDE_KIND_SCOPE},
    [TIDE_KIND_DISPATCH] = {.dispatch = tide_general_dispatch, .kind = TIDE_KIND_DISPATCH},
};

/* Without memory to list it, a site works by the general plan and arrives again at its next use. */
static const tide_plan *kind_first_plan(tide_site *site)
{
    tide_assert(site != NULL && (unsigned)site->kind < TIDE_KIND_COUNT);
    tide_attach();
    tide_site_arrive(site);
    const tide_plan *plan = __atomic_load_n(&site->plan, __ATOMIC_ACQUIRE);
    tide_assert(plan != NULL && plan->kind == site->kind);
    return plan != &tide_plans_arriving[site->kind] ? plan : &tide_plans_general[site->kind];
}

static void kind_arrive_enter(tide_scope *scope, tide_pool *pool, const tide_plan *plan,
                              tide_site *site)
{
    plan = kind_first_plan(site);
    __atomic_load_n(&plan->enter, __ATOMIC_RELAXED)(scope, pool, plan, site);
}

static void kind_arrive_dispatch(tide_generic *generic, tide_type type, void *args,
                                 const tide_plan *plan, tide_site *site)
{
    plan = kind_first_plan(site);
    __atomic_load_n(&plan->dispatch, __ATOMIC_RELAXED)(generic, type, args, plan, site);
}

/* No scope is ever inside one of these, so they have no way to leave: entering goes through to a
 * real plan. */
const tide_plan tide_plans_arriving[TIDE_KIND_COUNT] = {
    [TIDE_KIND_SCOPE] = {.enter = kind_arrive_enter, .kind = TIDE_KIND_SCOPE},
    [TIDE_KIND_DISPATCH] = {.dispatch = kind_arrive_dispatch, .kind = TIDE_KIND_DISPATCH},
};

const char *tide_kind_name(tide_kind kind)
{
    static const char *const names[] = {"scope", "dispatch"};
    _Static_assert(sizeof names / sizeof *names == TIDE_KIND_COUNT, "each kind has a name");
    return (unsigned)kind < TIDE_KIND_COUNT ? names[kind] : "unknown";
}

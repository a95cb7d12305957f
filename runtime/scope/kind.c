/* SPDX-License-Identifier: MIT */
/* What differs by a site's kind alone, made from the rows of kind.h; and the plans that static sites
 * start with: such a one lists the site, has its first real plan published, and does by that what was
 * asked. */
#include "runtime/scope/kind.h"

#include <tidepool/callsite.h>
#include <tidepool/generic.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/ring.h"
#include "runtime/dispatch/generic.h"
#include "runtime/scope/general.h"
#include "runtime/scope/plan.h"
#include "runtime/scope/site.h"

/* ---- the rows ----------------------------------------------------------------------------- */

#define KIND_ROW(K, ...) KIND_ROW_##K,
enum { TIDE_KINDS(KIND_ROW) KIND_ROWS };
_Static_assert(KIND_ROWS == (int)TIDE_KIND_COUNT, "each kind has one row");

#define KIND_STANDS(K, ...) (int)KIND_ROW_##K == (int)TIDE_KIND_##K &&
_Static_assert(TIDE_KINDS(KIND_STANDS) true, "the rows stand in the order of the kinds");

/* ---- plans -------------------------------------------------------------------------------- */

#define KIND_GENERAL(K, text, member, general, ending) \
    [TIDE_KIND_##K] = {.member = general, .leave = ending, .kind = TIDE_KIND_##K},
const tide_plan tide_plans_general[TIDE_KIND_COUNT] = {TIDE_KINDS(KIND_GENERAL)};

/* ---- arriving: static sites start with these plans ------------------------------------------ */

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

static void kind_arrive_frame(tide_scope *scope, tide_pool *pool, uint32_t count,
                              const tide_type *types, const size_t *counts, void **data)
{
    scope->plan = kind_first_plan(scope->site);
    __atomic_load_n(&scope->plan->frame, __ATOMIC_RELAXED)(scope, pool, count, types, counts, data);
}

static void *kind_arrive_acquire(tide_pool *pool, tide_type type, size_t n, const tide_plan *plan,
                                 tide_site *site)
{
    plan = kind_first_plan(site);
    return __atomic_load_n(&plan->acquire, __ATOMIC_RELAXED)(pool, type, n, plan, site);
}

static tide_array *kind_arrive_array(tide_pool *pool, tide_type type, int ndim,
                                     const int64_t *shape, const tide_plan *plan, tide_site *site)
{
    plan = kind_first_plan(site);
    return __atomic_load_n(&plan->array, __ATOMIC_RELAXED)(pool, type, ndim, shape, plan, site);
}

static void kind_arrive_dispatch(tide_generic *generic, tide_type type, void *args,
                                 const tide_plan *plan, tide_site *site)
{
    plan = kind_first_plan(site);
    __atomic_load_n(&plan->dispatch, __ATOMIC_RELAXED)(generic, type, args, plan, site);
}

/* No scope is ever inside one of these, so they have no way to leave: entering goes through to a
 * real plan. */
#define KIND_ARRIVING(K, text, member, general, ending) \
    [TIDE_KIND_##K] = {.member = kind_arrive_##member, .kind = TIDE_KIND_##K},
const tide_plan tide_plans_arriving[TIDE_KIND_COUNT] = {TIDE_KINDS(KIND_ARRIVING)};

_Static_assert(TIDE_TIER_FULL == 0, "plans that name no tier are of the full tier");
_Static_assert(sizeof(tide_enter_function *) == sizeof(tide_dispatch_function *) &&
                   offsetof(tide_plan, enter) == offsetof(tide_plan, dispatch),
               "whoever stores a plan's code as `enter` stores it for every kind");

bool tide_kind_use_table(tide_plan *plan, const struct tide_generic *generic)
{
    tide_assert(tide_kind_has_tables(plan->kind));
    if (plan->kind == TIDE_KIND_DISPATCH)
        return tide_dispatch_use_table(plan, generic);
    tide_plan_use_table(plan);
    return true;
}

/* ---- words -------------------------------------------------------------------------------- */

#define KIND_NAME(K, text, ...) [TIDE_KIND_##K] = text,
static const char *const kind_names[TIDE_KIND_COUNT] = {TIDE_KINDS(KIND_NAME)};

const char *tide_kind_name(tide_kind kind)
{
    return (unsigned)kind < TIDE_KIND_COUNT ? kind_names[kind] : "unknown";
}

tide_status tide_kind_refuse(const tide_site *site, tide_kind kind, const char *call)
{
    tide_assert(site != NULL && (unsigned)kind < TIDE_KIND_COUNT && site->kind != kind);
    return tide_fail(TIDE_ERROR_ARGUMENT, call, "the site is of kind %s, not %s",
                     tide_kind_name(site->kind), tide_kind_name(kind));
}

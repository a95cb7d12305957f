/* SPDX-License-Identifier: MIT */
/* Scopes that are entered and left by functions (FFI): the same plans, and a mark that tells
 * whether the scope is still open. */
#include <tidepool/dynamic.h>
#include <tidepool/scope.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/pool/level.h"
#include "runtime/scope/mark.h"
#include "runtime/scope/nesting.h"
#include "runtime/scope/plan.h"

/* Of all scopes that are entered without a site. */
static tide_site scope_shared_site = {.plan = &tide_plans_arriving[TIDE_KIND_SCOPE],
                                      .name = "(scope without a site)"};

tide_status tide_scope_leave_unmarked(tide_scope *scope, const char *call)
{
    tide_log_refuse(scope->pool, call);
    tide_site_leave(scope);
    scope->pool = NULL;
    return TIDE_ERROR_LIMIT;
}

tide_status tide_scope_enter(tide_pool *pool, tide_site *site, tide_scope *scope)
{
    const char *call = "tide_scope_enter";
    if (scope == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the scope is NULL");
    site = site != NULL ? site : &scope_shared_site;
    scope->pool = NULL;
    if (TIDE_UNLIKELY(site->kind != TIDE_KIND_SCOPE))
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the site is of kind %s, not scope",
                         tide_kind_name(site->kind));
    if (!tide_level_ready(pool))
        TIDE_FORWARD(tide_level_admit(pool, call));
    tide_site_enter(scope, pool, site);
    return tide_scope_mark(scope, call);
}

/* What stands above the mark moves down. */
static void scope_move_down(tide_pool *pool, tide_entry *mark)
{
    for (tide_entry *entry = mark; entry + 1 < pool->log_top; entry++)
        *entry = entry[1];
    pool->log_top--;
}

/* Takes the mark out of the log. Then the scope ends like a block's. */
static inline void scope_take_mark(tide_pool *pool, size_t position)
{
    tide_entry *mark = tide_mark_entry(pool, position);
    tide_assert(mark < pool->log_top);
    if (mark + 1 == pool->log_top)
        pool->log_top = mark;
    else
        scope_move_down(pool, mark);
}

/* Why the scope cannot be left. */
static TIDE_COLD tide_status scope_refuse_leave(const tide_pool *pool, const char *call)
{
    TIDE_FORWARD(tide_pool_use(pool, call));
    return tide_fail(TIDE_ERROR_STALE, call, "the scope was rewound already in pool '%s'",
                     pool->core->name);
}

/* Where levels are open inside, the plan closes them with the scope, mark and all. That they were
 * has to be asked before, and noted after. */
tide_status tide_scope_leave(tide_scope *scope)
{
    const char *call = "tide_scope_leave";
    if (scope == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the scope is NULL");
    tide_pool *pool = scope->pool;
    if (pool == NULL || pool == tide_pool_refusing())
        return tide_fail(TIDE_ERROR_STALE, call, "the scope is not open");
    if (TIDE_UNLIKELY(pool->copy != tide_pool_copy(false))) /* not ours, lost, or checked */
        TIDE_FORWARD(tide_pool_use(pool, call));
    if (TIDE_UNLIKELY(!tide_mark_open(pool, scope->position, scope->serial)))
        return scope_refuse_leave(pool, call);
    tide_assert(tide_scope_nests(scope) && tide_level(pool->tag) >= tide_level(scope->tag));
    bool younger = tide_level(pool->tag) > tide_level(scope->tag);
    if (TIDE_UNLIKELY(younger))
        TIDE_FORWARD(tide_abandon_admit(pool, tide_level(scope->tag) - 1, call));
    else
        scope_take_mark(pool, scope->position);
    tide_site_leave(scope);
    scope->pool = NULL;
    tide_assert(tide_level(pool->tag) == tide_level(scope->tag) - 1);
    if (TIDE_UNLIKELY(younger))
        tide_abandon(pool);
    return TIDE_OK;
}

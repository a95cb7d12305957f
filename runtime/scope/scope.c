/* SPDX-License-Identifier: MIT */
/* Scopes that are entered and left by functions (FFI): the same plans, and a mark that tells
 * whether the scope is still open. */
#include <tidepool/scope.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/pool/level.h"
#include "runtime/scope/kind.h"
#include "runtime/scope/mark.h"
#include "runtime/scope/nesting.h"
#include "runtime/scope/plan.h"

/* Of all scopes that are entered without a site. */
static tide_site scope_shared_site = {.plan = &tide_plans_arriving[TIDE_KIND_SCOPE],
                                      .name = "(scope without a site)"};

tide_status tide_scope_enter(tide_pool *pool, tide_site *site, tide_scope *scope)
{
    const char *call = "tide_scope_enter";
    if (scope == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the scope is NULL");
    site = site != NULL ? site : &scope_shared_site;
    *scope = (tide_scope){0};
    TIDE_FORWARD(tide_kind_expect(site, TIDE_KIND_SCOPE, call));
    TIDE_FORWARD(tide_level_admit(pool, call));
    uint64_t serial = tide_mark_push(pool, call);
    if (serial == 0)
        return TIDE_ERROR_LIMIT;
    tide_site_enter(scope, pool, site);
    scope->serial = serial;
    tide_assert(scope->pool == tide_pool_refusing() ||
                (tide_scope_nests(scope) && tide_mark_open(pool, tide_mark_below(scope), serial)));
    return TIDE_OK;
}

/* The mark stands right below the scope's base, at the scope's outer level. The plan closes the
 * scope. Whether levels were open inside has to be asked before that, and noted after. */
tide_status tide_scope_leave(tide_scope *scope)
{
    const char *call = "tide_scope_leave";
    if (scope == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the scope is NULL");
    tide_pool *pool = scope->pool;
    if (pool == NULL || pool == tide_pool_refusing())
        return tide_fail(TIDE_ERROR_STALE, call, "the scope is not open");
    TIDE_FORWARD(tide_pool_use(pool, call));
    size_t position = tide_mark_below(scope);
    if (!tide_mark_open(pool, position, scope->serial))
        return tide_misuse(pool, TIDE_ERROR_STALE, call,
                           "the scope was rewound already in pool '%s'", pool->core->name);
    tide_assert(tide_scope_nests(scope) && tide_level(pool->tag) >= tide_level(scope->outer));
    bool younger = pool->tag != scope->tag;
    tide_site_leave(scope);
    scope->pool = NULL;
    tide_mark_close(pool, position, (tide_place){TIDE_NOWHERE});
    tide_assert(pool->tag == scope->outer && pool->log_top == pool->core->log.start + position);
    if (younger)
        tide_abandon(pool, tide_level(pool->tag));
    return TIDE_OK;
}

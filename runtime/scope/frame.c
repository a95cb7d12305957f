/* SPDX-License-Identifier: MIT */
/* Frames as sites, by the general path: opens a level, acquires its arrays one after the other. */
#include <tidepool/dynamic.h>
#include <tidepool/scope.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/pool/level.h"
#include "runtime/scope/general.h"
#include "runtime/scope/kind.h"
#include "runtime/scope/mark.h"
#include "runtime/scope/nesting.h"
#include "runtime/scope/plan.h"

/* Did the guard of compiled code fail only because the open level had not saved these types, and
 * has it now? */
static bool frame_has_been_prepared(tide_pool *pool, const tide_plan *plan, uint32_t count,
                                    const tide_type *types)
{
    if (__atomic_load_n(&plan->frame, __ATOMIC_RELAXED) == tide_general_frame)
        return false;
    uint64_t saved = pool->saved;
    return tide_level_save(pool, count, types) && pool->saved != saved;
}

/* The level saves nothing when it opens: each array's own first touch does. A refused scope has no
 * pool to acquire from. */
void tide_general_frame(tide_scope *scope, tide_pool *pool, uint32_t count, const tide_type *types,
                        const size_t *counts, void **data)
{
    const tide_plan *plan = scope->plan;
    tide_site *site = scope->site;
    tide_assert(pool != NULL && plan != NULL && site != NULL);
    if (frame_has_been_prepared(pool, plan, count, types)) {
        __atomic_load_n(&plan->frame, __ATOMIC_RELAXED)(scope, pool, count, types, counts, data);
        return;
    }
    tide_plan_missed(plan);
    tide_plan_open_frame(scope, pool, plan, site);
    tide_assert(scope->plan == plan &&
                (scope->pool == pool || scope->pool == tide_pool_refusing()));
    scope->site = site; /* a refused one was cleared */
    for (uint32_t i = 0; i < count; i++)
        data[i] = NULL;
    if (scope->pool != tide_pool_refusing())
        tide_frame_acquire_slow(pool, count, types, counts, data, site->place.file,
                                site->place.function, site->place.line);
}

/* Puts back the shelves that a compiled frame kept in the scope: one for each different type, in
 * the order in which the types first stand in the plan. */
static void frame_put_back(const tide_scope *scope)
{
    const tide_type *types = scope->plan->types;
    uint32_t distinct = 0;
    tide_assert(tide_level(scope->pool->tag) == tide_level(scope->tag) - 1);
    tide_assert(scope->pool->log_top == scope->base);
    tide_assert(scope->plan->type_count <= TIDE_TYPED_MAX);
    for (uint32_t i = 0; i < scope->plan->type_count; i++) {
        uint32_t first = 0;
        while (types[first] != types[i])
            first++;
        if (first != i)
            continue;
        tide_shelf *shelf = &scope->pool->shelves[types[i]];
        tide_assert(distinct < TIDE_SCOPE_SAVED);
        tide_assert(shelf->next >= scope->saved[distinct]);
        shelf->next = scope->saved[distinct++];
    }
}

void tide_general_frame_leave(tide_scope *scope)
{
    tide_pool *pool = scope->pool;
    tide_assert(pool == tide_pool_refusing() || tide_scope_nests(scope));
    if (pool == tide_pool_refusing() ||
        !tide_level_close(pool, tide_scope_base(scope), scope->tag, scope->outer_saved))
        return;
    if (!tide_scope_logged(scope))
        frame_put_back(scope);
}

tide_status tide_scope_enter_frame(tide_pool *pool, tide_site *site, uint32_t count,
                                   const tide_type *types, const size_t *counts, void **data,
                                   tide_scope *scope)
{
    const char *call = "tide_scope_enter_frame";
    if (scope == NULL || site == NULL ||
        (count != 0 && (types == NULL || counts == NULL || data == NULL)))
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "a scope, a site or the arrays' data are NULL");
    TIDE_FORWARD(tide_kind_expect(site, TIDE_KIND_FRAME, call));
    if (count > TIDE_TYPED_MAX)
        return tide_fail(TIDE_ERROR_LIMIT, call, "%u arrays, a frame has %d at most", count,
                         TIDE_TYPED_MAX);
    scope->pool = NULL;
    if (!tide_level_ready(pool))
        TIDE_FORWARD(tide_level_admit(pool, call));
    tide_site_enter_frame(scope, pool, site, count, types, counts, data);
    bool given = count == 0 || data[0] != NULL;
    tide_status status = given ? TIDE_OK : tide_error_status();
    tide_status marked = tide_scope_mark(scope, call);
    if (marked == TIDE_OK)
        return status;
    for (uint32_t i = 0; i < count; i++) /* the scope has been left again */
        data[i] = NULL;
    return marked;
}

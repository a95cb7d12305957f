/* SPDX-License-Identifier: MIT */
/* Entering and leaving by the full plan and by a table. */
#include "runtime/plan.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/scope.h>

#include "runtime/assert.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/os.h"

/* ---- shared ----------------------------------------------------------------------------- */

/* Fills the scope and opens its level. What to save is the plan's business. */
TIDE_INLINE void open_scope(tide_scope *scope, tide_pool *pool, const tide_plan *plan,
                            tide_site *site)
{
    scope->pool = pool;
    scope->base = pool->log_top;
    scope->outer = pool->tag;
    scope->tag = tide_level_open(pool);
    scope->plan = plan;
    scope->site = site;
    scope->serial = 0;
}

TIDE_INLINE tide_entry *save(tide_entry *top, tide_shelf *shelf, uint64_t tag)
{
    *top = (tide_entry){shelf, shelf->next, shelf->saved_at};
    shelf->saved_at = tag;
    return top + 1;
}

void tide_scope_refuse(tide_scope *scope, tide_site *site)
{
    *scope = (tide_scope){.plan = &tide_plan_full, .site = site};
}

/* A pool whose log shows no room: it is careful, or the log is full. Nothing is saved now; the
 * first touches will. */
static TIDE_COLD void enter_without_room(tide_scope *scope, tide_pool *pool, const tide_plan *plan,
                                         tide_site *site)
{
    if (tide_pool_use(pool, "TIDE_SCOPE") == TIDE_OK)
        open_scope(scope, pool, plan, site);
    else
        tide_scope_refuse(scope, site);
}

static TIDE_COLD void leave_slow(tide_scope *scope)
{
    tide_pool *pool = scope->pool;
    scope->pool = NULL;
    if (pool != NULL)
        tide_level_close(pool, scope->base, scope->tag, scope->outer);
}

/* The guard: the open level is this scope's own, so nothing was left open in it, and the pool is
 * not careful (its log_room is the log's start). Exchanges are the one kind of entry whose
 * restoring is more than two stores. */
static void leave(tide_scope *scope)
{
    tide_pool *pool = scope->pool;
    if (TIDE_UNLIKELY(pool == NULL || pool->tag != scope->tag || scope->base >= pool->log_room)) {
        leave_slow(scope);
        return;
    }
    tide_entry *base = scope->base;
    for (tide_entry *top = pool->log_top; top != base;) {
        tide_shelf *shelf = (--top)->shelf;
        if (TIDE_UNLIKELY(!tide_shelf_real(shelf))) {
            pool->log_top = top + 1;
            leave_slow(scope);
            return;
        }
        shelf->next = top->next;
        shelf->saved_at = top->saved_at;
    }
    pool->log_top = base;
    pool->tag = scope->outer;
    scope->pool = NULL;
}

/* ---- full ------------------------------------------------------------------------------- */

static void enter_full(tide_scope *scope, tide_pool *pool, const tide_plan *plan, tide_site *site)
{
    if (TIDE_UNLIKELY(pool == NULL ||
                      (size_t)(pool->log_room - pool->log_top) < pool->core->used_count ||
                      pool->log_top >= pool->log_room)) {
        enter_without_room(scope, pool, plan, site);
        return;
    }
    open_scope(scope, pool, plan, site);
    tide_entry *top = pool->log_top;
    tide_shelf **used = pool->core->used, **end = used + pool->core->used_count;
    for (; used != end; used++)
        top = save(top, *used, scope->tag);
    pool->log_top = top;
}

const tide_plan tide_plan_full = {
    .enter = enter_full, .leave = leave, .tier = TIDE_TIER_FULL};

/* ---- table ------------------------------------------------------------------------------ */

static void enter_table(tide_scope *scope, tide_pool *pool, const tide_plan *plan, tide_site *site)
{
    if (TIDE_UNLIKELY(pool == NULL || pool->log_top + plan->type_count >= pool->log_room)) {
        enter_without_room(scope, pool, plan, site);
        return;
    }
    open_scope(scope, pool, plan, site);
    tide_entry *top = pool->log_top;
    for (const tide_type *type = plan->types, *end = type + plan->type_count; type != end; type++) {
        tide_shelf *shelf = &pool->shelves[*type];
        if (TIDE_LIKELY(shelf->saved_at != 0)) /* else it is not set up: nothing to save yet */
            top = save(top, shelf, scope->tag);
    }
    pool->log_top = top;
}

typedef struct table_plan {
    tide_plan plan;
    tide_type types[];
} table_plan;

static void *tables; /* every table plan ever made, by its types */

static int compare_tables(const void *left, const void *right)
{
    const tide_plan *a = left, *b = right;
    if (a->type_count != b->type_count)
        return a->type_count < b->type_count ? -1 : 1;
    return a->type_count == 0 ? 0 : memcmp(a->types, b->types, a->type_count * sizeof *a->types);
}

static int compare_types(const void *left, const void *right)
{
    tide_type a = *(const tide_type *)left, b = *(const tide_type *)right;
    return (a > b) - (a < b);
}

static uint32_t sort_distinct(tide_type *types, size_t count)
{
    uint32_t distinct = 0;
    qsort(types, count, sizeof *types, compare_types);
    for (size_t i = 0; i < count; i++)
        if (distinct == 0 || types[distinct - 1] != types[i])
            types[distinct++] = types[i];
    return distinct;
}

const tide_plan *tide_plan_table(const tide_type *types, size_t count, const char *call)
{
    table_plan *made = tide_os_resize(NULL, sizeof *made + count * sizeof *types);
    if (made != NULL) {
        if (count != 0)
            memcpy(made->types, types, count * sizeof *types);
        made->plan = (tide_plan){.enter = enter_table,
                                 .leave = leave,
                                 .tier = TIDE_TIER_TABLE,
                                 .type_count = sort_distinct(made->types, count),
                                 .types = made->types};
        tide_plan *const *found =
            tide_os_faulted(sizeof(void *)) ? NULL : tsearch(made, &tables, compare_tables);
        if (found != NULL) {
            if (*found != &made->plan)
                tide_os_free(made);
            return *found;
        }
        tide_os_free(made);
    }
    tide_fail(TIDE_ERROR_MEMORY, call, "no memory for a plan of %zu types", count);
    return NULL;
}

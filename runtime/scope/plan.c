/* SPDX-License-Identifier: MIT */
/* Entering and leaving scopes: by the full plan, which saves all shelves; by a table of types. */
#include "runtime/scope/plan.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/scope.h>

#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/base/ring.h"
#include "runtime/check/levels.h"
#include "runtime/pool/level.h"
#include "runtime/scope/compiled.h"
#include "runtime/scope/nesting.h"

/* In names: *log* is to write a shelf's state to the undo log; *keep* is to keep it in the scope
 * itself (tide_scope.saved). */

/* ---- shared ----------------------------------------------------------------------------- */

/* Fills the scope and opens its level. What to save is the plan's business. */
TIDE_INLINE void plan_open_scope(tide_scope *scope, tide_pool *pool, const tide_plan *plan)
{
    scope->pool = pool;
    scope->base = tide_base_logged(pool->log_top);
    scope->outer_saved = pool->saved;
    scope->tag = tide_level_open(pool);
    scope->plan = plan;
    tide_assert(tide_scope_nests(scope) && tide_scope_logged(scope));
}

/* May a level open here that writes so many entries? Guards ask for one place more. */
TIDE_INLINE bool plan_has_room(const tide_pool *pool, uint32_t entries)
{
    return TIDE_LIKELY(tide_log_open(pool) - pool->log_top > (ptrdiff_t)entries &&
                       (pool->tag & TIDE_TAG_DEEP) == 0);
}

/* Writes the shelf's state to the log. A type without a bit is left to its first touch. */
TIDE_INLINE tide_entry *plan_log_shelf(tide_entry *top, tide_shelf *shelf, uint64_t *saved)
{
    tide_assert((*saved & shelf->bit) == 0); /* no level saves a shelf twice */
    tide_log_write(top, shelf, shelf->next);
    *saved |= shelf->bit;
    return top + (shelf->bit != 0);
}

void tide_scope_without_pool(tide_scope *scope)
{
    tide_pool_use(NULL, "TIDE_SCOPE");
    tide_scope_refuse(scope, &tide_plans_general[TIDE_KIND_SCOPE]);
}

void tide_scope_refuse(tide_scope *scope, const tide_plan *plan)
{
    tide_assert(plan != NULL && __atomic_load_n(&plan->leave, __ATOMIC_RELAXED) != NULL);
    *scope = (tide_scope){.pool = tide_pool_refusing(), .tag = TIDE_TAG_REFUSED, .plan = plan};
}

/* For a pool whose log shows no room (it is careful, something was requested of it, or the log is
 * full), or whose levels are too deep. Saves nothing now; the first touches do. */
static TIDE_COLD void plan_enter_without_room(tide_scope *scope, tide_pool *pool,
                                              const tide_plan *plan, const tide_site *site)
{
    if (tide_level_admit_or_report(pool, "TIDE_SCOPE") != TIDE_OK) {
        tide_scope_refuse(scope, plan);
        return;
    }
    plan_open_scope(scope, pool, plan);
    if (pool->core->careful)
        tide_levels_push(&pool->core->levels, scope->tag, site->place);
    tide_assert(pool->tag == scope->tag);
}

static void plan_note_miss(const tide_scope *scope)
{
    tide_plan_counts *counts = scope->plan->counts;
    uint64_t misses = __atomic_add_fetch(&counts->misses, 1, __ATOMIC_RELAXED);
    uint64_t alarm = __atomic_load_n(&counts->alarm, __ATOMIC_RELAXED);
    tide_assert(misses != 0);
    if (TIDE_LIKELY(alarm == 0 || misses < alarm))
        return;
    TIDE_RINGS_CALL(missed, scope);
}

/* Counts a miss if the scope acquired of a type that its plan had not saved: if a shelf that stands
 * in the log after the first `saved` ones has moved. One that has not was saved for a scope inside.
 * (Those of a scope that was left open inside count too. That is rare, and one miss too many does
 * no harm.) */
static void plan_count_miss(const tide_scope *scope, ptrdiff_t saved)
{
    tide_assert(scope->pool != tide_pool_refusing() && scope->plan->counts != NULL && saved >= 0);
    for (const tide_entry *entry = tide_scope_base(scope); entry < scope->pool->log_top; entry++)
        if (tide_shelf_real(scope->pool, entry->shelf) && --saved < 0 &&
            entry->shelf->next != entry->next) {
            plan_note_miss(scope);
            return;
        }
}

static TIDE_COLD void plan_leave_slow(const tide_scope *scope)
{
    if (scope->pool == tide_pool_refusing())
        return;
    tide_assert(tide_scope_nests(scope));
    tide_level_close(scope->pool, tide_scope_base(scope), scope->tag, scope->outer_saved);
}

/* The guard: the open level is this scope's own, so nothing was left open in it; and the pool is
 * not careful (the log_room of such a pool is the log's start). An entry that is no shelf's state
 * needs more than two stores: cold code sees to it. */
TIDE_INLINE void plan_leave(tide_scope *scope)
{
    tide_pool *pool = scope->pool;
    tide_entry *base = tide_scope_base(scope);
    if (TIDE_UNLIKELY(pool->tag != scope->tag || base >= tide_log_open(pool))) {
        plan_leave_slow(scope);
        return;
    }
    tide_assert(tide_scope_nests(scope) && base <= pool->log_top && !pool->core->attended);
    if (TIDE_UNLIKELY(!tide_log_rewind_shelves(pool, base))) {
        plan_leave_slow(scope);
        return;
    }
    pool->tag = scope->tag - 1;
    pool->saved = scope->outer_saved;
}

/* ---- full ------------------------------------------------------------------------------- */

void tide_plan_enter_full(tide_scope *scope, tide_pool *pool, const tide_plan *plan,
                          tide_site *site)
{
    if (!plan_has_room(pool, pool->core->rows.used_count)) {
        plan_enter_without_room(scope, pool, plan, site);
        return;
    }
    plan_open_scope(scope, pool, plan);
    tide_entry *top = pool->log_top;
    uint64_t saved = 0;
    tide_row **used = pool->core->rows.used, **end = used + pool->core->rows.used_count;
    for (; used != end; used++)
        top = plan_log_shelf(top, (*used)->shelf, &saved);
    tide_assert(tide_log_has(pool, top) && saved == pool->core->rows.bits);
    pool->log_top = top;
    pool->saved = saved;
}

void tide_plan_leave_full(tide_scope *scope)
{
    plan_leave(scope);
}

/* ---- table, any number of types ----------------------------------------------------------- */

TIDE_INLINE tide_shelf *plan_shelf_at(tide_pool *pool, uint32_t offset)
{
    tide_assert(offset >= offsetof(tide_pool, shelves) && offset < sizeof(tide_pool));
    tide_assert((offset - offsetof(tide_pool, shelves)) % sizeof(tide_shelf) == 0);
    return (tide_shelf *)(void *)((char *)pool + offset);
}

static void plan_enter_logging(tide_scope *scope, tide_pool *pool, const tide_plan *plan,
                               tide_site *site)
{
    if (!plan_has_room(pool, plan->type_count)) {
        plan_enter_without_room(scope, pool, plan, site);
        return;
    }
    plan_open_scope(scope, pool, plan);
    tide_entry *top = pool->log_top;
    uint64_t saved = 0;
    for (uint32_t i = 0; i < plan->type_count; i++)
        top = plan_log_shelf(top, plan_shelf_at(pool, plan->shelves[i]), &saved);
    tide_assert(tide_log_has(pool, top) && !pool->core->attended);
    pool->log_top = top;
    pool->saved = saved;
}

static void plan_leave_logging(tide_scope *scope)
{
    const tide_plan *plan = scope->plan;
    tide_assert(scope->pool == tide_pool_refusing() || tide_scope_logged(scope));
    if (TIDE_UNLIKELY(plan->counts != NULL &&
                      scope->pool->log_top - tide_scope_base(scope) > (ptrdiff_t)plan->type_count))
        plan_count_miss(scope, plan->type_count);
    plan_leave(scope);
}

/* ---- table, one to four types ------------------------------------------------------------- */

/* Like an inlined typed scope: the scope itself, not the log, keeps the state of shelves that the
 * level around has saved. tidepool/inline/typed.h says when, and why that is safe. */
TIDE_INLINE bool plan_open_keeping(tide_scope *scope, tide_pool *pool, const tide_plan *plan,
                                   uint32_t count)
{
    tide_shelf *shelves[TIDE_TYPED_MAX];
    tide_assert(count == plan->type_count && count <= TIDE_SCOPE_SAVED);
    if (TIDE_UNLIKELY(pool->log_top >= tide_log_open(pool) || (pool->tag & TIDE_TAG_DEEP) != 0))
        return false;
    uint64_t outer_saved = pool->saved, saved = 0;
    TIDE_EACH_TYPED(i, count, {
        shelves[i] = plan_shelf_at(pool, plan->near[(i) % TIDE_SCOPE_SAVED]);
        if (TIDE_UNLIKELY((outer_saved & shelves[i]->bit) == 0))
            return false;
        saved |= shelves[i]->bit;
    });
    uint64_t tag = pool->tag + 1;
    tide_assert(!pool->core->attended);
    scope->pool = pool;
    scope->base = pool->log_top;
    scope->outer_saved = outer_saved;
    scope->tag = tag;
    scope->plan = plan;
    TIDE_EACH_TYPED(i, count, scope->saved[(i) % TIDE_SCOPE_SAVED] = shelves[i]->next;);
    /* First all stores to the scope, then all to the pool: stores that alternate between their
     * cache lines cost a cycle each. */
    __asm__("" ::: "memory");
    pool->tag = tag;
    pool->saved = saved;
    tide_assert(tide_scope_nests(scope) && !tide_scope_logged(scope));
    return true;
}

/* Where the guard fails, the log is used, or the level around saves what it has not saved yet and
 * the guard is asked again: see plan_is_first_to_ask. */
static void plan_enter_prepared(tide_scope *scope, tide_pool *pool, const tide_plan *plan,
                                tide_site *site);

TIDE_INLINE void plan_enter_keeping(tide_scope *scope, tide_pool *pool, const tide_plan *plan,
                                    tide_site *site, uint32_t count)
{
    if (TIDE_UNLIKELY(!plan_open_keeping(scope, pool, plan, count)))
        plan_enter_prepared(scope, pool, plan, site);
}

/* First puts back what stands in the log, where something was written; then what the scope kept. */
static void plan_leave_kept(const tide_scope *scope)
{
    tide_pool *pool = scope->pool;
    if (pool == tide_pool_refusing())
        return;
    tide_assert(tide_scope_nests(scope) && !tide_scope_logged(scope));
    tide_assert(scope->plan->type_count <= TIDE_SCOPE_SAVED);
    if (scope->plan->counts != NULL)
        plan_count_miss(scope, 0);
    if (!tide_level_close(pool, scope->base, scope->tag, scope->outer_saved))
        return;
    tide_assert(pool->log_top == scope->base);
    tide_assert(tide_level(pool->tag) == tide_level(scope->tag) - 1);
    for (uint32_t i = 0; i < scope->plan->type_count; i++) {
        tide_shelf *shelf = plan_shelf_at(pool, scope->plan->near[i]);
        tide_assert(shelf->next >= scope->saved[i]);
        shelf->next = scope->saved[i];
    }
}

/* Leaves where the guard of a faster leave has failed, so it need not be asked again. */
static void plan_leave_keeping_slow(tide_scope *scope)
{
    if (tide_scope_logged(scope))
        plan_leave_logging(scope);
    else
        plan_leave_kept(scope);
}

TIDE_INLINE void plan_leave_keeping(tide_scope *scope, uint32_t count)
{
    tide_pool *pool = scope->pool;
    if (TIDE_UNLIKELY(pool->tag != scope->tag || pool->log_top != scope->base)) {
        plan_leave_keeping_slow(scope);
        return;
    }
    tide_assert(tide_scope_nests(scope) && !tide_scope_logged(scope) && !pool->core->attended);
    tide_assert(count == scope->plan->type_count);
    const uint32_t *near = scope->plan->near;
    pool->tag = scope->tag - 1;
    pool->saved = scope->outer_saved;
    TIDE_EACH_TYPED(i, count,
                    plan_shelf_at(pool, near[(i) % TIDE_SCOPE_SAVED])->next =
                        scope->saved[(i) % TIDE_SCOPE_SAVED];);
}

#define TIDE_KEEPING(count)                                                                   \
    static void plan_enter_##count(tide_scope *scope, tide_pool *pool, const tide_plan *plan, \
                                   tide_site *site)                                           \
    {                                                                                         \
        plan_enter_keeping(scope, pool, plan, site, count);                                   \
    }                                                                                         \
    static void plan_leave_##count(tide_scope *scope)                                         \
    {                                                                                         \
        plan_leave_keeping(scope, count);                                                     \
    }
TIDE_KEEPING(1)
TIDE_KEEPING(2)
TIDE_KEEPING(3)
TIDE_KEEPING(4)

_Static_assert(TIDE_SCOPE_SAVED == 4 && TIDE_SCOPE_SAVED <= TIDE_TYPED_MAX,
               "there is code for each number of types that a scope keeps");

static const struct {
    tide_enter_function *enter;
    tide_leave_function *leave;
} plan_forms[TIDE_SCOPE_SAVED + 1] = {{plan_enter_logging, plan_leave_logging},
                                      {plan_enter_1, plan_leave_1},
                                      {plan_enter_2, plan_leave_2},
                                      {plan_enter_3, plan_leave_3},
                                      {plan_enter_4, plan_leave_4}};

/* Which of the above serves so many types. */
static uint32_t plan_form_of(uint32_t type_count)
{
    return type_count <= TIDE_SCOPE_SAVED ? type_count : 0;
}

/* Compiled code gets its second chance, too. */
static void plan_ask_again(tide_scope *scope, tide_pool *pool, const tide_plan *plan,
                           tide_site *site)
{
    tide_enter_function *enter = __atomic_load_n(&plan->enter, __ATOMIC_RELAXED);
    if (enter == plan_enter_prepared)
        enter = plan_forms[plan->type_count].enter;
    enter(scope, pool, plan, site);
}

/* Is this the first scope in its level whose types the level has not saved? It may stay the only
 * one, as in functions that call each other; then it is cheaper to write the log. The second one
 * has the level save the types, for itself and for all that follow. */
static bool plan_is_first_to_ask(tide_pool *pool, uint32_t types)
{
    if ((pool->saved & TIDE_SAVED_ASKED) != 0 || tide_at_root(pool))
        return false;
    if (!plan_has_room(pool, types))
        return false; /* it may be shut, or another thread's: nothing is written to it */
    pool->saved |= TIDE_SAVED_ASKED;
    return true;
}

/* Once the shelves are saved, the guard that failed holds, so the plan is asked again. (A request
 * may close the log meanwhile. Then the next try saves nothing and writes the log.) */
static void plan_enter_prepared(tide_scope *scope, tide_pool *pool, const tide_plan *plan,
                                tide_site *site)
{
    if (plan_form_of(plan->type_count) != 0 && !plan_is_first_to_ask(pool, plan->type_count) &&
        tide_level_save(pool, plan->type_count, plan->types))
        plan_ask_again(scope, pool, plan, site);
    else
        plan_enter_logging(scope, pool, plan, site);
}

/* For asserts: a scope's types stand once each, ascending, and `shelves` says where theirs are. */
TIDE_INLINE bool plan_is_in_order(const tide_plan *plan)
{
    for (uint32_t i = 0; i < plan->type_count; i++)
        if ((i > 0 && plan->types[i - 1] >= plan->types[i]) || plan->types[i] >= TIDE_TYPE_LIMIT ||
            plan->shelves[i] != tide_plan_shelf(plan->types[i]) ||
            (i < TIDE_SCOPE_SAVED && plan->near[i] != plan->shelves[i]))
            return false;
    return true;
}

void tide_plan_bring_near(tide_plan *plan)
{
    for (uint32_t i = 0; i < plan->type_count && i < TIDE_SCOPE_SAVED; i++)
        plan->near[i] = plan->shelves[i];
}

void tide_plan_use_table(tide_plan *plan)
{
    tide_assert(plan->kind == TIDE_KIND_SCOPE && plan_is_in_order(plan));
    uint32_t form = plan_form_of(plan->type_count);
    __atomic_store_n(&plan->enter, plan_forms[form].enter, __ATOMIC_RELAXED);
    __atomic_store_n(&plan->leave, plan_forms[form].leave, __ATOMIC_RELAXED);
}

/* As a table of the plan's types is left, whatever code the plan itself has. */
static void plan_leave_table(tide_scope *scope)
{
    if (plan_form_of(scope->plan->type_count) != 0)
        plan_leave_keeping_slow(scope);
    else
        plan_leave_logging(scope);
}

/* ---- making tables ------------------------------------------------------------------------ */

typedef struct table_plan {
    tide_plan plan;
    tide_type types[]; /* then the shelves' offsets */
} table_plan;

_Static_assert(offsetof(table_plan, plan) == 0, "the tree of tables compares them as plans");
_Static_assert(sizeof(tide_type) == sizeof *((tide_plan *)0)->shelves,
               "offsets of shelves may stand behind the types");

const tide_runtime tide_runtime_general = {.enter = plan_enter_prepared, .leave = plan_leave_table};

static void *plan_tables; /* every table plan ever made, by its types */

static int plan_compare_tables(const void *left, const void *right)
{
    const tide_plan *a = left, *b = right;
    if (a->type_count != b->type_count)
        return a->type_count < b->type_count ? -1 : 1;
    return a->type_count == 0 ? 0 : memcmp(a->types, b->types, a->type_count * sizeof *a->types);
}

static int plan_compare_types(const void *left, const void *right)
{
    tide_type a = *(const tide_type *)left, b = *(const tide_type *)right;
    return (a > b) - (a < b);
}

static uint32_t plan_sort_distinct(tide_type *types, size_t count)
{
    uint32_t distinct = 0;
    qsort(types, count, sizeof *types, plan_compare_types);
    for (size_t i = 0; i < count; i++)
        if (distinct == 0 || types[distinct - 1] != types[i])
            types[distinct++] = types[i];
    return distinct;
}

/* Memory for `count` types, of which the plan may turn out to have fewer. */
static table_plan *plan_make_table(const tide_type *types, size_t count)
{
    tide_assert(types != NULL || count == 0);
    table_plan *made = tide_os_resize(NULL, sizeof *made + 2 * count * sizeof *types);
    if (made == NULL)
        return NULL;
    if (count != 0)
        memcpy(made->types, types, count * sizeof *types);
    uint32_t distinct = plan_sort_distinct(made->types, count), *shelves = made->types + distinct;
    tide_assert(distinct <= count && (distinct != 0 || count == 0));
    for (uint32_t i = 0; i < distinct; i++)
        shelves[i] = tide_plan_shelf(made->types[i]);
    made->plan = (tide_plan){
        .tier = TIDE_TIER_TABLE, .type_count = distinct, .types = made->types, .shelves = shelves};
    tide_plan_bring_near(&made->plan);
    tide_plan_use_table(&made->plan);
    return made;
}

const tide_plan *tide_plan_table(const tide_type *types, size_t count, const char *call)
{
    table_plan *made = plan_make_table(types, count);
    if (made != NULL) {
        tide_plan *const *found = tide_os_faulted(sizeof(void *))
                                      ? NULL
                                      : tsearch(made, &plan_tables, plan_compare_tables);
        if (found == NULL || *found != &made->plan)
            tide_os_free(made);
        tide_assert(found == NULL ||
                    ((*found)->tier == TIDE_TIER_TABLE && plan_is_in_order(*found)));
        if (found != NULL)
            return *found;
    }
    tide_fail(TIDE_ERROR_MEMORY, call, "no memory for a plan of %zu types", count);
    return NULL;
}

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
#include "runtime/check/levels.h"
#include "runtime/pool/level.h"
#include "runtime/scope/nesting.h"

/* In names: *log* is to write a shelf's state to the undo log; *keep* is to keep it in the scope
 * itself (tide_scope.saved). */

/* ---- shared ----------------------------------------------------------------------------- */

/* Fills the scope and opens its level. What to save is the plan's business. */
TIDE_INLINE void plan_open_scope(tide_scope *scope, tide_pool *pool, const tide_plan *plan)
{
    scope->pool = pool;
    scope->base = tide_base_mark(pool->log_top);
    scope->outer = pool->tag;
    scope->tag = tide_level_open(pool);
    scope->plan = plan;
    tide_assert(tide_scope_nests(scope) && tide_scope_logged(scope));
}

/* Writes the shelf's state to the log, for the level `tag`; no level saves a shelf twice. */
TIDE_INLINE tide_entry *plan_log_shelf(tide_entry *top, tide_shelf *shelf, uint64_t tag)
{
    tide_assert(shelf->saved_at != 0 && tide_level(shelf->saved_at) < tide_level(tag));
    *top = (tide_entry){shelf, shelf->next, shelf->saved_at};
    shelf->saved_at = tag;
    return top + 1;
}

void tide_scope_without_pool(tide_scope *scope)
{
    tide_pool_use(NULL, "TIDE_SCOPE");
    tide_scope_refuse(scope, &tide_plans_general[TIDE_KIND_SCOPE]);
}

void tide_scope_refuse(tide_scope *scope, const tide_plan *plan)
{
    tide_assert(plan != NULL && __atomic_load_n(&plan->leave, __ATOMIC_RELAXED) != NULL);
    *scope = (tide_scope){.pool = tide_pool_refusing(), .tag = TIDE_TAG_ROOT, .plan = plan};
}

/* For a pool whose log shows no room: it is careful, something was requested of it, or the log is
 * full. Saves nothing now; the first touches do. */
static TIDE_COLD void plan_enter_without_room(tide_scope *scope, tide_pool *pool,
                                              const tide_plan *plan, const tide_site *site)
{
    if (tide_level_admit(pool, "TIDE_SCOPE") != TIDE_OK) {
        tide_scope_refuse(scope, plan);
        return;
    }
    plan_open_scope(scope, pool, plan);
    if (pool->core->careful)
        tide_levels_push(&pool->core->levels, scope->tag, site->place);
    tide_assert(pool->tag == scope->tag);
}

/* Counts a miss if the scope touched a shelf that its plan had not saved: if more than `saved`
 * shelves stand in the log. (Those of a scope that was left open inside count too. That is rare,
 * and one miss too many does no harm.) */
static TIDE_COLD void plan_count_miss(const tide_scope *scope, ptrdiff_t saved)
{
    tide_assert(scope->pool != tide_pool_refusing() && scope->plan->counts != NULL && saved >= 0);
    for (const tide_entry *entry = tide_scope_base(scope); entry < scope->pool->log_top; entry++)
        if (tide_shelf_real(scope->pool, entry->shelf) && --saved < 0) {
            __atomic_fetch_add(&scope->plan->counts->misses, 1, __ATOMIC_RELAXED);
            return;
        }
}

static TIDE_COLD void plan_leave_slow(const tide_scope *scope)
{
    if (scope->pool == tide_pool_refusing())
        return;
    tide_assert(tide_scope_nests(scope));
    tide_level_close(scope->pool, tide_scope_base(scope), scope->tag, scope->outer);
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
    for (tide_entry *top = pool->log_top; top != base;) {
        tide_shelf *shelf = (--top)->shelf;
        if (TIDE_UNLIKELY(!tide_shelf_real(pool, shelf))) {
            pool->log_top = top + 1;
            plan_leave_slow(scope);
            return;
        }
        tide_assert(top->next <= shelf->next && top->saved_at != scope->tag);
        shelf->next = top->next;
        shelf->saved_at = top->saved_at;
    }
    pool->log_top = base;
    pool->tag = scope->outer;
}

/* ---- full ------------------------------------------------------------------------------- */

void tide_plan_enter_full(tide_scope *scope, tide_pool *pool, const tide_plan *plan,
                          tide_site *site)
{
    if (TIDE_UNLIKELY(tide_log_open(pool) - pool->log_top <=
                      (ptrdiff_t)pool->core->rows.used_count)) {
        plan_enter_without_room(scope, pool, plan, site);
        return;
    }
    plan_open_scope(scope, pool, plan);
    tide_entry *top = pool->log_top;
    tide_row **used = pool->core->rows.used, **end = used + pool->core->rows.used_count;
    for (; used != end; used++)
        top = plan_log_shelf(top, (*used)->shelf, scope->tag);
    tide_assert(tide_log_has(pool, top) && !pool->core->attended);
    pool->log_top = top;
}

void tide_plan_leave_full(tide_scope *scope)
{
    plan_leave(scope);
}

/* Opens a frame's level. The frame's arrays are touched one by one. */
void tide_plan_open_frame(tide_scope *scope, tide_pool *pool, const tide_plan *plan,
                          tide_site *site)
{
    if (TIDE_UNLIKELY(pool->log_top >= tide_log_open(pool)))
        plan_enter_without_room(scope, pool, plan, site);
    else
        plan_open_scope(scope, pool, plan);
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
    if (TIDE_UNLIKELY(tide_log_open(pool) - pool->log_top <= (ptrdiff_t)plan->type_count)) {
        plan_enter_without_room(scope, pool, plan, site);
        return;
    }
    plan_open_scope(scope, pool, plan);
    tide_entry *top = pool->log_top;
    for (uint32_t i = 0; i < plan->type_count; i++) {
        tide_shelf *shelf = plan_shelf_at(pool, plan->shelves[i]);
        if (TIDE_LIKELY(shelf->saved_at != 0)) /* else it is not set up: nothing to save yet */
            top = plan_log_shelf(top, shelf, scope->tag);
    }
    tide_assert(tide_log_has(pool, top) && !pool->core->attended);
    pool->log_top = top;
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
TIDE_INLINE void plan_enter_keeping(tide_scope *scope, tide_pool *pool, const tide_plan *plan,
                                    tide_site *site, uint32_t count)
{
    tide_shelf *shelves[TIDE_TYPED_MAX];
    bool ready = pool->log_top < tide_log_open(pool);
    uint64_t outer = ready ? pool->tag : 0;
    tide_assert(count == plan->type_count && count <= TIDE_SCOPE_SAVED);
#define TIDE_STEP(i)                                        \
    do {                                                    \
        shelves[i] = plan_shelf_at(pool, plan->shelves[i]); \
        ready = ready && shelves[i]->saved_at == outer;     \
    } while (0)
    TIDE_EACH_TYPED(count, TIDE_STEP);
#undef TIDE_STEP
    if (TIDE_UNLIKELY(!ready)) {
        plan_enter_logging(scope, pool, plan, site);
        return;
    }
    uint64_t tag = tide_tag_inner(pool);
    tide_assert(tide_tag_nests(tag, outer) && !pool->core->attended);
    scope->pool = pool;
    scope->base = pool->log_top;
    scope->outer = outer;
    scope->tag = tag;
    scope->plan = plan;
#define TIDE_STEP(i) scope->saved[(i) % TIDE_SCOPE_SAVED] = shelves[i]->next
    TIDE_EACH_TYPED(count, TIDE_STEP);
#undef TIDE_STEP
    tide_assert(tide_scope_nests(scope) && !tide_scope_logged(scope));
    /* First all stores to the scope, then all to the pool: stores that alternate between their
     * cache lines cost a cycle each. */
    __asm__("" ::: "memory");
    pool->tag = tag;
#define TIDE_STEP(i) shelves[i]->saved_at = tag
    TIDE_EACH_TYPED(count, TIDE_STEP);
#undef TIDE_STEP
}

/* First puts back what stands in the log, where something was written; then what the scope kept. */
static TIDE_COLD void plan_leave_kept(const tide_scope *scope)
{
    tide_pool *pool = scope->pool;
    if (pool == tide_pool_refusing())
        return;
    tide_assert(tide_scope_nests(scope) && !tide_scope_logged(scope));
    tide_assert(scope->plan->type_count <= TIDE_SCOPE_SAVED);
    if (scope->plan->counts != NULL)
        plan_count_miss(scope, 0);
    if (!tide_level_close(pool, scope->base, scope->tag, scope->outer))
        return;
    tide_assert(pool->log_top == scope->base && pool->tag == scope->outer);
    for (uint32_t i = 0; i < scope->plan->type_count; i++) {
        tide_shelf *shelf = plan_shelf_at(pool, scope->plan->shelves[i]);
        tide_assert(tide_shelf_moved_on(shelf, scope->saved[i], scope->outer));
        *shelf = (tide_shelf){.next = scope->saved[i], .saved_at = scope->outer};
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
    const uint32_t *shelves = scope->plan->shelves;
    uint64_t outer = scope->outer;
    pool->tag = outer;
#define TIDE_STEP(i)                   \
    *plan_shelf_at(pool, shelves[i]) = \
        (tide_shelf){.next = scope->saved[(i) % TIDE_SCOPE_SAVED], .saved_at = outer}
    TIDE_EACH_TYPED(count, TIDE_STEP);
#undef TIDE_STEP
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

/* For asserts: a scope's types stand once each, ascending, and `shelves` says where theirs are. */
TIDE_INLINE bool plan_is_in_order(const tide_plan *plan)
{
    for (uint32_t i = 0; i < plan->type_count; i++)
        if ((i > 0 && plan->types[i - 1] >= plan->types[i]) || plan->types[i] >= TIDE_TYPE_LIMIT ||
            plan->shelves[i] != tide_plan_shelf(plan->types[i]))
            return false;
    return true;
}

void tide_plan_use_table(tide_plan *plan)
{
    tide_assert(plan->kind == TIDE_KIND_SCOPE && plan_is_in_order(plan));
    uint32_t form = plan_form_of(plan->type_count);
    __atomic_store_n(&plan->enter, plan_forms[form].enter, __ATOMIC_RELAXED);
    __atomic_store_n(&plan->leave, plan_forms[form].leave, __ATOMIC_RELAXED);
}

/* Enters where the guard of compiled code has failed. The guard for few types (plan_enter_keeping)
 * would fail too, so it is not asked. */
void tide_plan_enter_table(tide_scope *scope, tide_pool *pool, const tide_plan *plan,
                           tide_site *site)
{
    plan_enter_logging(scope, pool, plan, site);
}

void tide_plan_leave_table(tide_scope *scope)
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

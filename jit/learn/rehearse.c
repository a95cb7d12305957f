/* SPDX-License-Identifier: MIT */
/* Rehearsals: what a use is about to do, without the work in between, some dozens of times by
 * either plan in turn, in the same pool in the same state. */
#define _GNU_SOURCE
#include "jit/learn/rehearse.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include <tidepool/callsite.h>

#include "runtime/base/assert.h"
#include "runtime/scope/plan.h"
#include "runtime/pool/core.h"

enum { ROUNDS = 4, PAIRS = 32 };

static uint64_t monotonic(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t (*tide_rehearse_clock)(void) = monotonic;

/* ---- timing ----------------------------------------------------------------------------- */

/* One use as it was asked for; each kind reads its own members. */
typedef struct use {
    tide_pool *pool;
    tide_site *site;
    tide_generic *generic;
    tide_type type;
    int ndim;
    const int64_t *shape;
    uint32_t count;
    const tide_type *types;
    tide_shelf *shelf;
    struct tide_array *header;
} use;

typedef void once(const use *u, const tide_plan *plan);

static uint64_t time_pairs(const use *u, const tide_plan *plan, once *one)
{
    uint64_t started = tide_rehearse_clock();
    for (int i = 0; i < PAIRS; i++)
        one(u, plan);
    return tide_rehearse_clock() - started;
}

static const tide_rehearsed unfit = {false, 0, 0};

/* Both in turn, so that whatever disturbs one disturbs the other; of each the least counts. */
static tide_rehearsed rehearse(const tide_plan *control, const tide_plan *candidate, const use *u,
                               once *one)
{
    tide_rehearsed least = {true, UINT64_MAX, UINT64_MAX};
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t a = time_pairs(u, control, one);
        uint64_t b = time_pairs(u, candidate, one);
        least.control_ns = a < least.control_ns ? a : least.control_ns;
        least.candidate_ns = b < least.candidate_ns ? b : least.candidate_ns;
    }
    return least;
}

/* Is the pool one in which fast paths pass at all? */
static bool fast(const tide_pool *pool)
{
    return !pool->core->careful && pool->log_top + TIDE_ITEMS_MAX < tide_log_open(pool);
}

/* Do so many slots of the type stand ready from `next` on? */
static bool ready(const tide_pool *pool, tide_type type, uint32_t slots)
{
    const tide_shelf *shelf = &pool->shelves[type];
    if (type >= TIDE_TYPE_LIMIT || shelf->saved_at == 0)
        return false;
    for (uint32_t i = 0; i < slots; i++)
        if (shelf->next[i].limit == 0)
            return false;
    return true;
}

/* Do the candidate's guards foresee such a use? Others would show nothing but misses. */
static bool foreseen(const tide_trial *trial, tide_type type, int ndim, const int64_t *shape)
{
    const tide_learned *learned =
        (const tide_learned *)(const void *)((const char *)trial - offsetof(tide_learned, trial));
    for (uint32_t i = 0; i < learned->items.count; i++) {
        const tide_item *item = &learned->items.items[i];
        if (item->type == type && item->ndim == ndim &&
            (ndim == 0 || memcmp(item->shape, shape, (size_t)ndim * sizeof *shape) == 0))
            return true;
    }
    return false;
}

/* ---- scopes ----------------------------------------------------------------------------- */

static void once_scope(const use *u, const tide_plan *plan)
{
    tide_scope scope;
    __atomic_load_n(&plan->enter, __ATOMIC_RELAXED)(&scope, u->pool, plan, u->site);
    for (uint32_t i = 0; i < u->count; i++)
        (void)tide_acquire_inline(u->pool, u->types[i], 0, TIDE_NOWHERE);
    tide_site_leave(&scope);
}

tide_rehearsed tide_rehearse_scope(const tide_trial *trial, tide_pool *pool, tide_site *site)
{
    use u = {.pool = pool,
             .site = site,
             .count = trial->control->type_count,
             .types = trial->control->types};
    tide_assert(u.count <= TIDE_ITEMS_MAX);
    bool fit = fast(pool);
    for (uint32_t i = 0; fit && i < u.count; i++)
        fit = ready(pool, u.types[i], 1);
    return fit ? rehearse(trial->control, trial->candidate, &u, once_scope) : unfit;
}

/* ---- frames ----------------------------------------------------------------------------- */

static void once_frame(const use *u, const tide_plan *plan)
{
    static const size_t none[TIDE_TYPED_MAX];
    void *data[TIDE_TYPED_MAX];
    tide_scope scope;
    scope.plan = plan;
    scope.site = u->site;
    __atomic_load_n(&plan->frame, __ATOMIC_RELAXED)(&scope, u->pool, u->count, u->types, none,
                                                    data);
    tide_site_leave(&scope);
}

tide_rehearsed tide_rehearse_frame(const tide_trial *trial, tide_pool *pool, tide_site *site, uint32_t count,
                                   const tide_type *types)
{
    use u = {.pool = pool, .site = site, .count = count, .types = types};
    bool fit = fast(pool) && count == trial->candidate->type_count &&
               memcmp(types, trial->candidate->types, count * sizeof *types) == 0;
    for (uint32_t i = 0; fit && i < count; i++)
        fit = ready(pool, types[i], tide_typed_repeats(types, i) + 1);
    return fit ? rehearse(trial->control, trial->candidate, &u, once_frame) : unfit;
}

/* ---- acquires and arrays ---------------------------------------------------------------- */

static void once_acquire(const use *u, const tide_plan *plan)
{
    tide_slot *next = u->shelf->next;
    (void)__atomic_load_n(&plan->acquire, __ATOMIC_RELAXED)(u->pool, u->type, 0, plan, u->site);
    u->shelf->next = next;
}

static bool saved_here(const tide_pool *pool, tide_type type)
{
    return fast(pool) && ready(pool, type, 1) && pool->shelves[type].saved_at == pool->tag;
}

tide_rehearsed tide_rehearse_acquire(const tide_trial *trial, tide_pool *pool, tide_type type,
                                     tide_site *site)
{
    if (type >= TIDE_TYPE_LIMIT || !foreseen(trial, type, 0, NULL) || !saved_here(pool, type))
        return unfit;
    use u = {.pool = pool, .site = site, .type = type, .shelf = &pool->shelves[type]};
    return rehearse(trial->control, trial->candidate, &u, once_acquire);
}

static void once_array(const use *u, const tide_plan *plan)
{
    tide_slot *next = u->shelf->next;
    (void)__atomic_load_n(&plan->array, __ATOMIC_RELAXED)(u->pool, u->type, u->ndim, u->shape, plan,
                                                          u->site);
    u->shelf->next = next;
    u->header->hits--;
}

tide_rehearsed tide_rehearse_array(const tide_trial *trial, tide_pool *pool, tide_type type,
                                   int ndim, const int64_t *shape, tide_site *site)
{
    if (type >= TIDE_TYPE_LIMIT || shape == NULL || ndim < 0 || ndim > TIDE_NDIM_MAX ||
        !foreseen(trial, type, ndim, shape) || !saved_here(pool, type))
        return unfit;
    tide_shelf *shelf = &pool->shelves[type];
    struct tide_array *header = shelf->next->array;
    if (!tide_array_like(header, TIDE_ROW_MAJOR, ndim, shape) ||
        header->length >= shelf->next->limit)
        return unfit;
    use u = {.pool = pool,
             .site = site,
             .type = type,
             .ndim = ndim,
             .shape = shape,
             .shelf = shelf,
             .header = header};
    return rehearse(trial->control, trial->candidate, &u, once_array);
}

/* ---- dispatches ------------------------------------------------------------------------- */

static void stand_in(void *args)
{
    (void)args;
}

/* A generic function of which every type that is asked for has a method that does nothing. */
static tide_generic *stage;

static void set_stage(void)
{
    stage = tide_generic_create("(trial)");
}

static tide_generic *stage_for(tide_type type)
{
    static pthread_once_t set = PTHREAD_ONCE_INIT;
    pthread_once(&set, set_stage);
    return stage != NULL && tide_generic_add(stage, type, stand_in) == TIDE_OK ? stage : NULL;
}

static void once_dispatch(const use *u, const tide_plan *plan)
{
    __atomic_load_n(&plan->dispatch, __ATOMIC_RELAXED)(u->generic, u->type, NULL, plan, u->site);
}

/* A copy of the candidate plays, with the stand-ins' places. (Its code is never unloaded.) */
tide_rehearsed tide_rehearse_dispatch(const tide_trial *trial, tide_generic *generic, tide_type type,
                                      tide_site *site)
{
    static tide_method *place = stand_in;
    if (generic == NULL || generic != trial->candidate->generic || !foreseen(trial, type, 0, NULL))
        return unfit;
    use u = {.site = site, .type = type, .generic = stage_for(type)};
    if (u.generic == NULL)
        return unfit;
    tide_plan_counts counts = {0};
    tide_plan candidate = {.kind = TIDE_KIND_DISPATCH, .generic = u.generic, .counts = &counts};
    candidate.dispatch = __atomic_load_n(&trial->candidate->dispatch, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < TIDE_PLAN_METHODS; i++)
        candidate.methods[i] = &place;
    return rehearse(trial->control, &candidate, &u, once_dispatch);
}

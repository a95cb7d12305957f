/* SPDX-License-Identifier: MIT */
/* Rehearsals: the thread does what its use is about to do, without the work in between, some dozens
 * of times by either plan in turn, in the same pool in the same state. */
#define _GNU_SOURCE
#include "jit/learn/rehearse.h"
#include "jit/learn/test_hooks.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include <tidepool/callsite.h>

#include "runtime/base/assert.h"
#include "runtime/pool/core.h"
#include "runtime/scope/plan.h"

enum { ROUNDS = 4, PAIRS = 32 };

_Static_assert(TIDE_TYPED_MAX <= TIDE_ITEMS_MAX, "a frame's types are items of its plan");

static uint64_t rehearse_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t (*tide_rehearse_clock)(void) = rehearse_monotonic_ns;

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

static uint64_t rehearse_time_uses(const use *u, const tide_plan *plan, once *one)
{
    uint64_t started = tide_rehearse_clock();
    for (int i = 0; i < PAIRS; i++)
        one(u, plan);
    return tide_rehearse_clock() - started;
}

static const tide_rehearsed rehearse_unfit = {false, 0, 0};

/* Both in turn: what disturbs one disturbs the other. The least of each counts. */
static tide_rehearsed rehearse_both(const tide_plan *control, const tide_plan *candidate,
                                    const use *u, once *one)
{
    tide_assert(control->kind == candidate->kind && control != candidate);
    tide_rehearsed least = {true, UINT64_MAX, UINT64_MAX};
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t a = rehearse_time_uses(u, control, one);
        uint64_t b = rehearse_time_uses(u, candidate, one);
        least.control_ns = a < least.control_ns ? a : least.control_ns;
        least.candidate_ns = b < least.candidate_ns ? b : least.candidate_ns;
    }
    return least;
}

/* Do fast paths pass in this pool at all? */
static bool rehearse_pool_is_fast(const tide_pool *pool)
{
    return !pool->core->careful && pool->log_top + TIDE_ITEMS_MAX < tide_log_open(pool);
}

/* Do so many slots of the type stand ready from `next` on? */
static bool rehearse_slots_ready(const tide_pool *pool, tide_type type, uint32_t slots)
{
    if (type >= TIDE_TYPE_LIMIT)
        return false;
    const tide_shelf *shelf = &pool->shelves[type];
    if (shelf->saved_at == 0)
        return false;
    for (uint32_t i = 0; i < slots; i++)
        if (shelf->next[i].limit == 0)
            return false;
    return true;
}

/* Do the candidate's guards foresee such a use? Any other would only show misses. */
static bool rehearse_is_foreseen(const tide_trial *trial, tide_type type, int ndim,
                                 const int64_t *shape)
{
    const tide_learned *learned =
        (const tide_learned *)(const void *)((const char *)trial - offsetof(tide_learned, trial));
    tide_assert(ndim >= 0 && ndim <= TIDE_NDIM_MAX && (ndim == 0 || shape != NULL));
    for (uint32_t i = 0; i < learned->items.count; i++) {
        const tide_item *item = &learned->items.items[i];
        if (item->type == type && item->ndim == ndim &&
            (ndim == 0 || memcmp(item->shape, shape, (size_t)ndim * sizeof *shape) == 0))
            return true;
    }
    return false;
}

/* ---- scopes ----------------------------------------------------------------------------- */

static void rehearse_once_scope(const use *u, const tide_plan *plan)
{
    tide_scope scope;
    uint64_t level = u->pool->tag;
    __atomic_load_n(&plan->enter, __ATOMIC_RELAXED)(&scope, u->pool, plan, u->site);
    for (uint32_t i = 0; i < u->count; i++)
        (void)tide_acquire_inline(u->pool, u->types[i], 0, TIDE_NOWHERE);
    tide_site_leave(&scope);
    tide_assert(u->pool->tag == level); /* nothing remains of it */
}

tide_rehearsed tide_rehearse_scope(const tide_trial *trial, tide_pool *pool, tide_site *site)
{
    use u = {.pool = pool,
             .site = site,
             .count = trial->control->type_count,
             .types = trial->control->types};
    tide_assert(u.count <= TIDE_ITEMS_MAX);
    bool fit = rehearse_pool_is_fast(pool);
    for (uint32_t i = 0; fit && i < u.count; i++)
        fit = rehearse_slots_ready(pool, u.types[i], 1);
    return fit ? rehearse_both(trial->control, trial->candidate, &u, rehearse_once_scope)
               : rehearse_unfit;
}

/* ---- frames ----------------------------------------------------------------------------- */

static void rehearse_once_frame(const use *u, const tide_plan *plan)
{
    static const size_t none[TIDE_TYPED_MAX];
    void *data[TIDE_TYPED_MAX];
    tide_assert(u->count <= TIDE_TYPED_MAX);
    tide_scope scope;
    scope.plan = plan;
    scope.site = u->site;
    __atomic_load_n(&plan->frame, __ATOMIC_RELAXED)(&scope, u->pool, u->count, u->types, none,
                                                    data);
    tide_site_leave(&scope);
}

tide_rehearsed tide_rehearse_frame(const tide_trial *trial, tide_pool *pool, tide_site *site,
                                   uint32_t count, const tide_type *types)
{
    use u = {.pool = pool, .site = site, .count = count, .types = types};
    bool fit = rehearse_pool_is_fast(pool) && count == trial->candidate->type_count &&
               memcmp(types, trial->candidate->types, count * sizeof *types) == 0;
    for (uint32_t i = 0; fit && i < count; i++)
        fit = rehearse_slots_ready(pool, types[i], tide_typed_repeats(types, i) + 1);
    return fit ? rehearse_both(trial->control, trial->candidate, &u, rehearse_once_frame)
               : rehearse_unfit;
}

/* ---- acquires and arrays ---------------------------------------------------------------- */

static void rehearse_once_acquire(const use *u, const tide_plan *plan)
{
    tide_slot *next = u->shelf->next;
    tide_assert(next->limit != 0);
    (void)__atomic_load_n(&plan->acquire, __ATOMIC_RELAXED)(u->pool, u->type, 0, plan, u->site);
    u->shelf->next = next;
}

/* Has the open level saved the shelf, and is a slot ready? Then an acquire writes no log. */
static bool rehearse_saved_here(const tide_pool *pool, tide_type type)
{
    return rehearse_pool_is_fast(pool) && rehearse_slots_ready(pool, type, 1) &&
           pool->shelves[type].saved_at == pool->tag;
}

tide_rehearsed tide_rehearse_acquire(const tide_trial *trial, tide_pool *pool, tide_type type,
                                     tide_site *site)
{
    if (type >= TIDE_TYPE_LIMIT || !rehearse_is_foreseen(trial, type, 0, NULL) ||
        !rehearse_saved_here(pool, type))
        return rehearse_unfit;
    use u = {.pool = pool, .site = site, .type = type, .shelf = &pool->shelves[type]};
    return rehearse_both(trial->control, trial->candidate, &u, rehearse_once_acquire);
}

static void rehearse_once_array(const use *u, const tide_plan *plan)
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
        !rehearse_is_foreseen(trial, type, ndim, shape) || !rehearse_saved_here(pool, type))
        return rehearse_unfit;
    tide_shelf *shelf = &pool->shelves[type];
    struct tide_array *header = shelf->next->array;
    if (!tide_array_like(header, TIDE_ROW_MAJOR, ndim, shape) ||
        header->length >= shelf->next->limit)
        return rehearse_unfit;
    use u = {.pool = pool,
             .site = site,
             .type = type,
             .ndim = ndim,
             .shape = shape,
             .shelf = shelf,
             .header = header};
    return rehearse_both(trial->control, trial->candidate, &u, rehearse_once_array);
}

/* ---- dispatches ------------------------------------------------------------------------- */

static void rehearse_stand_in(void *args)
{
    (void)args;
}

/* A generic function for rehearsals: its methods, one for each type rehearsed, do nothing. */
static tide_generic *rehearse_stage;

static void rehearse_set_stage(void)
{
    rehearse_stage = tide_generic_create("(trial)");
}

static tide_generic *rehearse_stage_for(tide_type type)
{
    static pthread_once_t set = PTHREAD_ONCE_INIT;
    pthread_once(&set, rehearse_set_stage);
    return rehearse_stage != NULL &&
                   tide_generic_add(rehearse_stage, type, rehearse_stand_in) == TIDE_OK
               ? rehearse_stage
               : NULL;
}

static void rehearse_once_dispatch(const use *u, const tide_plan *plan)
{
    __atomic_load_n(&plan->dispatch, __ATOMIC_RELAXED)(u->generic, u->type, NULL, plan, u->site);
}

/* Runs a copy of the candidate with stand-ins for methods. (Its code is never unloaded.) */
tide_rehearsed tide_rehearse_dispatch(const tide_trial *trial, tide_generic *generic,
                                      tide_type type, tide_site *site)
{
    static tide_method *place = rehearse_stand_in;
    if (generic == NULL || generic != trial->candidate->generic ||
        !rehearse_is_foreseen(trial, type, 0, NULL))
        return rehearse_unfit;
    use u = {.site = site, .type = type, .generic = rehearse_stage_for(type)};
    if (u.generic == NULL)
        return rehearse_unfit;
    tide_plan_counts counts = {0};
    tide_plan candidate = {.kind = TIDE_KIND_DISPATCH, .generic = u.generic, .counts = &counts};
    candidate.dispatch = __atomic_load_n(&trial->candidate->dispatch, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < TIDE_PLAN_METHODS; i++)
        candidate.methods[i] = &place;
    return rehearse_both(trial->control, &candidate, &u, rehearse_once_dispatch);
}

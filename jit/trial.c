/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "jit/trial.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include <tidepool/callsite.h>
#include <tidepool/generic.h>

#include "jit/event.h"
#include "runtime/assert.h"
#include "runtime/general.h"
#include "runtime/plan.h"
#include "runtime/pool.h"
#include "runtime/settings.h"
#include "runtime/site.h"

enum { ROUNDS = 4, PAIRS = 32 };

static uint64_t monotonic(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t (*tide_trial_clock)(void) = monotonic;

/* ---- rehearsing ------------------------------------------------------------------------- */

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
    uint64_t started = tide_trial_clock();
    for (int i = 0; i < PAIRS; i++)
        one(u, plan);
    return tide_trial_clock() - started;
}

/* Both in turn, so that whatever disturbs one disturbs the other; of each the least counts. */
static void rehearse(tide_trial *trial, const use *u, once *one)
{
    uint64_t control = UINT64_MAX, candidate = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t a = time_pairs(u, trial->control, one);
        uint64_t b = time_pairs(u, trial->candidate, one);
        control = a < control ? a : control;
        candidate = b < candidate ? b : candidate;
    }
    __atomic_fetch_add(&trial->control_ns, control, __ATOMIC_RELAXED);
    __atomic_fetch_add(&trial->candidate_ns, candidate, __ATOMIC_RELAXED);
    __atomic_fetch_add(&trial->uses, 1, __ATOMIC_RELAXED);
}

/* Is the pool one in which fast paths pass at all? */
static bool fast(const tide_pool *pool)
{
    return !pool->core->careful && pool->log_top + TIDE_ITEMS_MOST < tide_log_open(pool);
}

/* So many slots of the type stand ready from `next` on. */
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
    tide_scope_end(&scope);
}

static void rehearse_scope(tide_trial *trial, tide_pool *pool, tide_site *site)
{
    use u = {.pool = pool,
             .site = site,
             .count = trial->control->type_count,
             .types = trial->control->types};
    bool fit = fast(pool);
    for (uint32_t i = 0; fit && i < u.count; i++)
        fit = ready(pool, u.types[i], 1);
    if (fit)
        rehearse(trial, &u, once_scope);
}

/* ---- frames ----------------------------------------------------------------------------- */

static void once_frame(const use *u, const tide_plan *plan)
{
    static const size_t none[TIDE_TYPED_MOST];
    void *data[TIDE_TYPED_MOST];
    tide_scope scope;
    scope.plan = plan;
    scope.site = u->site;
    __atomic_load_n(&plan->frame, __ATOMIC_RELAXED)(&scope, u->pool, u->count, u->types, none,
                                                    data);
    tide_scope_end(&scope);
}

static void rehearse_frame(tide_trial *trial, tide_pool *pool, tide_site *site, uint32_t count,
                           const tide_type *types)
{
    use u = {.pool = pool, .site = site, .count = count, .types = types};
    bool fit = fast(pool) && count == trial->candidate->type_count &&
               memcmp(types, trial->candidate->types, count * sizeof *types) == 0;
    for (uint32_t i = 0; fit && i < count; i++)
        fit = ready(pool, types[i], tide_typed_repeats(types, i) + 1);
    if (fit)
        rehearse(trial, &u, once_frame);
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

static void rehearse_acquire(tide_trial *trial, tide_pool *pool, tide_type type, tide_site *site)
{
    if (type >= TIDE_TYPE_LIMIT || !foreseen(trial, type, 0, NULL) || !saved_here(pool, type))
        return;
    use u = {.pool = pool, .site = site, .type = type, .shelf = &pool->shelves[type]};
    rehearse(trial, &u, once_acquire);
}

static void once_array(const use *u, const tide_plan *plan)
{
    tide_slot *next = u->shelf->next;
    (void)__atomic_load_n(&plan->array, __ATOMIC_RELAXED)(u->pool, u->type, u->ndim, u->shape,
                                                          plan, u->site);
    u->shelf->next = next;
    u->header->hits--;
}

static void rehearse_array(tide_trial *trial, tide_pool *pool, tide_type type, int ndim,
                           const int64_t *shape, tide_site *site)
{
    if (type >= TIDE_TYPE_LIMIT || shape == NULL || ndim < 0 || ndim > TIDE_NDIM_MOST ||
        !foreseen(trial, type, ndim, shape) || !saved_here(pool, type))
        return;
    tide_shelf *shelf = &pool->shelves[type];
    struct tide_array *header = shelf->next->array;
    if (!tide_array_like(header, TIDE_ROW_MAJOR, ndim, shape) ||
        header->length >= shelf->next->limit)
        return;
    use u = {.pool = pool,
             .site = site,
             .type = type,
             .ndim = ndim,
             .shape = shape,
             .shelf = shelf,
             .header = header};
    rehearse(trial, &u, once_array);
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
static void rehearse_dispatch(tide_trial *trial, tide_generic *generic, tide_type type,
                              tide_site *site)
{
    static tide_method *place = stand_in;
    if (generic == NULL || generic != trial->candidate->generic ||
        !foreseen(trial, type, 0, NULL))
        return;
    use u = {.site = site, .type = type, .generic = stage_for(type)};
    if (u.generic == NULL)
        return;
    tide_plan_counts counts = {0};
    tide_plan candidate = {.kind = TIDE_KIND_DISPATCH, .generic = u.generic, .counts = &counts};
    candidate.dispatch = __atomic_load_n(&trial->candidate->dispatch, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < TIDE_PLAN_METHODS; i++)
        candidate.methods[i] = &place;
    tide_trial staged = {.control = trial->control, .candidate = &candidate};
    rehearse(&staged, &u, once_dispatch);
    __atomic_fetch_add(&trial->control_ns, staged.control_ns, __ATOMIC_RELAXED);
    __atomic_fetch_add(&trial->candidate_ns, staged.candidate_ns, __ATOMIC_RELAXED);
    __atomic_fetch_add(&trial->uses, 1, __ATOMIC_RELAXED);
}

/* ---- the plan of a site on trial -------------------------------------------------------- */

static tide_trial *trial_of(const tide_plan *plan)
{
    return (tide_trial *)(uintptr_t)plan; /* its first member */
}

/* May this use rehearse? The last one to do so lets the plan in force run alone again. Each that may
 * says when it is over (call_over): others may still be at it when the last is taken. */
static bool take_call(tide_trial *trial, tide_site *site)
{
    if (__atomic_load_n(&trial->calls_left, __ATOMIC_RELAXED) <= 0)
        return false;
    int64_t left = __atomic_fetch_sub(&trial->calls_left, 1, __ATOMIC_RELAXED);
    if (left == 1) {
        const tide_plan *self = &trial->plan;
        __atomic_compare_exchange_n(&site->plan, &self, trial->control, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED);
    }
    return left > 0;
}

static void call_over(tide_trial *trial)
{
    __atomic_fetch_sub(&trial->calls_open, 1, __ATOMIC_RELEASE);
}

static void enter(tide_scope *scope, tide_pool *pool, const tide_plan *plan, tide_site *site)
{
    tide_trial *trial = trial_of(plan);
    if (take_call(trial, site)) {
        rehearse_scope(trial, pool, site);
        call_over(trial);
    }
    trial->control->enter(scope, pool, trial->control, site);
}

/* Scopes are left by the plan in force, unless who observes everything put this one back. */
static void leave(tide_scope *scope)
{
    scope->plan = trial_of(scope->plan)->control;
    scope->plan->leave(scope);
}

static void frame(tide_scope *scope, tide_pool *pool, uint32_t count, const tide_type *types,
                  const size_t *counts, void **data)
{
    tide_trial *trial = trial_of(scope->plan);
    if (take_call(trial, scope->site)) {
        rehearse_frame(trial, pool, scope->site, count, types);
        call_over(trial);
    }
    scope->plan = trial->control;
    trial->control->frame(scope, pool, count, types, counts, data);
}

static void *acquire(tide_pool *pool, tide_type type, size_t n, const tide_plan *plan,
                     tide_site *site)
{
    tide_trial *trial = trial_of(plan);
    if (take_call(trial, site)) {
        rehearse_acquire(trial, pool, type, site);
        call_over(trial);
    }
    return trial->control->acquire(pool, type, n, trial->control, site);
}

static tide_array *array(tide_pool *pool, tide_type type, int ndim, const int64_t *shape,
                         const tide_plan *plan, tide_site *site)
{
    tide_trial *trial = trial_of(plan);
    if (take_call(trial, site)) {
        rehearse_array(trial, pool, type, ndim, shape, site);
        call_over(trial);
    }
    return trial->control->array(pool, type, ndim, shape, trial->control, site);
}

static void dispatch(tide_generic *generic, tide_type type, void *args, const tide_plan *plan,
                     tide_site *site)
{
    tide_trial *trial = trial_of(plan);
    if (take_call(trial, site)) {
        rehearse_dispatch(trial, generic, type, site);
        call_over(trial);
    }
    trial->control->dispatch(generic, type, args, trial->control, site);
}

static const tide_plan on_trial[TIDE_KIND_COUNT] = {
    [TIDE_KIND_SCOPE] = {.enter = enter, .leave = leave},
    [TIDE_KIND_FRAME] = {.frame = frame},
    [TIDE_KIND_ACQUIRE] = {.acquire = acquire},
    [TIDE_KIND_ARRAY] = {.array = array},
    [TIDE_KIND_DISPATCH] = {.dispatch = dispatch},
};

/* ---- holding one ------------------------------------------------------------------------ */

void tide_trial_prepare(const tide_learner *learner, tide_learned *plan)
{
    tide_kind kind = learner->site->kind;
    tide_trial *trial = &plan->trial;
    trial->control = kind == TIDE_KIND_SCOPE ? &plan->table : &tide_plans_general[kind];
    trial->candidate = &plan->code;
    trial->plan = *trial->control;
    trial->plan.enter = on_trial[kind].enter;
    trial->plan.leave = on_trial[kind].leave;
}

void tide_trial_begin(tide_learner *learner, tide_learned *plan)
{
    tide_trial *trial = &plan->trial;
    tide_assert(plan->state == TIDE_CODE_LOADED);
    plan->state = TIDE_CODE_TRIED;
    __atomic_store_n(&trial->uses, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&trial->control_ns, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&trial->candidate_ns, 0, __ATOMIC_RELAXED);
    int64_t calls = (int64_t)tide_setting_get(TIDE_SETTING_trial_calls);
    __atomic_store_n(&trial->calls_open, calls, __ATOMIC_RELAXED);
    __atomic_store_n(&trial->calls_left, calls, __ATOMIC_RELAXED);
    tide_site_publish(learner->site);
}

bool tide_trial_done(const tide_learned *plan)
{
    return __atomic_load_n(&plan->trial.calls_open, __ATOMIC_ACQUIRE) <= 0;
}

const tide_plan *tide_trial_wrap(tide_learned *learned, const tide_plan *plan)
{
    return learned->state == TIDE_CODE_TRIED && plan == learned->trial.control &&
                   __atomic_load_n(&learned->trial.calls_left, __ATOMIC_RELAXED) > 0
               ? &learned->trial.plan
               : plan;
}

bool tide_trial_won(const tide_learned *plan, tide_reason *reason)
{
    const tide_trial *trial = &plan->trial;
    if (__atomic_load_n(&trial->uses, __ATOMIC_RELAXED) == 0) {
        *reason = TIDE_REASON_trial_void;
        return false;
    }
    double control = (double)__atomic_load_n(&trial->control_ns, __ATOMIC_RELAXED);
    double candidate = (double)__atomic_load_n(&trial->candidate_ns, __ATOMIC_RELAXED);
    bool won = control >= candidate * tide_setting_get(TIDE_SETTING_trial_margin);
    *reason = won ? TIDE_REASON_trial_won : TIDE_REASON_trial_lost;
    return won;
}

void tide_trial_end(tide_learner *learner, tide_learned *plan)
{
    if (plan->state != TIDE_CODE_TRIED)
        return;
    __atomic_store_n(&plan->trial.calls_left, 0, __ATOMIC_RELAXED);
    plan->state = TIDE_CODE_LOADED;
    tide_site_publish(learner->site);
}

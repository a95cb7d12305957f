/* SPDX-License-Identifier: MIT */
/* The plan of a site on trial, and the holding of a trial: its calls, its figures, its end. */
#include "jit/trial.h"

#include "jit/rehearse.h"
#include "runtime/assert.h"
#include "runtime/general.h"
#include "runtime/plan.h"
#include "runtime/settings.h"
#include "runtime/site.h"

/* ---- the plan of a site on trial -------------------------------------------------------- */

static tide_trial *trial_of(const tide_plan *plan)
{
    return (tide_trial *)(uintptr_t)plan; /* its first member */
}

/* May this use rehearse? The last one to do so lets the plan in force run alone again. Each that
 * may says when it is over (call_over): others may still be at it when the last is taken. */
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
        tide_rehearse_scope(trial, pool, site);
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
        tide_rehearse_frame(trial, pool, scope->site, count, types);
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
        tide_rehearse_acquire(trial, pool, type, site);
        call_over(trial);
    }
    return trial->control->acquire(pool, type, n, trial->control, site);
}

static tide_array *array(tide_pool *pool, tide_type type, int ndim, const int64_t *shape,
                         const tide_plan *plan, tide_site *site)
{
    tide_trial *trial = trial_of(plan);
    if (take_call(trial, site)) {
        tide_rehearse_array(trial, pool, type, ndim, shape, site);
        call_over(trial);
    }
    return trial->control->array(pool, type, ndim, shape, trial->control, site);
}

static void dispatch(tide_generic *generic, tide_type type, void *args, const tide_plan *plan,
                     tide_site *site)
{
    tide_trial *trial = trial_of(plan);
    if (take_call(trial, site)) {
        tide_rehearse_dispatch(trial, generic, type, site);
        call_over(trial);
    }
    trial->control->dispatch(generic, type, args, trial->control, site);
}

static const tide_plan on_trial[TIDE_KIND_COUNT] = {
    [TIDE_KIND_SCOPE] = {.enter = enter, .leave = leave}, [TIDE_KIND_FRAME] = {.frame = frame},
    [TIDE_KIND_ACQUIRE] = {.acquire = acquire},           [TIDE_KIND_ARRAY] = {.array = array},
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

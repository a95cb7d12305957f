/* SPDX-License-Identifier: MIT */
/* The plan that a site runs while it is on trial; how a trial begins, counts its uses, and ends. */
#include "jit/learn/trial.h"

#include "jit/learn/rehearse.h"
#include "runtime/base/assert.h"
#include "runtime/base/settings.h"
#include "runtime/scope/general.h"
#include "runtime/scope/plan.h"
#include "runtime/scope/site.h"

/* ---- the plan of a site on trial -------------------------------------------------------- */

_Static_assert(offsetof(tide_trial, plan) == 0, "a trial is found by its plan");

static tide_trial *trial_of(const tide_plan *plan)
{
    return (tide_trial *)(uintptr_t)plan; /* its first member */
}

/* All that is counted of a trial stands in one word: a serial, the uses still wanted, those under
 * way. Each beginning and each end of a trial moves the serial on. So a rehearsal that outlives its
 * trial, or a fork, finds another serial and changes nothing of the next trial. */
enum { LEFT_SHIFT = 16, SERIAL_SHIFT = 32, CALLS_MAX = UINT16_MAX };

_Static_assert(CALLS_MAX == (1 << LEFT_SHIFT) - 1 && SERIAL_SHIFT == 2 * LEFT_SHIFT,
               "the three parts of the word do not overlap");

static uint64_t trial_left(uint64_t calls)
{
    return calls >> LEFT_SHIFT & CALLS_MAX;
}

static uint64_t trial_under_way(uint64_t calls)
{
    return calls & CALLS_MAX;
}

static uint64_t trial_serial(uint64_t calls)
{
    return calls >> SERIAL_SHIFT;
}

/* Moves the serial on: nothing is under way, `left` uses are wanted. The registry is locked, so
 * nobody else moves it. */
static void trial_set_left(tide_trial *trial, uint64_t left)
{
    uint64_t serial = trial_serial(__atomic_load_n(&trial->calls, __ATOMIC_RELAXED)) + 1;
    tide_assert(left <= CALLS_MAX);
    __atomic_store_n(&trial->calls, serial << SERIAL_SHIFT | left << LEFT_SHIFT, __ATOMIC_RELEASE);
}

/* May this use rehearse? The last one that may puts the plan in force back. Each one that may calls
 * trial_call_over when it is done: others may still be under way when the last is taken. */
static bool trial_take_call(tide_trial *trial, tide_site *site, uint64_t *serial)
{
    uint64_t calls = __atomic_load_n(&trial->calls, __ATOMIC_RELAXED);
    do {
        if (trial_left(calls) == 0 || trial_under_way(calls) == CALLS_MAX)
            return false;
    } while (!__atomic_compare_exchange_n(&trial->calls, &calls,
                                          calls - (UINT64_C(1) << LEFT_SHIFT) + 1, true,
                                          __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
    if (trial_left(calls) == 1) {
        const tide_plan *self = &trial->plan;
        __atomic_compare_exchange_n(&site->plan, &self, trial->control, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED);
    }
    *serial = trial_serial(calls);
    return true;
}

static void trial_add_figures(tide_trial *trial, tide_rehearsed figures)
{
    tide_assert(figures.fit);
    __atomic_fetch_add(&trial->control_ns, figures.control_ns, __ATOMIC_RELAXED);
    __atomic_fetch_add(&trial->candidate_ns, figures.candidate_ns, __ATOMIC_RELAXED);
    __atomic_fetch_add(&trial->uses, 1, __ATOMIC_RELAXED);
}

/* The figures come first: who finds nothing under way reads them. (If the trial ends just here they
 * may count in the next one, which is between the same two plans.) */
static void trial_call_over(tide_trial *trial, uint64_t serial, tide_rehearsed figures)
{
    uint64_t calls = __atomic_load_n(&trial->calls, __ATOMIC_RELAXED);
    if (figures.fit && trial_serial(calls) == serial)
        trial_add_figures(trial, figures);
    do {
        if (trial_serial(calls) != serial)
            return;
        tide_assert(trial_under_way(calls) != 0);
    } while (!__atomic_compare_exchange_n(&trial->calls, &calls, calls - 1, true, __ATOMIC_RELEASE,
                                          __ATOMIC_RELAXED));
}

/* ---- uses of a site on trial ------------------------------------------------------------ */

/* The control's code pointers never change, so a plain load reads them. */

static void trial_enter(tide_scope *scope, tide_pool *pool, const tide_plan *plan, tide_site *site)
{
    tide_trial *trial = trial_of(plan);
    uint64_t serial;
    if (trial_take_call(trial, site, &serial))
        trial_call_over(trial, serial, tide_rehearse_scope(trial, pool, site));
    trial->control->enter(scope, pool, trial->control, site);
}

/* Scopes usually leave by the plan in force, with which they entered. They come here only if an
 * observing plan put this one back into them. */
static void trial_leave(tide_scope *scope)
{
    scope->plan = trial_of(scope->plan)->control;
    scope->plan->leave(scope);
}

static void trial_frame(tide_scope *scope, tide_pool *pool, uint32_t count, const tide_type *types,
                        const size_t *counts, void **data)
{
    tide_trial *trial = trial_of(scope->plan);
    uint64_t serial;
    if (trial_take_call(trial, scope->site, &serial))
        trial_call_over(trial, serial, tide_rehearse_frame(trial, pool, scope->site, count, types));
    scope->plan = trial->control;
    trial->control->frame(scope, pool, count, types, counts, data);
}

static void *trial_acquire(tide_pool *pool, tide_type type, size_t n, const tide_plan *plan,
                           tide_site *site)
{
    tide_trial *trial = trial_of(plan);
    uint64_t serial;
    if (trial_take_call(trial, site, &serial))
        trial_call_over(trial, serial, tide_rehearse_acquire(trial, pool, type, site));
    return trial->control->acquire(pool, type, n, trial->control, site);
}

static tide_array *trial_array(tide_pool *pool, tide_type type, int ndim, const int64_t *shape,
                               const tide_plan *plan, tide_site *site)
{
    tide_trial *trial = trial_of(plan);
    uint64_t serial;
    if (trial_take_call(trial, site, &serial))
        trial_call_over(trial, serial, tide_rehearse_array(trial, pool, type, ndim, shape, site));
    return trial->control->array(pool, type, ndim, shape, trial->control, site);
}

static void trial_dispatch(tide_generic *generic, tide_type type, void *args, const tide_plan *plan,
                           tide_site *site)
{
    tide_trial *trial = trial_of(plan);
    uint64_t serial;
    if (trial_take_call(trial, site, &serial))
        trial_call_over(trial, serial, tide_rehearse_dispatch(trial, generic, type, site));
    trial->control->dispatch(generic, type, args, trial->control, site);
}

static const tide_plan trial_plans[TIDE_KIND_COUNT] = {
    [TIDE_KIND_SCOPE] = {.enter = trial_enter, .leave = trial_leave},
    [TIDE_KIND_FRAME] = {.frame = trial_frame},
    [TIDE_KIND_ACQUIRE] = {.acquire = trial_acquire},
    [TIDE_KIND_ARRAY] = {.array = trial_array},
    [TIDE_KIND_DISPATCH] = {.dispatch = trial_dispatch},
};

/* ---- holding one ------------------------------------------------------------------------ */

void tide_trial_prepare(const tide_learner *learner, tide_learned *plan)
{
    tide_kind kind = learner->site->kind;
    tide_trial *trial = &plan->trial;
    _Static_assert(TIDE_KIND_COUNT == 5, "trial_plans has a row for each kind");
    tide_assert(kind < TIDE_KIND_COUNT && plan->code.tier == TIDE_TIER_COMPILED);
    trial->control = kind == TIDE_KIND_SCOPE ? &plan->table : &tide_plans_general[kind];
    trial->candidate = &plan->code;
    trial->plan = *trial->control;
    trial->plan.enter = trial_plans[kind].enter;
    trial->plan.leave = trial_plans[kind].leave;
    tide_assert(trial->plan.enter != NULL && trial->control->enter != NULL);
    tide_assert(trial_left(trial->calls) == 0); /* not open */
}

void tide_trial_begin(tide_learner *learner, tide_learned *plan)
{
    tide_trial *trial = &plan->trial;
    tide_assert(plan->state == TIDE_CODE_LOADED && plan->artefact != NULL);
    tide_assert(learner->plans[learner->in_force] == plan);
    plan->state = TIDE_CODE_TRIED;
    __atomic_store_n(&trial->uses, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&trial->control_ns, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&trial->candidate_ns, 0, __ATOMIC_RELAXED);
    trial_set_left(trial, (uint64_t)tide_setting_get(TIDE_SETTING_trial_calls));
    tide_site_publish(learner->site);
}

bool tide_trial_done(const tide_learned *plan)
{
    uint64_t calls = __atomic_load_n(&plan->trial.calls, __ATOMIC_ACQUIRE);
    return trial_left(calls) == 0 && trial_under_way(calls) == 0;
}

const tide_plan *tide_trial_wrap(tide_learned *learned, const tide_plan *plan)
{
    return learned->state == TIDE_CODE_TRIED && plan == learned->trial.control &&
                   trial_left(__atomic_load_n(&learned->trial.calls, __ATOMIC_RELAXED)) > 0
               ? &learned->trial.plan
               : plan;
}

bool tide_trial_won(const tide_learned *plan, tide_reason *reason)
{
    const tide_trial *trial = &plan->trial;
    tide_assert(plan->state == TIDE_CODE_TRIED && tide_trial_done(plan));
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
    trial_set_left(&plan->trial, 0);
    tide_assert(plan->artefact != NULL);
    plan->state = TIDE_CODE_LOADED;
    tide_site_publish(learner->site);
}

/* SPDX-License-Identifier: MIT */
/* The plan of a site on trial, and the holding of a trial: its calls, its figures, its end. */
#include "jit/learn/trial.h"

#include "jit/learn/rehearse.h"
#include "runtime/base/assert.h"
#include "runtime/scope/general.h"
#include "runtime/scope/plan.h"
#include "runtime/base/settings.h"
#include "runtime/scope/site.h"

/* ---- the plan of a site on trial -------------------------------------------------------- */

static tide_trial *trial_of(const tide_plan *plan)
{
    return (tide_trial *)(uintptr_t)plan; /* its first member */
}

/* All that is counted of a trial stands in one word: a serial that each beginning and each end of
 * one moves on, the uses still wanted, those under way. So a rehearsal that outlives its trial, or
 * its process' fork, finds another serial and changes nothing of the next one. */
enum { LEFT_SHIFT = 16, SERIAL_SHIFT = 32, CALLS_MAX = UINT16_MAX };

static uint64_t left_of(uint64_t calls)
{
    return calls >> LEFT_SHIFT & CALLS_MAX;
}

static uint64_t under_way(uint64_t calls)
{
    return calls & CALLS_MAX;
}

static uint64_t serial_of(uint64_t calls)
{
    return calls >> SERIAL_SHIFT;
}

/* Moves the serial on; nothing is under way, `left` uses are wanted. Registry locked, so no other
 * serial comes between. */
static void start_count(tide_trial *trial, uint64_t left)
{
    uint64_t serial = serial_of(__atomic_load_n(&trial->calls, __ATOMIC_RELAXED)) + 1;
    tide_assert(left <= CALLS_MAX);
    __atomic_store_n(&trial->calls, serial << SERIAL_SHIFT | left << LEFT_SHIFT, __ATOMIC_RELEASE);
}

/* May this use rehearse? The last one to do so lets the plan in force run alone again. Each that
 * may says when it is over (call_over): others may still be at it when the last is taken. */
static bool take_call(tide_trial *trial, tide_site *site, uint64_t *serial)
{
    uint64_t calls = __atomic_load_n(&trial->calls, __ATOMIC_RELAXED);
    do {
        if (left_of(calls) == 0 || under_way(calls) == CALLS_MAX)
            return false;
    } while (!__atomic_compare_exchange_n(&trial->calls, &calls,
                                          calls - (UINT64_C(1) << LEFT_SHIFT) + 1, true,
                                          __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
    if (left_of(calls) == 1) {
        const tide_plan *self = &trial->plan;
        __atomic_compare_exchange_n(&site->plan, &self, trial->control, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED);
    }
    *serial = serial_of(calls);
    return true;
}

static void add(tide_trial *trial, tide_rehearsed figures)
{
    __atomic_fetch_add(&trial->control_ns, figures.control_ns, __ATOMIC_RELAXED);
    __atomic_fetch_add(&trial->candidate_ns, figures.candidate_ns, __ATOMIC_RELAXED);
    __atomic_fetch_add(&trial->uses, 1, __ATOMIC_RELAXED);
}

/* The figures first: who finds nothing under way reads them. (If the trial ends just here they may
 * count in the next one. It is between the same two plans.) */
static void call_over(tide_trial *trial, uint64_t serial, tide_rehearsed figures)
{
    uint64_t calls = __atomic_load_n(&trial->calls, __ATOMIC_RELAXED);
    if (figures.fit && serial_of(calls) == serial)
        add(trial, figures);
    do {
        if (serial_of(calls) != serial)
            return;
        tide_assert(under_way(calls) != 0);
    } while (!__atomic_compare_exchange_n(&trial->calls, &calls, calls - 1, true, __ATOMIC_RELEASE,
                                          __ATOMIC_RELAXED));
}

static void enter(tide_scope *scope, tide_pool *pool, const tide_plan *plan, tide_site *site)
{
    tide_trial *trial = trial_of(plan);
    uint64_t serial;
    if (take_call(trial, site, &serial))
        call_over(trial, serial, tide_rehearse_scope(trial, pool, site));
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
    uint64_t serial;
    if (take_call(trial, scope->site, &serial))
        call_over(trial, serial, tide_rehearse_frame(trial, pool, scope->site, count, types));
    scope->plan = trial->control;
    trial->control->frame(scope, pool, count, types, counts, data);
}

static void *acquire(tide_pool *pool, tide_type type, size_t n, const tide_plan *plan,
                     tide_site *site)
{
    tide_trial *trial = trial_of(plan);
    uint64_t serial;
    if (take_call(trial, site, &serial))
        call_over(trial, serial, tide_rehearse_acquire(trial, pool, type, site));
    return trial->control->acquire(pool, type, n, trial->control, site);
}

static tide_array *array(tide_pool *pool, tide_type type, int ndim, const int64_t *shape,
                         const tide_plan *plan, tide_site *site)
{
    tide_trial *trial = trial_of(plan);
    uint64_t serial;
    if (take_call(trial, site, &serial))
        call_over(trial, serial, tide_rehearse_array(trial, pool, type, ndim, shape, site));
    return trial->control->array(pool, type, ndim, shape, trial->control, site);
}

static void dispatch(tide_generic *generic, tide_type type, void *args, const tide_plan *plan,
                     tide_site *site)
{
    tide_trial *trial = trial_of(plan);
    uint64_t serial;
    if (take_call(trial, site, &serial))
        call_over(trial, serial, tide_rehearse_dispatch(trial, generic, type, site));
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
    start_count(trial, (uint64_t)tide_setting_get(TIDE_SETTING_trial_calls));
    tide_site_publish(learner->site);
}

bool tide_trial_done(const tide_learned *plan)
{
    uint64_t calls = __atomic_load_n(&plan->trial.calls, __ATOMIC_ACQUIRE);
    return left_of(calls) == 0 && under_way(calls) == 0;
}

const tide_plan *tide_trial_wrap(tide_learned *learned, const tide_plan *plan)
{
    return learned->state == TIDE_CODE_TRIED && plan == learned->trial.control &&
                   left_of(__atomic_load_n(&learned->trial.calls, __ATOMIC_RELAXED)) > 0
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
    start_count(&plan->trial, 0);
    plan->state = TIDE_CODE_LOADED;
    tide_site_publish(learner->site);
}

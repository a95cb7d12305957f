/* SPDX-License-Identifier: MIT */
/* How a trial is opened for bursts of uses, judged, and ended. */
#include "jit/learn/trial.h"

#include "jit/learn/timed.h"
#include "profiler/observe.h"
#include "runtime/base/assert.h"
#include "runtime/base/os.h"
#include "runtime/base/settings.h"
#include "runtime/scope/plan.h"
#include "runtime/scope/site.h"

/* ---- holding one ------------------------------------------------------------------------ */

/* Made once for a plan, since scopes may be inside it as long as the site is loaded. */
static bool trial_make(const tide_learner *learner, tide_learned *plan)
{
    tide_kind kind = learner->site->kind;
    tide_assert(kind < TIDE_KIND_COUNT && plan->code.tier == TIDE_TIER_COMPILED);
    if (plan->trial != NULL)
        return true;
    plan->trial = tide_os_resize(NULL, sizeof *plan->trial);
    if (plan->trial == NULL)
        return false;
    /* So sites in one loop draw other orders, and do not change turns together. */
    *plan->trial = (tide_trial){.bursts = learner->number << 32};
    const tide_plan *control = kind == TIDE_KIND_SCOPE ? &plan->table : &tide_plans_general[kind];
    tide_timed_prepare(plan->trial, control, &plan->code);
    return true;
}

static uint64_t trial_whole_pairs(uint64_t uses)
{
    return (uses + TIDE_TRIAL_PAIR - 1) / TIDE_TRIAL_PAIR * TIDE_TRIAL_PAIR;
}

static void trial_start(tide_trial *trial)
{
    tide_timed_clear(trial);
    for (unsigned plan = 0; plan < TIDE_TRIAL_PLANS; plan++)
        trial->taken[plan] = (tide_series){0};
    trial->gain = (tide_series){0};
    trial->remaining = trial_whole_pairs(tide_constant_whole(TIDE_CONSTANT_trial_calls));
    trial->open = true;
}

static void trial_open_burst(tide_learner *learner, tide_trial *trial)
{
    enum { WARM_UP = 2 * TIDE_TRIAL_PAIR };
    uint64_t burst = trial_whole_pairs(tide_constant_whole(TIDE_CONSTANT_trial_burst));
    if (!trial->warm)
        burst = WARM_UP;
    if (burst > trial->remaining)
        burst = trial->remaining;
    tide_assert(burst > 0);
    trial->remaining -= burst;
    tide_timed_open(trial, burst);
    tide_site_publish(learner->site);
}

bool tide_trial_begin(tide_learner *learner, tide_learned *plan)
{
    tide_assert(plan->state == TIDE_CODE_LOADED);
    tide_assert(learner->plans[learner->in_force] == plan);
    if (!trial_make(learner, plan))
        return false;
    tide_trial *trial = plan->trial;
    plan->state = TIDE_CODE_TRIED;
    if (!trial->open)
        trial_start(trial);
    else if (trial->remaining ==
             0) /* it was interrupted at its very end: a pair, and its verdict */
        trial->remaining = TIDE_TRIAL_PAIR;
    trial_open_burst(learner, trial);
    return true;
}

bool tide_trial_burst_over(const tide_learned *plan)
{
    return plan->state == TIDE_CODE_TRIED && tide_timed_left(plan->trial) == 0;
}

/* A pinned site runs what it is pinned to. And an observing plan would not know by which of the two
 * a scope was entered. */
const tide_plan *tide_trial_wrap(tide_learned *learned, const tide_plan *plan)
{
    const tide_trial *trial = learned->trial;
    return learned->state == TIDE_CODE_TRIED && plan == trial->timed[TIDE_TRIAL_CONTROL].timed &&
                   tide_timed_left(trial) != 0 && !learned->learner->site->record->pinned &&
                   !tide_observe_always_on()
               ? &trial->plan
               : plan;
}

/* Takes the pairs of which so many uses of the burst have left nothing open. */
static void trial_gather(tide_trial *trial, uint64_t left)
{
    uint32_t first = (uint32_t)(trial_whole_pairs(left) / TIDE_TRIAL_PAIR);
    tide_timed_figures figures;
    tide_assert(first <= trial->burst_pairs);
    if (!trial->warm && left == 0)
        tide_timed_warm_up(trial);
    for (uint32_t pair = 0; trial->warm && pair < trial->burst_pairs; pair++) {
        if (!tide_timed_collect(trial, pair, &figures) || pair < first)
            continue;
        const double *ns = figures.ns;
        for (unsigned plan = 0; plan < TIDE_TRIAL_PLANS; plan++)
            tide_series_add(&trial->taken[plan], ns[plan]);
        tide_series_add(&trial->gain,
                        ns[TIDE_TRIAL_CONTROL] - tide_constant_get(TIDE_CONSTANT_trial_margin) *
                                                     ns[TIDE_TRIAL_CANDIDATE]);
    }
    trial->burst_pairs = 0;
}

/* What was not used of a burst may be asked for again. */
void tide_trial_end(tide_learner *learner, tide_learned *plan)
{
    tide_trial *trial = plan->trial;
    if (plan->state != TIDE_CODE_TRIED)
        return;
    uint64_t left = tide_timed_close(trial);
    trial_gather(trial, left);
    trial->remaining += trial_whole_pairs(left);
    plan->state = TIDE_CODE_LOADED;
    tide_site_publish(learner->site);
}

void tide_trial_forget(tide_learned *plan)
{
    tide_assert(plan->state != TIDE_CODE_TRIED);
    if (plan->trial != NULL)
        plan->trial->open = false;
}

/* ---- judging ---------------------------------------------------------------------------- */

tide_trial_figures tide_trial_measured(const tide_learned *plan)
{
    const tide_trial *trial = plan->trial;
    if (trial == NULL)
        return (tide_trial_figures){0};
    return (tide_trial_figures){.uses = trial->gain.count * TIDE_TRIAL_PAIR,
                                .control_ns = trial->taken[TIDE_TRIAL_CONTROL].mean,
                                .candidate_ns = trial->taken[TIDE_TRIAL_CANDIDATE].mean,
                                .error_ns = tide_series_error(&trial->gain)};
}

/* Four standard errors, where two would do for one look: a trial is looked at some dozens of times,
 * and shall seldom be wrong in any. */
static tide_verdict trial_compare(const tide_trial *trial)
{
    enum { PAIRS_MIN = 16, ERRORS = 4 };
    double error = ERRORS * tide_series_error(&trial->gain);
    if (trial->gain.count < PAIRS_MIN)
        return TIDE_VERDICT_OPEN;
    return trial->gain.mean > error    ? TIDE_VERDICT_WON
           : trial->gain.mean < -error ? TIDE_VERDICT_LOST
                                       : TIDE_VERDICT_OPEN;
}

tide_verdict tide_trial_judge(tide_learner *learner, tide_learned *plan)
{
    tide_trial *trial = plan->trial;
    tide_assert(plan->state == TIDE_CODE_TRIED);
    bool over = tide_timed_left(trial) == 0;
    if (over)
        trial_gather(trial, 0);
    tide_verdict verdict = trial_compare(trial);
    if (verdict == TIDE_VERDICT_OPEN && over && trial->remaining > 0)
        trial_open_burst(learner, trial);
    else if (verdict == TIDE_VERDICT_OPEN && over)
        verdict = TIDE_VERDICT_EVEN;
    if (verdict != TIDE_VERDICT_OPEN) {
        tide_trial_end(learner, plan);
        tide_trial_forget(plan);
    }
    return verdict;
}

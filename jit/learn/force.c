/* SPDX-License-Identifier: MIT */
/* Decides which plan a site has, puts it in force, and brings its code there: by a trial, or at
 * once. */
#include "jit/learn/force.h"

#include "jit/events/event.h"
#include "jit/learn/pays.h"
#include "jit/learn/trial.h"
#include "runtime/base/assert.h"
#include "runtime/base/settings.h"
#include "runtime/scope/site.h"

enum {
    PLANS_MAX = 1024,  /* the constant plans_max is no more             */
    FIRST_BACK_OFF = 8 /* rounds */
};

/* ---- leaving alone ---------------------------------------------------------------------- */

/* Leaves a plan alone, twice as long as the last time, up to a limit; never for good. */
static void force_leave_alone(tide_learned *plan, uint64_t round)
{
    uint64_t most = tide_constant_whole(TIDE_CONSTANT_back_off_max);
    plan->back_off = plan->back_off == 0 ? FIRST_BACK_OFF : plan->back_off * 2;
    if (plan->back_off > most)
        plan->back_off = most;
    plan->retry_round = round + plan->back_off;
    tide_assert(plan->back_off <= most && plan->retry_round > round);
}

/* The site stays as it is; says why. */
static void force_give_up(tide_learner *learner, tide_reason reason, const char *detail)
{
    learner->reason = reason;
    const tide_plan *plan = __atomic_load_n(&learner->site->plan, __ATOMIC_RELAXED);
    tide_event_note(TIDE_EVENT_GAVE_UP, learner->site, plan->tier, reason, detail);
}

/* ---- code ------------------------------------------------------------------------------- */

static void force_adopt(tide_learner *learner, tide_reason reason)
{
    tide_learned *plan = tide_learner_plan_in_force(learner);
    tide_assert(plan != NULL && plan->state == TIDE_CODE_LOADED);
    tide_pays_count(learner); /* up to now it had none */
    plan->state = TIDE_CODE_ADOPTED;
    plan->back_off = 0;
    tide_learner_use(learner, learner->in_force, reason);
}

/* A trial and a window are never open at a time: each would hide the other. */
void tide_force_try_code(tide_learner *learner, uint64_t round)
{
    tide_learned *plan = tide_learner_plan_in_force(learner);
    if (plan == NULL || plan->state != TIDE_CODE_LOADED || round < plan->retry_round ||
        learner->window)
        return;
    if (tide_setting_get(TIDE_SETTING_trial) == 0) {
        force_adopt(learner, TIDE_REASON_untried);
        return;
    }
    learner->reason =
        tide_trial_begin(learner, plan) ? TIDE_REASON_trial_open : TIDE_REASON_no_memory;
}

/* Code that has shown no gain is not used. The trial may have been wrong, so there is another one,
 * but late. */
static void force_reject(tide_learner *learner, tide_learned *plan, uint64_t round,
                         tide_reason reason)
{
    tide_count(lost);
    force_leave_alone(plan, round);
    force_give_up(learner, reason, "");
}

void tide_force_judge(tide_learner *learner, uint64_t round)
{
    tide_learned *plan = tide_learner_plan_in_force(learner);
    if (plan == NULL || plan->state != TIDE_CODE_TRIED)
        return;
    switch (tide_trial_judge(learner, plan)) {
    case TIDE_VERDICT_OPEN: break;
    case TIDE_VERDICT_WON:
        tide_count(won);
        force_adopt(learner, TIDE_REASON_trial_won);
        break;
    case TIDE_VERDICT_LOST: force_reject(learner, plan, round, TIDE_REASON_trial_lost); break;
    case TIDE_VERDICT_EVEN: force_reject(learner, plan, round, TIDE_REASON_trial_even); break;
    }
}

void tide_force_loaded(tide_learner *learner, uint32_t number, uint64_t round)
{
    tide_assert(number < learner->plan_count);
    tide_learned *plan = learner->plans[number];
    tide_assert(plan->state == TIDE_CODE_LOADED);
    learner->compiles++;
    if (number == learner->in_force)
        tide_force_try_code(learner, round);
}

void tide_force_failed(tide_learner *learner, uint32_t number, uint64_t round, tide_reason reason,
                       const char *detail)
{
    tide_assert(number < learner->plan_count);
    tide_learned *plan = learner->plans[number];
    tide_assert(plan->state < TIDE_CODE_LOADED && reason != TIDE_REASON_none);
    plan->state = TIDE_CODE_NONE;
    force_leave_alone(plan, round);
    force_give_up(learner, reason, detail);
}

/* ---- putting in force ------------------------------------------------------------------- */

void tide_force_change(tide_learner *learner, uint32_t number, uint64_t round, tide_reason reason)
{
    tide_assert(number == TIDE_NO_PLAN || number < learner->plan_count);
    tide_learned *before = tide_learner_plan_in_force(learner);
    if (before != NULL)
        tide_trial_end(learner, before);
    tide_learner_use(learner, number, reason);
    learner->uses_changed = tide_site_uses(learner->site);
    tide_learned *plan = tide_learner_plan_in_force(learner);
    if (plan == NULL)
        return;
    tide_assert(plan->state != TIDE_CODE_TRIED); /* its trial ended with the plan before */
    if (plan->state == TIDE_CODE_NONE && round >= plan->retry_round && tide_items_fit(&plan->items))
        plan->state = TIDE_CODE_WANTED;
}

static void force_put(tide_learner *learner, uint32_t number, uint64_t round, tide_reason reason)
{
    tide_force_change(learner, number, round, reason);
    tide_force_try_code(learner, round);
}

/* A declaration takes the plan away that was in force; it may be for the same types. */
static bool force_published(const tide_learner *learner, uint32_t number)
{
    const tide_site_record *record = learner->site->record;
    tide_assert(number < learner->plan_count);
    return record->table != NULL &&
           (learner->plans[number]->state != TIDE_CODE_ADOPTED || record->compiled != NULL);
}

/* A plan cannot be had. What the plan in force saves or finds, it still does; but a declaration took
 * that plan away, and each use would miss a table of another generic function. Each round asks for what
 * is declared: it is said once. */
static void force_do_without(tide_learner *learner, const tide_items *items, uint64_t round,
                             bool declared, tide_reason why)
{
    if (declared && learner->reason == why)
        return;
    force_give_up(learner, why, "");
    const tide_learned *plan = tide_learner_plan_in_force(learner);
    if (plan != NULL && (declared || plan->items.generic != items->generic))
        tide_force_change(learner, TIDE_NO_PLAN, round, why);
}

void tide_force_items(tide_learner *learner, const tide_items *items, uint64_t round,
                      tide_reason reason)
{
    uint32_t number;
    tide_reason why;
    if (tide_learner_plan(learner, items, &number, &why) == NULL) {
        force_do_without(learner, items, round, reason == TIDE_REASON_declared, why);
        return;
    }
    tide_assert(number < learner->plan_count);
    if (number != learner->in_force || !force_published(learner, number))
        force_put(learner, number, round, reason);
}

/* `because`: the reason to give in place of the choice's own; none: its own. */
static void force_act(tide_learner *learner, const tide_choice *choice, uint64_t round,
                      tide_reason because)
{
    tide_reason reason = because != TIDE_REASON_none ? because : choice->reason;
    switch (choice->what) {
    case TIDE_CHOICE_STAY:
        if (choice->reason != TIDE_REASON_kept && learner->in_force == TIDE_NO_PLAN)
            force_give_up(learner, choice->reason, "");
        break;
    case TIDE_CHOICE_GENERAL: force_put(learner, TIDE_NO_PLAN, round, reason); break;
    case TIDE_CHOICE_OLD:
        tide_count(reused);
        force_put(learner, choice->old, round, reason);
        break;
    case TIDE_CHOICE_NEW: tide_force_items(learner, &choice->items, round, reason); break;
    }
}

void tide_force_decide(tide_learner *learner, uint64_t round, tide_reason because)
{
    static const tide_items *earlier[PLANS_MAX]; /* guarded by the registry: stacks may be small */
    tide_assert(learner->plan_count <= PLANS_MAX);
    for (uint32_t i = 0; i < learner->plan_count; i++)
        earlier[i] = &learner->plans[i]->items;
    tide_choice choice;
    tide_count(decisions);
    tide_decide(learner->site->kind, tide_learner_evidence(learner), earlier, learner->plan_count,
                learner->in_force, &choice);
    force_act(learner, &choice, round, because);
}

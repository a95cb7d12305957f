/* SPDX-License-Identifier: MIT */
/* What a round does with one site, and its windows. */
#include "jit/learn/watch.h"

#include "jit/events/event.h"
#include "jit/learn/force.h"
#include "jit/learn/misses.h"
#include "jit/learn/pays.h"
#include "jit/learn/trial.h"
#include "profiler/files/loaded.h"
#include "profiler/window.h"
#include "runtime/base/assert.h"
#include "runtime/base/settings.h"
#include "runtime/scope/site.h"

/* ---- windows ---------------------------------------------------------------------------- */

/* When the next window of a settled site is due. Up to a quarter later than `window_every` says: else
 * windows would keep step with a program that steps after each of its phases, and see one phase only. */
static uint64_t watch_next_window(uint64_t round)
{
    static uint64_t state = UINT64_C(0x9e3779b97f4a7c15); /* guarded by the registry */
    uint64_t rounds = tide_constant_whole(TIDE_CONSTANT_window_every);
    tide_assert(state != 0); /* it would stay so */
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return round + rounds + state % (rounds / 4 + 1);
}

/* For now: it goes on later. */
static void watch_end_trial(tide_learner *learner)
{
    tide_learned *plan = tide_learner_plan_in_force(learner);
    if (plan != NULL)
        tide_trial_end(learner, plan);
}

void tide_watch_open_window(tide_learner *learner, bool by_misses)
{
    tide_site *site = learner->site;
    watch_end_trial(learner); /* an observing plan must not wrap the trial's */
    if (!tide_window_begin(site, by_misses ? tide_learner_first_window(site)
                                           : tide_constant_whole(TIDE_CONSTANT_window_calls)))
        return;
    learner->fresh = by_misses;
    tide_assert(!learner->window);
    learner->window = true;
    learner->window_round = 0; /* from the next round on */
    tide_site_publish(learner->site);
}

/* Ends the window if it is not full, and takes what it saw. The profile is guarded by the registry,
 * for stacks may be small. */
static const tide_site_profile *watch_close_window(tide_learner *learner)
{
    static tide_site_profile seen;
    tide_assert(learner->window);
    if (tide_window_open(learner->site))
        tide_window_end(learner->site);
    tide_window_take(learner->site, &seen);
    learner->window = false;
    return &seen;
}

/* What the window saw is not needed any more. */
static void watch_drop_window(tide_learner *learner)
{
    if (learner->window)
        (void)watch_close_window(learner);
    learner->fresh = false;
}

/* Is a window full, or has it been open for too long? */
static bool watch_window_is_over(tide_learner *learner, uint64_t round)
{
    if (!learner->window)
        return false;
    if (learner->window_round == 0)
        learner->window_round = round; /* it opened between rounds, with the site's first use */
    return !tide_window_open(learner->site) ||
           round >= learner->window_round + tide_constant_whole(TIDE_CONSTANT_window_rounds);
}

/* What misses have opened a window for counts alone, and so does another generic function: what was
 * seen before holds no longer. A window without uses adds nothing. */
static void watch_add_evidence(tide_learner *learner, const tide_site_profile *seen)
{
    static tide_site_profile sum; /* guarded by the registry */
    sum = (tide_site_profile){0};
    const tide_site_profile *before = tide_learner_evidence(learner);
    if (!learner->fresh && before->generic == seen->generic)
        tide_profile_add(&sum, before, tide_constant_get(TIDE_CONSTANT_decay));
    tide_profile_add(&sum, seen, 1);
    (void)tide_learner_set_evidence(learner, &sum); /* without memory the old one decides */
}

/* If nobody used the site while the window was open, that says nothing of its types: what was seen
 * before holds on, and no decision is due. The second window follows at once, for the first one may
 * have seen a beginning only. */
static void watch_take_window(tide_learner *learner, uint64_t round)
{
    if (!watch_window_is_over(learner, round))
        return;
    const tide_site_profile *seen = watch_close_window(learner);
    bool first = learner->windows == 0;
    if (seen->scopes != 0 || first) {
        learner->windows++;
        tide_count(windows);
        watch_add_evidence(learner, seen);
        uint32_t before = learner->in_force;
        tide_force_decide(learner, round, TIDE_REASON_none);
        if (learner->fresh && learner->in_force == before)
            tide_misses_be_patient(learner, true);
    }
    tide_assert(learner->windows != 0 && !tide_window_open(learner->site));
    learner->fresh = false;
    learner->next_window = first ? round + 1 : watch_next_window(round);
    tide_misses_listen(learner);
}

/* ---- what needs no window --------------------------------------------------------------- */

tide_items tide_watch_declared(const tide_site_record *record)
{
    const tide_plan *declared = record->declared;
    tide_items items = {.count = declared->type_count <= TIDE_ITEMS_MAX ? declared->type_count : 0};
    for (uint32_t i = 0; i < items.count; i++)
        items.types[i] = declared->types[i];
    return items;
}

static void watch_follow_declaration(tide_learner *learner, uint64_t round)
{
    const tide_site_record *record = learner->site->record;
    tide_items items = tide_watch_declared(record);
    tide_assert(record->declared != NULL && items.count <= TIDE_ITEMS_MAX);
    watch_drop_window(learner);
    if (items.count == 0) { /* and what was learned before is not what was declared */
        if (learner->in_force != TIDE_NO_PLAN)
            tide_force_change(learner, TIDE_NO_PLAN, round, TIDE_REASON_declared);
        return;
    }
    tide_force_items(learner, &items, round, TIDE_REASON_declared);
    if (!tide_items_fit(&items) && learner->reason == TIDE_REASON_declared)
        learner->reason = TIDE_REASON_many_types;
}

static void watch_use_prior(tide_learner *learner, uint64_t round)
{
    static tide_site_profile prior; /* guarded by the registry */
    if (learner->windows != 0 || learner->prior || !tide_profile_prior(learner->site, &prior))
        return;
    /* A use before this round opened it; it would keep the code waiting. */
    watch_drop_window(learner);
    if (!tide_learner_set_evidence(learner, &prior))
        return; /* no memory: a later round has it, perhaps */
    learner->prior = true;
    tide_force_decide(learner, round, TIDE_REASON_profile_loaded);
    if (tide_learner_plan_in_force(learner) != NULL)
        learner->next_window = watch_next_window(round);
}

/* Takes up again what failed and was left alone for long enough, and what came while a
 * window was open. */
static void watch_want_again(tide_learner *learner, uint64_t round)
{
    tide_learned *plan = tide_learner_plan_in_force(learner);
    if (plan == NULL || round < plan->retry_round)
        return;
    if (plan->state == TIDE_CODE_NONE && plan->back_off != 0)
        plan->state = TIDE_CODE_WANTED;
    tide_force_try_code(learner, round);
}

/* Opens the next window if it is due. If none is open, misses are to be heard; they are not while a
 * site is pinned or declared. */
static void watch_observe(tide_learner *learner, uint64_t round)
{
    const tide_learned *plan = tide_learner_plan_in_force(learner);
    if (tide_site_arrived(learner->site) && !learner->window && round >= learner->next_window)
        tide_watch_open_window(learner, false);
    else if (!learner->window && plan != NULL && !tide_learned_armed(plan))
        tide_misses_listen(learner);
}

/* Code that is being made, tried or run is all that was asked for. */
static void watch_end_order(tide_learner *learner)
{
    const tide_learned *plan = tide_learner_plan_in_force(learner);
    if (plan != NULL && plan->state >= TIDE_CODE_REQUESTED)
        learner->at_once = false;
}

void tide_watch(tide_site *site, uint64_t round)
{
    tide_assert(site->record != NULL);
    bool known = site->record->learner != NULL || tide_site_arrived(site);
    static tide_site_profile prior; /* guarded by the registry */
    if (!known && !tide_profile_prior(site, &prior))
        return;
    tide_learner *learner = tide_learner_of(site);
    if (learner == NULL)
        return;
    tide_assert(learner->site == site);
    if (site->record->pinned) {
        watch_end_trial(learner);
        watch_drop_window(learner);
        return;
    }
    tide_force_judge(learner, round);
    if (site->record->declared != NULL) {
        watch_follow_declaration(learner, round);
    } else {
        watch_use_prior(learner, round);
        watch_take_window(learner, round);
        tide_misses_look(learner, round);
        watch_observe(learner, round);
    }
    watch_want_again(learner, round);
    watch_end_order(learner);
}

/* Is the site to be noticed, though its types are declared, for its code may come to pay? */
static bool watch_waits_to_pay(const tide_learner *learner)
{
    const tide_learned *plan = tide_learner_plan_in_force(learner);
    return plan != NULL && plan->state == TIDE_CODE_WANTED;
}

void tide_watch_leave(tide_site *site, uint64_t round)
{
    tide_learner *learner = site->record->learner;
    if (learner != NULL && learner->window && !tide_window_open(site))
        tide_watch(site, round); /* a full window, which nobody has taken */
    if (learner != NULL && tide_site_arrived(site) && !site->record->pinned && !learner->window &&
        (site->record->declared == NULL || watch_waits_to_pay(learner)))
        tide_watch_open_window(learner, false);
}

/* Will the next round order its code, or put in force what has come? */
static bool watch_plan_pending(const tide_learner *learner, const tide_learned *plan,
                               uint64_t round)
{
    switch (plan->state) {
    case TIDE_CODE_WANTED:
        return round >= plan->retry_round && (learner->at_once || tide_pays_compile(plan));
    case TIDE_CODE_REQUESTED: return true;
    case TIDE_CODE_LOADED:
        return round >= plan->retry_round && learner->site->record->declared != NULL;
    default: return tide_trial_burst_over(plan);
    }
}

bool tide_watch_pending(const tide_site *site, uint64_t round)
{
    const tide_learner *learner = site->record->learner;
    if (learner == NULL || site->record->pinned || tide_setting_get(TIDE_SETTING_learn) == 0)
        return false; /* rounds leave it as it is; what the stager has they count themselves */
    if (learner->window && !tide_window_open(site))
        return true;
    const tide_learned *plan = tide_learner_plan_in_force(learner);
    return plan != NULL && watch_plan_pending(learner, plan, round);
}

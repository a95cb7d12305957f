/* SPDX-License-Identifier: MIT */
/* What a round does with one site: its windows, its decisions, its trials and its misses. */
#include "jit/learn/watch.h"

#include <stdlib.h>

#include "jit/learn/event.h"
#include "jit/learn/trial.h"
#include "profiler/window.h"
#include "runtime/base/assert.h"
#include "runtime/base/settings.h"
#include "runtime/scope/site.h"

enum {
    PLANS_MAX = 1024,  /* the most that the setting plans_max may say */
    FIRST_BACK_OFF = 8 /* rounds */
};

/* MOST_NAME: the most that the setting NAME may say, MOST if that is less. */
enum {
    MOST = 1 << 20,
#define TIDE_SETTING(name, initial, min, max, meaning) \
    MOST_##name = (int)((int64_t)(max) < MOST ? (int64_t)(max) : MOST),
#include "runtime/base/settings.def"
#undef TIDE_SETTING
};

_Static_assert((int)MOST_plans_max == (int)PLANS_MAX,
               "a list on the stack has room for every plan");

static uint64_t watch_setting(tide_setting which)
{
    return (uint64_t)tide_setting_get(which);
}

/* ---- leaving alone ---------------------------------------------------------------------- */

/* Up to a quarter more: sites that failed together shall not come back together. */
static uint64_t watch_with_jitter(uint64_t rounds)
{
    static uint64_t state = UINT64_C(0x9e3779b97f4a7c15); /* guarded by the registry */
    tide_assert(state != 0);                              /* it would stay so */
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return rounds + state % (rounds / 4 + 1);
}

/* Leaves a plan alone, twice as long as the last time, up to a limit; never for good. */
static void watch_leave_alone(tide_learned *plan, uint64_t round)
{
    uint64_t most = watch_setting(TIDE_SETTING_back_off_max);
    plan->back_off = plan->back_off == 0 ? FIRST_BACK_OFF : plan->back_off * 2;
    if (plan->back_off > most)
        plan->back_off = most;
    plan->retry_round = round + watch_with_jitter(plan->back_off);
    tide_assert(plan->back_off <= most && plan->retry_round > round);
}

/* The site stays as it is; says why. */
static void watch_give_up(tide_learner *learner, tide_reason reason, const char *detail)
{
    learner->reason = reason;
    const tide_plan *plan = __atomic_load_n(&learner->site->plan, __ATOMIC_RELAXED);
    tide_event_note(TIDE_EVENT_GAVE_UP, learner->site, plan->tier, reason, detail);
}

static tide_learned *watch_plan_in_force(const tide_learner *learner)
{
    tide_assert(learner->in_force == TIDE_NO_PLAN || learner->in_force < learner->plan_count);
    return learner->in_force != TIDE_NO_PLAN ? learner->plans[learner->in_force] : NULL;
}

/* ---- code ------------------------------------------------------------------------------- */

/* Unloads code beyond `code_max` plans: first that of the plan that was in force longest ago. */
static void watch_keep_code_few(tide_learner *learner)
{
    for (;;) {
        tide_learned *oldest = NULL;
        uint64_t loaded = 0;
        for (uint32_t i = 0; i < learner->plan_count; i++) {
            tide_learned *plan = learner->plans[i];
            if (plan->artefact == NULL)
                continue;
            loaded++;
            if (i != learner->in_force && (oldest == NULL || plan->last_round < oldest->last_round))
                oldest = plan;
        }
        if (loaded <= watch_setting(TIDE_SETTING_code_max) || oldest == NULL)
            return;
        tide_learned_unload(learner, oldest);
    }
}

static void watch_adopt(tide_learner *learner, tide_reason reason)
{
    tide_learned *plan = watch_plan_in_force(learner);
    tide_assert(plan != NULL && plan->artefact != NULL && plan->state == TIDE_CODE_LOADED);
    plan->state = TIDE_CODE_ADOPTED;
    plan->back_off = 0;
    tide_learner_use(learner, learner->in_force, reason);
}

/* A trial and a window are never open at a time: each would hide the other. */
static void watch_try_code(tide_learner *learner)
{
    tide_learned *plan = watch_plan_in_force(learner);
    if (plan == NULL || plan->state != TIDE_CODE_LOADED || learner->window)
        return;
    if (tide_setting_get(TIDE_SETTING_trial) == 0) {
        watch_adopt(learner, TIDE_REASON_untried);
        return;
    }
    learner->reason = TIDE_REASON_trial_open;
    tide_trial_begin(learner, plan);
}

/* A trial whose uses have all been made ends here. */
static void watch_judge(tide_learner *learner, uint64_t round)
{
    tide_learned *plan = watch_plan_in_force(learner);
    if (plan == NULL || plan->state != TIDE_CODE_TRIED || !tide_trial_done(plan))
        return;
    tide_reason reason;
    bool won = tide_trial_won(plan, &reason);
    tide_trial_end(learner, plan);
    if (won) {
        tide_count(won);
        watch_adopt(learner, reason);
        return;
    }
    if (reason == TIDE_REASON_trial_lost)
        tide_count(lost);
    watch_leave_alone(plan, round);
    if (reason == TIDE_REASON_trial_lost)
        tide_learned_unload(learner, plan);
    watch_give_up(learner, reason, "");
}

void tide_watch_loaded(tide_learner *learner, uint32_t number, uint64_t round)
{
    tide_assert(number < learner->plan_count);
    tide_learned *plan = learner->plans[number];
    tide_assert(plan->state == TIDE_CODE_LOADED && plan->artefact != NULL);
    learner->compiles++;
    plan->last_round = round;
    watch_keep_code_few(learner);
    if (number == learner->in_force)
        watch_try_code(learner);
}

void tide_watch_failed(tide_learner *learner, uint32_t number, uint64_t round, tide_reason reason,
                       const char *detail)
{
    tide_assert(number < learner->plan_count);
    tide_learned *plan = learner->plans[number];
    tide_assert(plan->artefact == NULL && reason != TIDE_REASON_none);
    plan->state = TIDE_CODE_NONE;
    watch_leave_alone(plan, round);
    watch_give_up(learner, reason, detail);
}

/* ---- putting in force ------------------------------------------------------------------- */

static void watch_put_in_force(tide_learner *learner, uint32_t number, bool compile, uint64_t round,
                               tide_reason reason)
{
    tide_assert(number == TIDE_NO_PLAN || number < learner->plan_count);
    tide_learned *before = watch_plan_in_force(learner);
    if (before != NULL)
        tide_trial_end(learner, before);
    tide_learner_use(learner, number, reason);
    tide_learned *plan = watch_plan_in_force(learner);
    if (plan == NULL)
        return;
    plan->last_round = round;
    tide_assert(plan->state != TIDE_CODE_TRIED); /* its trial ended with the plan before */
    if (compile && plan->state == TIDE_CODE_NONE && round >= plan->retry_round)
        plan->state = TIDE_CODE_WANTED;
    watch_try_code(learner);
}

static void watch_put_items_in_force(tide_learner *learner, const tide_items *items, bool compile,
                                     uint64_t round, tide_reason reason)
{
    uint32_t number;
    if (tide_learner_plan(learner, items, &number) == NULL) {
        bool full = learner->plan_count >= watch_setting(TIDE_SETTING_plans_max);
        watch_give_up(learner, full ? TIDE_REASON_too_many_plans : TIDE_REASON_no_memory, "");
        return;
    }
    tide_assert(number < learner->plan_count);
    const tide_site_record *record = learner->site->record;
    bool published = learner->site->kind != TIDE_KIND_SCOPE || record->table != NULL;
    if (number != learner->in_force || !published)
        watch_put_in_force(learner, number, compile, round, reason);
}

/* A dispatch is compiled for one generic function, and for types with methods of their own. The
 * pattern of a use is the function. */
static bool watch_same_generic(tide_learner *learner)
{
    const tide_site_profile *seen = &learner->evidence;
    if (learner->site->kind != TIDE_KIND_DISPATCH)
        return true;
    if (seen->pattern_count != 1 || seen->patterns[0].length != 1)
        return false;
    learner->generic = (const struct tide_generic *)(uintptr_t)seen->patterns[0].words[0];
    return true;
}

/* An earlier plan of a scope may have been worth a table only. */
static bool watch_worth_code(const tide_learner *learner, uint32_t number)
{
    tide_assert(number < learner->plan_count);
    return learner->site->kind != TIDE_KIND_SCOPE ||
           learner->plans[number]->items.count <= watch_setting(TIDE_SETTING_types_max);
}

/* `because`: the reason to give in place of the choice's own; none: its own. */
static void watch_act(tide_learner *learner, const tide_choice *choice, uint64_t round,
                      tide_reason because)
{
    tide_reason reason = because != TIDE_REASON_none ? because : choice->reason;
    switch (choice->what) {
    case TIDE_CHOICE_STAY:
        if (choice->reason != TIDE_REASON_kept && learner->in_force == TIDE_NO_PLAN)
            watch_give_up(learner, choice->reason, "");
        break;
    case TIDE_CHOICE_GENERAL:
        watch_put_in_force(learner, TIDE_NO_PLAN, false, round, reason);
        break;
    case TIDE_CHOICE_OLD:
        tide_count(reused);
        watch_put_in_force(learner, choice->old, watch_worth_code(learner, choice->old), round,
                           reason);
        break;
    case TIDE_CHOICE_NEW:
        watch_put_items_in_force(learner, &choice->items, choice->compile, round, reason);
        break;
    }
}

static void watch_decide(tide_learner *learner, uint64_t round, tide_reason because)
{
    const tide_items *earlier[PLANS_MAX];
    tide_assert(learner->plan_count <= PLANS_MAX);
    for (uint32_t i = 0; i < learner->plan_count; i++)
        earlier[i] = &learner->plans[i]->items;
    tide_thresholds at = tide_thresholds_now();
    tide_choice choice;
    if (!watch_same_generic(learner)) {
        watch_give_up(learner, TIDE_REASON_no_method, "");
        return;
    }
    tide_count(decisions);
    tide_decide(learner->site->kind, &learner->evidence, earlier, learner->plan_count,
                learner->in_force, &at, &choice);
    watch_act(learner, &choice, round, because);
}

/* ---- windows ---------------------------------------------------------------------------- */

static void watch_open_window(tide_learner *learner, uint64_t round)
{
    if (!tide_window_begin(learner->site, watch_setting(TIDE_SETTING_window_calls)))
        return;
    tide_learned *plan = watch_plan_in_force(learner);
    if (plan != NULL && plan->state == TIDE_CODE_TRIED)
        tide_trial_end(learner, plan);
    tide_assert(!learner->window && (plan == NULL || plan->state != TIDE_CODE_TRIED));
    learner->window = true;
    learner->window_round = round;
    tide_site_publish(learner->site);
}

/* What the window saw is not needed any more. */
static void watch_drop_window(tide_learner *learner)
{
    if (!learner->window)
        return;
    if (tide_window_open(learner->site))
        tide_window_end(learner->site);
    tide_site_profile unused;
    tide_window_take(learner->site, &unused);
    learner->window = false;
}

/* Takes the window if it is full, or has been open for too long. */
static void watch_take_window(tide_learner *learner, uint64_t round)
{
    if (!learner->window)
        return;
    if (learner->window_round == 0)
        learner->window_round = round; /* it opened between rounds, with the site's first use */
    bool open = tide_window_open(learner->site);
    if (open && round < learner->window_round + watch_setting(TIDE_SETTING_window_rounds))
        return;
    if (open)
        tide_window_end(learner->site);
    tide_site_profile seen, before = learner->evidence;
    tide_window_take(learner->site, &seen);
    learner->window = false;
    learner->windows++;
    tide_assert(learner->windows != 0 && !tide_window_open(learner->site));
    tide_count(windows);
    learner->evidence = (tide_site_profile){0};
    tide_profile_add(&learner->evidence, &before, tide_setting_get(TIDE_SETTING_decay));
    tide_profile_add(&learner->evidence, &seen, 1);
    learner->next_window =
        learner->windows < 2 ? round + 1
                             : round + watch_with_jitter(watch_setting(TIDE_SETTING_window_every));
    watch_decide(learner, round, TIDE_REASON_none);
}

static uint64_t watch_misses_now(const tide_learner *learner)
{
    const tide_learned *plan = watch_plan_in_force(learner);
    return plan == NULL ? 0
                        : __atomic_load_n(&plan->table_counts.misses, __ATOMIC_RELAXED) +
                              __atomic_load_n(&plan->code_counts.misses, __ATOMIC_RELAXED);
}

/* Each time it takes twice as many misses to reopen observation; a long quiet halves
 * the number again. */
static void watch_look_at_misses(tide_learner *learner, uint64_t round)
{
    uint64_t misses = watch_misses_now(learner), initial = watch_setting(TIDE_SETTING_misses);
    if (misses - learner->misses_seen >= learner->misses_max) {
        learner->misses_seen = misses;
        learner->misses_max *= 2;
        learner->quiet_rounds = 0;
        learner->reason = TIDE_REASON_missed;
        tide_event_note(TIDE_EVENT_MISSED, learner->site,
                        __atomic_load_n(&learner->site->plan, __ATOMIC_RELAXED)->tier,
                        TIDE_REASON_missed, "");
        learner->next_window = round;
    } else if (++learner->quiet_rounds >= 2 * watch_setting(TIDE_SETTING_window_every)) {
        learner->quiet_rounds = 0;
        if (learner->misses_max > initial)
            learner->misses_max /= 2;
    }
}

/* ---- what needs no window --------------------------------------------------------------- */

static tide_items watch_items_of(const tide_plan *plan)
{
    tide_items items = {0};
    for (uint32_t i = 0; i < plan->type_count && i < TIDE_ITEMS_MAX; i++)
        items.items[items.count++].type = plan->types[i];
    return items;
}

static void watch_follow_declaration(tide_learner *learner, uint64_t round)
{
    const tide_plan *declared = learner->site->record->declared;
    tide_items items = watch_items_of(declared);
    items.nested = items.count <= TIDE_SCOPE_SAVED; /* it is not observed: so for either case */
    watch_drop_window(learner);
    if (items.count == 0 || items.count != declared->type_count)
        return;
    watch_put_items_in_force(learner, &items, items.count <= watch_setting(TIDE_SETTING_types_max),
                             round, TIDE_REASON_declared);
}

static void watch_use_prior(tide_learner *learner, uint64_t round)
{
    tide_site_profile prior;
    if (learner->windows != 0 || learner->prior || !tide_profile_prior(learner->site, &prior))
        return;
    /* A use before this round opened it; it would keep the code waiting. */
    watch_drop_window(learner);
    learner->prior = true;
    learner->evidence = prior;
    watch_decide(learner, round, TIDE_REASON_profile_loaded);
    if (learner->in_force != TIDE_NO_PLAN)
        learner->next_window = round + watch_with_jitter(watch_setting(TIDE_SETTING_window_every));
}

/* Takes up again what failed and was left alone for long enough, and what came while a
 * window was open. */
static void watch_want_again(tide_learner *learner, uint64_t round)
{
    tide_learned *plan = watch_plan_in_force(learner);
    if (plan == NULL || round < plan->retry_round)
        return;
    if (plan->state == TIDE_CODE_NONE && plan->back_off != 0)
        plan->state = TIDE_CODE_WANTED;
    tide_assert(plan->state >= TIDE_CODE_LOADED || plan->artefact == NULL);
    watch_try_code(learner);
}

void tide_watch(tide_site *site, uint64_t round)
{
    tide_assert(site->record != NULL);
    bool known = site->record->learner != NULL || tide_site_arrived(site);
    tide_site_profile prior;
    if (!known && !tide_profile_prior(site, &prior))
        return;
    tide_learner *learner = tide_learner_of(site);
    if (learner == NULL)
        return;
    tide_assert(learner->site == site);
    watch_judge(learner, round);
    if (site->record->pinned) {
        watch_drop_window(learner);
        learner->reason = TIDE_REASON_pinned;
        return;
    }
    if (site->record->declared != NULL) {
        watch_follow_declaration(learner, round);
    } else {
        watch_use_prior(learner, round);
        watch_take_window(learner, round);
        watch_look_at_misses(learner, round);
        if (tide_site_arrived(site) && !learner->window && round >= learner->next_window)
            watch_open_window(learner, round);
    }
    watch_want_again(learner, round);
}

bool tide_watch_pending(const tide_site *site, uint64_t round)
{
    const tide_learner *learner = site->record->learner;
    if (learner == NULL)
        return false;
    if (learner->window && !tide_window_open(site))
        return true;
    const tide_learned *plan = watch_plan_in_force(learner);
    return plan != NULL && ((plan->state == TIDE_CODE_WANTED && round >= plan->retry_round) ||
                            plan->state == TIDE_CODE_REQUESTED ||
                            (plan->state == TIDE_CODE_TRIED && tide_trial_done(plan)));
}

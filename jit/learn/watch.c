/* SPDX-License-Identifier: MIT */
#include "jit/learn/watch.h"

#include <stdlib.h>

#include "jit/learn/event.h"
#include "jit/learn/trial.h"
#include "profiler/window.h"
#include "runtime/base/assert.h"
#include "runtime/base/settings.h"
#include "runtime/scope/site.h"

enum {
    PLANS_MAX = 1024, /* the most that the setting plans_max may say */
    FIRST_BACK_OFF = 8 /* rounds */
};

static uint64_t setting(tide_setting which)
{
    return (uint64_t)tide_setting_get(which);
}

/* ---- leaving alone ---------------------------------------------------------------------- */

/* Up to a quarter more, so that sites which failed together do not come back together. */
static uint64_t with_jitter(uint64_t rounds)
{
    static uint64_t state = UINT64_C(0x9e3779b97f4a7c15); /* guarded by the registry */
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return rounds + state % (rounds / 4 + 1);
}

/* Twice as long as the last time, up to a limit; never for good. */
static void leave_alone(tide_learned *plan, uint64_t round)
{
    uint64_t most = setting(TIDE_SETTING_back_off_max);
    plan->back_off = plan->back_off == 0 ? FIRST_BACK_OFF : plan->back_off * 2;
    if (plan->back_off > most)
        plan->back_off = most;
    plan->retry_round = round + with_jitter(plan->back_off);
}

static void give_up(tide_learner *learner, tide_reason reason, const char *detail)
{
    learner->reason = reason;
    const tide_plan *plan = __atomic_load_n(&learner->site->plan, __ATOMIC_RELAXED);
    tide_event_note(TIDE_EVENT_GAVE_UP, learner->site, plan->tier, reason, detail);
}

static tide_learned *in_force(const tide_learner *learner)
{
    return learner->in_force != TIDE_NO_PLAN ? learner->plans[learner->in_force] : NULL;
}

/* ---- code ------------------------------------------------------------------------------- */

/* The code of plans that have not been in force for longest goes first. */
static void keep_code_few(tide_learner *learner)
{
    for (;;) {
        tide_learned *oldest = NULL;
        uint64_t loaded = 0;
        for (uint32_t i = 0; i < learner->plan_count; i++) {
            tide_learned *plan = learner->plans[i];
            if (plan->artefact == NULL)
                continue;
            loaded++;
            if (i != learner->in_force &&
                (oldest == NULL || plan->last_round < oldest->last_round))
                oldest = plan;
        }
        if (loaded <= setting(TIDE_SETTING_code_max) || oldest == NULL)
            return;
        tide_learned_unload(learner, oldest);
    }
}

static void adopt(tide_learner *learner, tide_reason reason)
{
    tide_learned *plan = in_force(learner);
    tide_assert(plan != NULL && plan->artefact != NULL);
    plan->state = TIDE_CODE_ADOPTED;
    plan->back_off = 0;
    tide_learner_use(learner, learner->in_force, reason);
}

/* A trial and a window would each hide the other. */
static void try_code(tide_learner *learner)
{
    tide_learned *plan = in_force(learner);
    if (plan == NULL || plan->state != TIDE_CODE_LOADED || learner->window)
        return;
    if (tide_setting_get(TIDE_SETTING_trial) == 0) {
        adopt(learner, TIDE_REASON_untried);
        return;
    }
    learner->reason = TIDE_REASON_trial_open;
    tide_trial_begin(learner, plan);
}

static void judge(tide_learner *learner, uint64_t round)
{
    tide_learned *plan = in_force(learner);
    if (plan == NULL || plan->state != TIDE_CODE_TRIED || !tide_trial_done(plan))
        return;
    tide_reason reason;
    bool won = tide_trial_won(plan, &reason);
    tide_trial_end(learner, plan);
    if (won) {
        tide_count(won);
        adopt(learner, reason);
        return;
    }
    if (reason == TIDE_REASON_trial_lost)
        tide_count(lost);
    leave_alone(plan, round);
    if (reason == TIDE_REASON_trial_lost)
        tide_learned_unload(learner, plan);
    give_up(learner, reason, "");
}

void tide_watch_loaded(tide_learner *learner, uint32_t number, uint64_t round)
{
    tide_learned *plan = learner->plans[number];
    tide_assert(plan->state == TIDE_CODE_LOADED);
    learner->compiles++;
    plan->last_round = round;
    keep_code_few(learner);
    if (number == learner->in_force)
        try_code(learner);
}

void tide_watch_failed(tide_learner *learner, uint32_t number, uint64_t round, tide_reason reason,
                       const char *detail)
{
    tide_assert(number < learner->plan_count);
    tide_learned *plan = learner->plans[number];
    plan->state = TIDE_CODE_NONE;
    leave_alone(plan, round);
    give_up(learner, reason, detail);
}

/* ---- putting in force ------------------------------------------------------------------- */

static void put_in_force(tide_learner *learner, uint32_t number, bool compile, uint64_t round,
                         tide_reason reason)
{
    tide_learned *before = in_force(learner);
    if (before != NULL)
        tide_trial_end(learner, before);
    tide_learner_use(learner, number, reason);
    tide_learned *plan = in_force(learner);
    if (plan == NULL)
        return;
    plan->last_round = round;
    if (compile && plan->state == TIDE_CODE_NONE && round >= plan->retry_round)
        plan->state = TIDE_CODE_WANTED;
    try_code(learner);
}

static void put_items_in_force(tide_learner *learner, const tide_items *items, bool compile,
                               uint64_t round, tide_reason reason)
{
    uint32_t number;
    if (tide_learner_plan(learner, items, &number) == NULL) {
        bool full = learner->plan_count >= setting(TIDE_SETTING_plans_max);
        give_up(learner, full ? TIDE_REASON_too_many_plans : TIDE_REASON_no_memory, "");
        return;
    }
    const tide_site_record *record = learner->site->record;
    bool published = learner->site->kind != TIDE_KIND_SCOPE || record->table != NULL;
    if (number != learner->in_force || !published)
        put_in_force(learner, number, compile, round, reason);
}

/* A dispatch is compiled for one generic function and for types with methods of their own. The
 * pattern of its uses is which function that was. */
static bool same_generic(tide_learner *learner)
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
static bool worth_code(const tide_learner *learner, uint32_t number)
{
    return learner->site->kind != TIDE_KIND_SCOPE ||
           learner->plans[number]->items.count <= setting(TIDE_SETTING_types_max);
}

static void act(tide_learner *learner, const tide_choice *choice, uint64_t round,
                tide_reason because)
{
    tide_reason reason = because != TIDE_REASON_none ? because : choice->reason;
    switch (choice->what) {
    case TIDE_CHOICE_STAY:
        if (choice->reason != TIDE_REASON_kept && learner->in_force == TIDE_NO_PLAN)
            give_up(learner, choice->reason, "");
        break;
    case TIDE_CHOICE_GENERAL: put_in_force(learner, TIDE_NO_PLAN, false, round, reason); break;
    case TIDE_CHOICE_OLD:
        tide_count(reused);
        put_in_force(learner, choice->old, worth_code(learner, choice->old), round, reason);
        break;
    case TIDE_CHOICE_NEW:
        put_items_in_force(learner, &choice->items, choice->compile, round, reason);
        break;
    }
}

static void decide(tide_learner *learner, uint64_t round, tide_reason because)
{
    const tide_items *earlier[PLANS_MAX];
    tide_assert(learner->plan_count <= PLANS_MAX);
    for (uint32_t i = 0; i < learner->plan_count; i++)
        earlier[i] = &learner->plans[i]->items;
    tide_thresholds at = tide_thresholds_now();
    tide_choice choice;
    if (!same_generic(learner)) {
        give_up(learner, TIDE_REASON_no_method, "");
        return;
    }
    tide_count(decisions);
    tide_decide(learner->site->kind, &learner->evidence, earlier, learner->plan_count,
                learner->in_force, &at, &choice);
    act(learner, &choice, round, because);
}

/* ---- windows ---------------------------------------------------------------------------- */

static void open_window(tide_learner *learner, uint64_t round)
{
    if (!tide_window_begin(learner->site, setting(TIDE_SETTING_window_calls)))
        return;
    tide_learned *plan = in_force(learner);
    if (plan != NULL && plan->state == TIDE_CODE_TRIED)
        tide_trial_end(learner, plan);
    learner->window = true;
    learner->window_round = round;
    tide_site_publish(learner->site);
}

/* What it saw is not asked for any more. */
static void drop_window(tide_learner *learner)
{
    if (!learner->window)
        return;
    if (tide_window_open(learner->site))
        tide_window_end(learner->site);
    tide_site_profile unused;
    tide_window_take(learner->site, &unused);
    learner->window = false;
}

/* Full, or open for too long. */
static void take_window(tide_learner *learner, uint64_t round)
{
    if (!learner->window)
        return;
    if (learner->window_round == 0)
        learner->window_round = round; /* it opened between rounds, with the site's first use */
    bool open = tide_window_open(learner->site);
    if (open && round < learner->window_round + setting(TIDE_SETTING_window_rounds))
        return;
    if (open)
        tide_window_end(learner->site);
    tide_site_profile seen, before = learner->evidence;
    tide_window_take(learner->site, &seen);
    learner->window = false;
    learner->windows++;
    tide_count(windows);
    learner->evidence = (tide_site_profile){0};
    tide_profile_add(&learner->evidence, &before, tide_setting_get(TIDE_SETTING_decay));
    tide_profile_add(&learner->evidence, &seen, 1);
    learner->next_window = learner->windows < 2
                               ? round + 1
                               : round + with_jitter(setting(TIDE_SETTING_window_every));
    decide(learner, round, TIDE_REASON_none);
}

static uint64_t misses_now(const tide_learner *learner)
{
    const tide_learned *plan = in_force(learner);
    return plan == NULL ? 0
                        : __atomic_load_n(&plan->table_counts.misses, __ATOMIC_RELAXED) +
                              __atomic_load_n(&plan->code_counts.misses, __ATOMIC_RELAXED);
}

/* Each time it takes twice as many to be heard; a long quiet makes the ear finer again. */
static void look_at_misses(tide_learner *learner, uint64_t round)
{
    uint64_t misses = misses_now(learner), least = setting(TIDE_SETTING_misses);
    if (misses - learner->misses_seen >= learner->misses_max) {
        learner->misses_seen = misses;
        learner->misses_max *= 2;
        learner->quiet_rounds = 0;
        learner->reason = TIDE_REASON_missed;
        tide_event_note(TIDE_EVENT_MISSED, learner->site,
                        __atomic_load_n(&learner->site->plan, __ATOMIC_RELAXED)->tier,
                        TIDE_REASON_missed, "");
        learner->next_window = round;
    } else if (++learner->quiet_rounds >= 2 * setting(TIDE_SETTING_window_every)) {
        learner->quiet_rounds = 0;
        if (learner->misses_max > least)
            learner->misses_max /= 2;
    }
}

/* ---- what needs no window --------------------------------------------------------------- */

static tide_items items_of(const tide_plan *plan)
{
    tide_items items = {0};
    for (uint32_t i = 0; i < plan->type_count && i < TIDE_ITEMS_MAX; i++)
        items.items[items.count++].type = plan->types[i];
    return items;
}

static void follow_declaration(tide_learner *learner, uint64_t round)
{
    const tide_plan *declared = learner->site->record->declared;
    tide_items items = items_of(declared);
    items.nested = items.count <= TIDE_SCOPE_SAVED; /* it is not observed: so for either case */
    drop_window(learner);
    if (items.count == 0 || items.count != declared->type_count)
        return;
    put_items_in_force(learner, &items, items.count <= setting(TIDE_SETTING_types_max), round,
                       TIDE_REASON_declared);
}

static void use_prior(tide_learner *learner, uint64_t round)
{
    tide_site_profile prior;
    if (learner->windows != 0 || learner->prior || !tide_profile_prior(learner->site, &prior))
        return;
    drop_window(learner); /* opened by a use before this round: it would keep the code waiting */
    learner->prior = true;
    learner->evidence = prior;
    decide(learner, round, TIDE_REASON_profile_loaded);
    if (learner->in_force != TIDE_NO_PLAN)
        learner->next_window = round + with_jitter(setting(TIDE_SETTING_window_every));
}

/* What failed, and has been left alone for long enough; and what came while a window was open. */
static void want_again(tide_learner *learner, uint64_t round)
{
    tide_learned *plan = in_force(learner);
    if (plan == NULL || round < plan->retry_round)
        return;
    if (plan->state == TIDE_CODE_NONE && plan->back_off != 0)
        plan->state = TIDE_CODE_WANTED;
    try_code(learner);
}

void tide_watch(tide_site *site, uint64_t round)
{
    bool known = site->record->learner != NULL || tide_site_arrived(site);
    tide_site_profile prior;
    if (!known && !tide_profile_prior(site, &prior))
        return;
    tide_learner *learner = tide_learner_of(site);
    if (learner == NULL)
        return;
    judge(learner, round);
    if (site->record->pinned) {
        drop_window(learner);
        learner->reason = TIDE_REASON_pinned;
        return;
    }
    if (site->record->declared != NULL) {
        follow_declaration(learner, round);
    } else {
        use_prior(learner, round);
        take_window(learner, round);
        look_at_misses(learner, round);
        if (tide_site_arrived(site) && !learner->window && round >= learner->next_window)
            open_window(learner, round);
    }
    want_again(learner, round);
}

bool tide_watch_pending(const tide_site *site, uint64_t round)
{
    const tide_learner *learner = site->record->learner;
    if (learner == NULL)
        return false;
    if (learner->window && !tide_window_open(site))
        return true;
    const tide_learned *plan = in_force(learner);
    return plan != NULL && ((plan->state == TIDE_CODE_WANTED && round >= plan->retry_round) ||
                            plan->state == TIDE_CODE_ORDERED ||
                            (plan->state == TIDE_CODE_TRIED && tide_trial_done(plan)));
}

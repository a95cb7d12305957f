/* SPDX-License-Identifier: MIT */
/* What misses lead to: another plan, or a window, and how many it takes; and the decisions of the
 * using thread, which borrows the round and the registry if both are free. */
#include "jit/learn/misses.h"

#include "jit/events/event.h"
#include "jit/learn/background.h"
#include "jit/learn/force.h"
#include "jit/learn/round.h"
#include "jit/learn/watch.h"
#include "profiler/touches.h"
#include "runtime/base/assert.h"
#include "runtime/base/settings.h"
#include "runtime/scope/site.h"

/* ---- patience --------------------------------------------------------------------------- */

/* How many misses it takes until something is done about them: more after a change that did not
 * last, or an observation that changed nothing; fewer again after a change that did. Never more
 * than cost as much as an observation does. */
void tide_misses_be_patient(tide_learner *learner, bool in_vain)
{
    enum { MORE = 4, LESS = 2, MOST_MISSES = 256 };
    uint64_t least = tide_constant_whole(TIDE_CONSTANT_misses);
    uint64_t most = least > MOST_MISSES ? least : MOST_MISSES;
    uint64_t misses = in_vain ? learner->misses_max * MORE : learner->misses_max / LESS;
    learner->misses_max = misses < least ? least : misses > most ? most : misses;
    tide_assert(learner->misses_max >= least && learner->misses_max <= most);
}

/* A window hides misses, and an alarm that came then was lost. */
void tide_misses_listen(tide_learner *learner)
{
    tide_learned *plan = tide_learner_plan_in_force(learner);
    if (plan != NULL && learner->site->kind == TIDE_KIND_SCOPE)
        tide_learned_arm(plan, learner->misses_max);
}

static uint64_t misses_now(const tide_learner *learner)
{
    const tide_learned *plan = tide_learner_plan_in_force(learner);
    return plan != NULL ? tide_learned_misses(plan) : 0;
}

static void misses_note(tide_learner *learner, uint64_t misses, uint64_t round)
{
    learner->misses_seen = misses;
    learner->quiet_since = round;
    learner->reason = TIDE_REASON_missed;
    tide_event_note(TIDE_EVENT_MISSED, learner->site,
                    __atomic_load_n(&learner->site->plan, __ATOMIC_RELAXED)->tier,
                    TIDE_REASON_missed, "");
}

/* Each time it takes twice as many misses to reopen observation; a long quiet halves
 * the number again. */
void tide_misses_look(tide_learner *learner, uint64_t round)
{
    uint64_t misses = misses_now(learner), initial = tide_constant_whole(TIDE_CONSTANT_misses);
    if (misses - learner->misses_seen >= learner->misses_max) {
        misses_note(learner, misses, round);
        learner->misses_max *= 2;
        learner->next_window = round;
    } else if (round - learner->quiet_since >=
               2 * tide_constant_whole(TIDE_CONSTANT_window_every)) {
        learner->quiet_since = round;
        uint64_t half = learner->misses_max / 2;
        learner->misses_max = half > initial ? half : initial;
    }
}

/* ---- at once ---------------------------------------------------------------------------- */

/* The plan of exactly these types, if it is not in force; TIDE_NO_PLAN: there is none. */
static uint32_t misses_known_plan(const tide_learner *learner, const tide_items *items)
{
    for (uint32_t i = 0; i < learner->plan_count; i++)
        if (i != learner->in_force && tide_items_same(&learner->plans[i]->items, items))
            return i;
    return TIDE_NO_PLAN;
}

/* A change to a plan that does not last costs more than it gains. It has lasted if all but a few of
 * the uses since were no misses: so a type that comes now and then is no reason for a change, nor is
 * it one to change back from a change that was made for it. */
static bool misses_has_lasted(const tide_learner *learner, uint64_t misses)
{
    enum { FEW_USES = 64, USES_FOR_A_MISS = 2 };
    return tide_site_uses(learner->site) - learner->uses_changed >
           FEW_USES + misses * USES_FOR_A_MISS;
}

/* A scope of that plan, the last of as many as learning was to be told of, has acquired these types
 * and more or others than the plan saves. */
static void misses_alarm(const tide_plan *of, const tide_items *touched, uint64_t round)
{
    tide_learned *plan = tide_learned_of(of);
    tide_learner *learner = plan->learner;
    const tide_site_record *record = learner->site->record;
    if (tide_learner_plan_in_force(learner) != plan || learner->window || record->pinned ||
        record->declared != NULL) {
        tide_learned_arm(plan, 0); /* until it is put in force again */
        return;
    }
    uint64_t misses = misses_now(learner) - learner->misses_seen;
    if (misses < learner->misses_max) {
        tide_learned_arm(plan, learner->misses_max - misses);
        return;
    }
    tide_force_judge(learner, round); /* a trial that is over is not thrown away */
    bool lasted = misses_has_lasted(learner, misses);
    uint32_t known = lasted ? misses_known_plan(learner, touched) : TIDE_NO_PLAN;
    misses_note(learner, misses_now(learner), round);
    tide_misses_be_patient(learner, !lasted);
    if (known == TIDE_NO_PLAN) {
        tide_watch_open_window(learner, true);
        return;
    }
    tide_count(reused);
    tide_force_change(learner, known, round, TIDE_REASON_reused);
}

static bool adapt_begin(void)
{
    return tide_constant_get(TIDE_CONSTANT_adapt) != 0 &&
           tide_setting_get(TIDE_SETTING_learn) != 0 && tide_round_begin_at_once();
}

void tide_adapt_filled(tide_site *site)
{
    if (adapt_begin()) {
        tide_watch(site, tide_round_number());
        tide_round_end_at_once();
    }
    tide_background_wanted();
    (void)tide_event_deliver();
}

/* If it touched more types than a list has room for, no plan is said to be of exactly these. */
void tide_adapt_missed(const tide_scope *scope)
{
    tide_items touched = {0};
    tide_assert(scope->plan->kind == TIDE_KIND_SCOPE);
    if (!tide_touches_known(scope) || !adapt_begin())
        return;
    touched.count = tide_touches_list(scope, touched.types, TIDE_ITEMS_MAX);
    misses_alarm(scope->plan, &touched, tide_round_number());
    tide_round_end_at_once();
}

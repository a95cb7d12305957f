/* SPDX-License-Identifier: MIT */
/* How a trial is opened for bursts of uses, how its uses are made and timed, and how it is judged and
 * ended.
 *
 * Uses are taken in turns of eight. Two turns, one of each plan, are a pair; which plan goes first
 * in a pair is drawn at random, so that a program whose uses have a rhythm favours neither. The
 * first use of a turn is not timed: it pays for the change. */
#define _GNU_SOURCE
#include "jit/learn/trial.h"

#include <string.h>

#include "jit/learn/background.h"
#include "jit/learn/series.h"
#include "jit/learn/test_hooks.h"
#include "profiler/observe.h"
#include "runtime/base/assert.h"
#include "runtime/base/hash.h"
#include "runtime/base/os.h"
#include "runtime/base/settings.h"
#include "runtime/scope/plan.h"
#include "runtime/scope/site.h"

/* The two plans of a trial, and the two parts of a use that are timed. */
enum { CONTROL, CANDIDATE, PLANS };
enum { ENTER, LEAVE, PARTS };

/* One of them, and the copy of it by which a scope leaves that is timed. */
typedef struct timed_copy {
    tide_plan plan;
    const tide_plan *timed;
    struct tide_trial *trial;
} timed_copy;

/* The times of one turn, by part. Atomic. */
typedef struct timed_turn {
    uint32_t ns[PARTS];
    uint16_t count[PARTS];
} timed_turn;

enum { PAIRS = 16, PAIR_USES = 16 }; /* pairs of a burst at most; uses of a pair */

/* A trial: what either plan took on the site's own uses. Its plans are set once. The registry
 * guards the rest, but for what is atomic. */
typedef struct tide_trial {
    tide_plan plan; /* the site's while a burst lasts */
    timed_copy timed[PLANS];
    bool open;          /* it was begun, and has no verdict */
    uint64_t remaining; /* uses that may still be asked for */
    uint64_t clock_ns;  /* what looking at the clock adds to each time */
    uint64_t bursts;    /* so far, after the number of the learner in the upper half */
    uint32_t burst_pairs;
    bool warm;                   /* a first burst has told the least times  */
    uint32_t most[PARTS];        /* atomic: longer times count as so long   */
    uint32_t least[PARTS];       /* atomic                                  */
    uint64_t left;               /* atomic: uses of the burst not yet taken */
    uint16_t first_is_candidate; /* atomic: of the burst's pairs, a bit each */
    timed_turn turns[PAIRS][PLANS];
    tide_series taken[PLANS], gain; /* of each pair's uses; of their differences */
} tide_trial;

/* Longer times count as so long, a quarter of a second: the sum of a turn fits. */
enum { TURN = PAIR_USES / 2, NS_MAX = 1 << 28 };

_Static_assert((TURN & (TURN - 1)) == 0 && PAIRS <= 16,
               "turns are found by masks; a bit for each pair fits");
_Static_assert((uint64_t)NS_MAX *(TURN + 7) <= UINT32_MAX,
               "the sum of a turn fits, should some threads add to a full one at once");

static uint64_t timed_now_ns(const tide_plan *plan)
{
    (void)plan;
    return tide_os_now_ns();
}

uint64_t (*tide_trial_clock)(const tide_plan *timed) = timed_now_ns;

/* How many uses of the burst were not taken yet? Any thread. */
static uint64_t timed_left(const tide_trial *trial)
{
    return __atomic_load_n(&trial->left, __ATOMIC_ACQUIRE);
}

/* ---- which uses ------------------------------------------------------------------------- */

/* A use of a burst. */
typedef struct use {
    tide_trial *trial;
    timed_copy *plan; /* which makes it; NULL: it is none of a burst's       */
    timed_turn *turn; /* where it is added; NULL: it is not timed            */
    bool last;        /* of its burst                                        */
} use;

static tide_trial *timed_trial_of(const tide_plan *plan)
{
    _Static_assert(offsetof(tide_trial, plan) == 0, "a trial is found by its plan");
    return (tide_trial *)(uintptr_t)plan;
}

/* The last use of a burst puts the plan in force back, and asks for the round that opens the next: rounds
 * rest ever longer where nobody wants them. If the next burst has been opened meanwhile, that took its
 * plan away; so look again, and put it there. */
static void timed_end_burst(tide_trial *trial, tide_site *site)
{
    const tide_plan *own = &trial->plan, *control = trial->timed[CONTROL].timed;
    if (!__atomic_compare_exchange_n(&site->plan, &own, control, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return;
    if (timed_left(trial) != 0)
        __atomic_compare_exchange_n(&site->plan, &control, &trial->plan, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED);
    tide_background_wanted();
}

static use timed_take(const tide_plan *plan)
{
    use u = {.trial = timed_trial_of(plan)};
    uint64_t left = timed_left(u.trial);
    do {
        if (left == 0)
            return u;
    } while (!__atomic_compare_exchange_n(&u.trial->left, &left, left - 1, true, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    u.last = left == 1;
    uint32_t pair = (uint32_t)(left - 1) / PAIR_USES;
    bool first = (left - 1) / TURN % 2 != 0; /* they are counted down */
    uint16_t firsts = __atomic_load_n(&u.trial->first_is_candidate, __ATOMIC_RELAXED);
    unsigned which = first == ((firsts >> pair & 1) != 0) ? CANDIDATE : CONTROL;
    tide_assert(pair < PAIRS);
    u.plan = &u.trial->timed[which];
    if (left % TURN != 0)
        u.turn = &u.trial->turns[pair][which];
    return u;
}

/* By which plan the use is made. */
static const tide_plan *timed_plan(const use *u)
{
    return u->plan != NULL ? u->plan->timed : u->trial->timed[CONTROL].timed;
}

static uint64_t timed_start(const use *u)
{
    return u->turn != NULL ? tide_trial_clock(u->plan->timed) : 0;
}

/* What comes late may be added to a pair of the next burst: it is of the same plan. (Two threads
 * that find a new least at once may lose one of them: no harm.) */
static void timed_add(tide_trial *trial, timed_turn *turn, unsigned part, uint64_t ns)
{
    tide_assert(part < PARTS);
    if (__atomic_load_n(&turn->count[part], __ATOMIC_RELAXED) >= TURN) /* late ones: the sum fits */
        return;
    uint32_t most = __atomic_load_n(&trial->most[part], __ATOMIC_RELAXED);
    if (ns < __atomic_load_n(&trial->least[part], __ATOMIC_RELAXED))
        __atomic_store_n(&trial->least[part], (uint32_t)ns, __ATOMIC_RELAXED);
    __atomic_fetch_add(&turn->ns[part], ns < most ? (uint32_t)ns : most, __ATOMIC_RELAXED);
    __atomic_fetch_add(&turn->count[part], 1, __ATOMIC_RELAXED);
}

static void timed_over(const use *u, uint64_t started)
{
    if (u->turn != NULL)
        timed_add(u->trial, u->turn, ENTER, tide_trial_clock(u->plan->timed) - started);
}

/* ---- uses ------------------------------------------------------------------------------- */

/* A scope that is timed leaves by the turn's own copy of its plan. Nobody asks an open scope for
 * the copy but its end. */
static void timed_leave_by(const use *u, tide_scope *scope)
{
    if (u->turn != NULL && scope->plan == u->plan->timed)
        scope->plan = &u->plan->plan;
}

/* Of the pair that is being used now: mostly the one in which the scope was entered. */
static timed_turn *timed_turn_of_leave(const timed_copy *plan)
{
    uint64_t pair = timed_left(plan->trial) / PAIR_USES;
    if (pair >= PAIRS)
        pair = PAIRS - 1;
    return &plan->trial->turns[pair][plan - plan->trial->timed];
}

static void timed_leave(tide_scope *scope)
{
    _Static_assert(offsetof(timed_copy, plan) == 0, "a copy is found by its plan");
    timed_copy *plan = (timed_copy *)(uintptr_t)scope->plan;
    timed_turn *turn = timed_turn_of_leave(plan);
    scope->plan = plan->timed;
    uint64_t started = tide_trial_clock(plan->timed);
    __atomic_load_n(&plan->timed->leave, __ATOMIC_RELAXED)(scope);
    timed_add(plan->trial, turn, LEAVE, tide_trial_clock(plan->timed) - started);
}

static void timed_enter(tide_scope *scope, tide_pool *pool, const tide_plan *plan, tide_site *site)
{
    use u = timed_take(plan);
    const tide_plan *by = timed_plan(&u);
    uint64_t started = timed_start(&u);
    __atomic_load_n(&by->enter, __ATOMIC_RELAXED)(scope, pool, by, site);
    timed_over(&u, started);
    timed_leave_by(&u, scope);
    if (u.last) /* now: what it does is no part of what a use takes */
        timed_end_burst(u.trial, site);
}

/* ---- times ------------------------------------------------------------------------------ */

static void timed_clear_turn(timed_turn *turn)
{
    for (unsigned part = 0; part < PARTS; part++) {
        __atomic_store_n(&turn->ns[part], 0, __ATOMIC_RELAXED);
        __atomic_store_n(&turn->count[part], 0, __ATOMIC_RELAXED);
    }
}

static void timed_clear_turns(tide_trial *trial)
{
    for (unsigned i = 0; i < PAIRS * PLANS; i++)
        timed_clear_turn(&trial->turns[i / PLANS][i % PLANS]);
}

/* A time that is much longer than the least was interrupted. It counts as eight times the least, by
 * either plan alike. So one interrupt does not hide a difference of nanoseconds, and a miss of a
 * cache still counts. The first burst tells the least, and its times are forgotten; from then on the
 * limit stands. */
static void timed_warm_up(tide_trial *trial)
{
    enum { TIMES = 8, ROOM = 100 };
    tide_assert(!trial->warm);
    for (unsigned part = 0; part < PARTS; part++) {
        uint64_t least = __atomic_load_n(&trial->least[part], __ATOMIC_RELAXED);
        uint64_t most = least * TIMES + ROOM;
        __atomic_store_n(&trial->most[part], (uint32_t)(most < NS_MAX ? most : NS_MAX),
                         __ATOMIC_RELAXED);
    }
    trial->warm = true;
    timed_clear_turns(trial);
}

/* A part that was timed for one plan only tells nothing: a longjmp may have passed it, or the
 * scopes are still open. */
static bool timed_has_part(const timed_turn turns[PLANS], unsigned part)
{
    return __atomic_load_n(&turns[0].count[part], __ATOMIC_RELAXED) != 0 &&
           __atomic_load_n(&turns[1].count[part], __ATOMIC_RELAXED) != 0;
}

static double timed_mean(const tide_trial *trial, const timed_turn *turn, unsigned part)
{
    double ns = (double)__atomic_load_n(&turn->ns[part], __ATOMIC_RELAXED);
    double count = __atomic_load_n(&turn->count[part], __ATOMIC_RELAXED);
    double mean = ns / count - (double)trial->clock_ns;
    tide_assert(count > 0);
    return mean > 0 ? mean : 0;
}

/* What a pair has measured of one use by either plan, in nanoseconds, without the clock, once all its
 * uses were taken; its times are then forgotten. False: there is nothing, or too little. */
static bool timed_collect(tide_trial *trial, uint32_t pair, double ns[PLANS])
{
    tide_assert(pair < trial->burst_pairs && trial->warm);
    timed_turn *turns = trial->turns[pair];
    bool whole = timed_has_part(turns, ENTER);
    ns[CONTROL] = ns[CANDIDATE] = 0;
    for (unsigned part = 0; part < PARTS; part++)
        for (unsigned plan = 0; plan < PLANS; plan++)
            if (timed_has_part(turns, part))
                ns[plan] += timed_mean(trial, &turns[plan], part);
    for (unsigned plan = 0; plan < PLANS; plan++)
        timed_clear_turn(&turns[plan]);
    return whole;
}

/* ---- holding one ------------------------------------------------------------------------ */

/* Nanoseconds that the two looks at the clock add to each time. */
static uint64_t timed_clock_cost(void)
{
    enum { TIMES = 16 };
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < TIMES; i++) {
        uint64_t started = tide_trial_clock(NULL), ns = tide_trial_clock(NULL) - started;
        least = ns < least ? ns : least;
    }
    return least;
}

/* Made once for a plan, since scopes may be inside it as long as the site is loaded. */
static bool trial_make(const tide_learner *learner, tide_learned *plan)
{
    tide_assert(learner->site->kind == TIDE_KIND_SCOPE && plan->code->tier == TIDE_TIER_COMPILED);
    if (plan->trial == NULL)
        plan->trial = tide_os_resize(NULL, sizeof *plan->trial);
    else
        return true;
    tide_trial *trial = plan->trial;
    if (trial == NULL)
        return false;
    const tide_plan *both[PLANS] = {plan->table, plan->code};
    /* So sites in one loop draw other orders, and do not change turns together. */
    *trial = (tide_trial){.plan = *plan->table, .bursts = learner->number << 32};
    trial->plan.enter = timed_enter;
    for (unsigned i = 0; i < PLANS; i++) {
        trial->timed[i] = (timed_copy){.plan = *both[i], .timed = both[i], .trial = trial};
        trial->timed[i].plan.leave = timed_leave;
    }
    return true;
}

static uint64_t trial_whole_pairs(uint64_t uses)
{
    return (uses + PAIR_USES - 1) / PAIR_USES * PAIR_USES;
}

static void trial_start(tide_trial *trial)
{
    for (unsigned part = 0; part < PARTS; part++) {
        __atomic_store_n(&trial->least[part], NS_MAX, __ATOMIC_RELAXED);
        __atomic_store_n(&trial->most[part], NS_MAX, __ATOMIC_RELAXED);
    }
    timed_clear_turns(trial);
    trial->warm = false;
    trial->clock_ns = timed_clock_cost();
    memset(trial->taken, 0, sizeof trial->taken);
    trial->gain = (tide_series){0};
    trial->remaining = trial_whole_pairs(tide_constant_whole(TIDE_CONSTANT_trial_calls));
    trial->open = true;
}

/* Which plan goes first in each pair: bits that look like chance, for every burst of every trial. */
static void trial_open_burst(tide_learner *learner, tide_trial *trial)
{
    enum { WARM_UP = 2 * PAIR_USES };
    uint64_t burst = trial_whole_pairs(tide_constant_whole(TIDE_CONSTANT_trial_burst));
    if (!trial->warm)
        burst = WARM_UP;
    if (burst > trial->remaining)
        burst = trial->remaining;
    trial->remaining -= burst;
    trial->burst_pairs = (uint32_t)(burst / PAIR_USES);
    tide_assert(burst > 0 && trial->burst_pairs <= PAIRS && timed_left(trial) == 0);
    trial->bursts++;
    uint16_t order = (uint16_t)tide_hash_bytes(&trial->bursts, sizeof trial->bursts);
    __atomic_store_n(&trial->first_is_candidate, order, __ATOMIC_RELAXED);
    __atomic_store_n(&trial->left, burst, __ATOMIC_RELEASE);
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
    else if (trial->remaining == 0) /* interrupted at its very end: a pair, and its verdict */
        trial->remaining = PAIR_USES;
    trial_open_burst(learner, trial);
    return true;
}

bool tide_trial_burst_over(const tide_learned *plan)
{
    return plan->state == TIDE_CODE_TRIED && timed_left(plan->trial) == 0;
}

/* A pinned site runs what it is pinned to. And an observing plan would not know by which of the two
 * a scope was entered. */
const tide_plan *tide_trial_wrap(tide_learned *learned, const tide_plan *plan)
{
    const tide_trial *trial = learned->trial;
    return learned->state == TIDE_CODE_TRIED && plan == trial->timed[CONTROL].timed &&
                   timed_left(trial) != 0 && !learned->learner->site->record->pinned &&
                   !tide_observe_always_on()
               ? &trial->plan
               : plan;
}

/* Takes the pairs of which so many uses of the burst have left nothing open. */
static void trial_gather(tide_trial *trial, uint64_t left)
{
    uint32_t first = (uint32_t)(trial_whole_pairs(left) / PAIR_USES);
    double ns[PLANS];
    tide_assert(first <= trial->burst_pairs);
    if (!trial->warm && left == 0)
        timed_warm_up(trial);
    for (uint32_t pair = 0; trial->warm && pair < trial->burst_pairs; pair++) {
        if (!timed_collect(trial, pair, ns) || pair < first)
            continue;
        for (unsigned plan = 0; plan < PLANS; plan++)
            tide_series_add(&trial->taken[plan], ns[plan]);
        tide_series_add(&trial->gain, ns[CONTROL] - tide_constant_get(TIDE_CONSTANT_trial_margin) *
                                                        ns[CANDIDATE]);
    }
    trial->burst_pairs = 0;
}

/* What was not used of a burst may be asked for again. */
void tide_trial_end(tide_learner *learner, tide_learned *plan)
{
    tide_trial *trial = plan->trial;
    if (plan->state != TIDE_CODE_TRIED)
        return;
    uint64_t left = __atomic_exchange_n(&trial->left, 0, __ATOMIC_RELAXED);
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
    return (tide_trial_figures){.uses = trial->gain.count * PAIR_USES,
                                .control_ns = trial->taken[CONTROL].mean,
                                .candidate_ns = trial->taken[CANDIDATE].mean,
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
    bool over = timed_left(trial) == 0;
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

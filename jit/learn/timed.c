/* SPDX-License-Identifier: MIT */
/* The plan of a site on trial: which of the two plans makes a use, and how long that takes. */
#define _GNU_SOURCE
#include "jit/learn/timed.h"

#include <time.h>

#include "jit/learn/test_hooks.h"
#include "runtime/base/assert.h"
#include "runtime/base/hash.h"
#include "runtime/scope/plan.h"

/* Longer times count as so long, a quarter of a second: the sum of a turn fits. */
enum { TURN = TIDE_TRIAL_PAIR / 2, NS_MAX = 1 << 28 };

_Static_assert((TURN & (TURN - 1)) == 0 && TIDE_TRIAL_PAIRS <= 16,
               "turns are found by masks; a bit for each pair fits");
_Static_assert((uint64_t)NS_MAX *(TURN + 7) <= UINT32_MAX,
               "the sum of a turn fits, should some threads add to a full one at once");

static uint64_t timed_monotonic_ns(const tide_plan *plan)
{
    (void)plan;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t (*tide_trial_clock)(const tide_plan *timed) = timed_monotonic_ns;

/* ---- bursts ----------------------------------------------------------------------------- */

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

/* Which plan goes first in each pair: bits that look like chance, for every burst of every
 * trial. */
static uint16_t timed_draw_order(tide_trial *trial)
{
    trial->bursts++;
    return (uint16_t)tide_hash_bytes(&trial->bursts, sizeof trial->bursts);
}

void tide_timed_open(tide_trial *trial, uint64_t uses)
{
    tide_assert(uses > 0 && uses % TIDE_TRIAL_PAIR == 0);
    trial->burst_pairs = (uint32_t)(uses / TIDE_TRIAL_PAIR);
    tide_assert(trial->burst_pairs <= TIDE_TRIAL_PAIRS && tide_timed_left(trial) == 0);
    __atomic_store_n(&trial->first_is_candidate, timed_draw_order(trial), __ATOMIC_RELAXED);
    __atomic_store_n(&trial->left, uses, __ATOMIC_RELEASE);
}

uint64_t tide_timed_close(tide_trial *trial)
{
    return __atomic_exchange_n(&trial->left, 0, __ATOMIC_RELAXED);
}

uint64_t tide_timed_left(const tide_trial *trial)
{
    return __atomic_load_n(&trial->left, __ATOMIC_ACQUIRE);
}

/* ---- times ------------------------------------------------------------------------------ */

static void timed_clear_turn(tide_turn *turn)
{
    for (unsigned part = 0; part < TIDE_TRIAL_PARTS; part++) {
        __atomic_store_n(&turn->ns[part], 0, __ATOMIC_RELAXED);
        __atomic_store_n(&turn->count[part], 0, __ATOMIC_RELAXED);
    }
}

static void timed_clear_turns(tide_trial *trial)
{
    for (unsigned i = 0; i < TIDE_TRIAL_PAIRS * TIDE_TRIAL_PLANS; i++)
        timed_clear_turn(&trial->turns[i / TIDE_TRIAL_PLANS][i % TIDE_TRIAL_PLANS]);
}

/* A time that is much longer than the least was interrupted. It counts as eight times the least, by
 * either plan alike. So one interrupt does not hide a difference of nanoseconds, and a miss of a
 * cache still counts. The first burst tells the least; from then on the limit stands. */
void tide_timed_warm_up(tide_trial *trial)
{
    enum { TIMES = 8, ROOM = 100 };
    tide_assert(!trial->warm);
    for (unsigned part = 0; part < TIDE_TRIAL_PARTS; part++) {
        uint64_t least = __atomic_load_n(&trial->least[part], __ATOMIC_RELAXED);
        uint64_t most = least * TIMES + ROOM;
        __atomic_store_n(&trial->most[part], (uint32_t)(most < NS_MAX ? most : NS_MAX),
                         __ATOMIC_RELAXED);
    }
    trial->warm = true;
    timed_clear_turns(trial);
}

void tide_timed_clear(tide_trial *trial)
{
    for (unsigned part = 0; part < TIDE_TRIAL_PARTS; part++) {
        __atomic_store_n(&trial->least[part], NS_MAX, __ATOMIC_RELAXED);
        __atomic_store_n(&trial->most[part], NS_MAX, __ATOMIC_RELAXED);
    }
    timed_clear_turns(trial);
    trial->warm = false;
    trial->clock_ns = timed_clock_cost();
}

/* A part that was timed for one plan only tells nothing: a longjmp may have passed it, or the
 * scopes are still open. */
static bool timed_has_part(const tide_turn turns[TIDE_TRIAL_PLANS], unsigned part)
{
    return __atomic_load_n(&turns[0].count[part], __ATOMIC_RELAXED) != 0 &&
           __atomic_load_n(&turns[1].count[part], __ATOMIC_RELAXED) != 0;
}

static double timed_mean(const tide_trial *trial, const tide_turn *turn, unsigned part)
{
    double ns = (double)__atomic_load_n(&turn->ns[part], __ATOMIC_RELAXED);
    double count = __atomic_load_n(&turn->count[part], __ATOMIC_RELAXED);
    double mean = ns / count - (double)trial->clock_ns;
    tide_assert(count > 0);
    return mean > 0 ? mean : 0;
}

bool tide_timed_collect(tide_trial *trial, uint32_t pair, tide_timed_figures *out)
{
    tide_assert(pair < trial->burst_pairs && trial->warm);
    tide_turn *turns = trial->turns[pair];
    bool whole = timed_has_part(turns, TIDE_TRIAL_ENTER);
    *out = (tide_timed_figures){0};
    for (unsigned part = 0; part < TIDE_TRIAL_PARTS; part++)
        for (unsigned plan = 0; plan < TIDE_TRIAL_PLANS; plan++)
            if (timed_has_part(turns, part))
                out->ns[plan] += timed_mean(trial, &turns[plan], part);
    for (unsigned plan = 0; plan < TIDE_TRIAL_PLANS; plan++)
        timed_clear_turn(&turns[plan]);
    return whole;
}

/* ---- which uses ------------------------------------------------------------------------- */

/* A use of a burst. */
typedef struct use {
    tide_trial *trial;
    tide_timed_plan *plan; /* which makes it; NULL: it is none of a burst's       */
    tide_turn *turn;       /* where it is added; NULL: it is not timed            */
} use;

static tide_trial *timed_trial_of(const tide_plan *plan)
{
    _Static_assert(offsetof(tide_trial, plan) == 0, "a trial is found by its plan");
    return (tide_trial *)(uintptr_t)plan;
}

/* The last use of a burst puts the plan in force back. If the next burst has been opened meanwhile,
 * that took its plan away; so look again, and put it there. */
static void timed_end_burst(tide_trial *trial, tide_site *site)
{
    const tide_plan *own = &trial->plan, *control = trial->timed[TIDE_TRIAL_CONTROL].timed;
    if (!__atomic_compare_exchange_n(&site->plan, &own, control, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return;
    if (tide_timed_left(trial) != 0)
        __atomic_compare_exchange_n(&site->plan, &control, &trial->plan, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED);
}

static use timed_take(const tide_plan *plan, tide_site *site)
{
    use u = {.trial = timed_trial_of(plan)};
    uint64_t left = tide_timed_left(u.trial);
    do {
        if (left == 0)
            return u;
    } while (!__atomic_compare_exchange_n(&u.trial->left, &left, left - 1, true, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    if (left == 1)
        timed_end_burst(u.trial, site);
    uint32_t pair = (uint32_t)(left - 1) / TIDE_TRIAL_PAIR;
    bool first = (left - 1) / TURN % 2 != 0; /* they are counted down */
    uint16_t firsts = __atomic_load_n(&u.trial->first_is_candidate, __ATOMIC_RELAXED);
    unsigned which =
        first == ((firsts >> pair & 1) != 0) ? TIDE_TRIAL_CANDIDATE : TIDE_TRIAL_CONTROL;
    tide_assert(pair < TIDE_TRIAL_PAIRS);
    u.plan = &u.trial->timed[which];
    if (left % TURN != 0)
        u.turn = &u.trial->turns[pair][which];
    return u;
}

/* By which plan the use is made. */
static const tide_plan *timed_plan(const use *u)
{
    return u->plan != NULL ? u->plan->timed : u->trial->timed[TIDE_TRIAL_CONTROL].timed;
}

static uint64_t timed_start(const use *u)
{
    return u->turn != NULL ? tide_trial_clock(u->plan->timed) : 0;
}

/* What comes late may be added to a pair of the next burst: it is of the same plan. (Two threads
 * that find a new least at once may lose one of them: no harm.) */
static void timed_add(tide_trial *trial, tide_turn *turn, unsigned part, uint64_t ns)
{
    tide_assert(part < TIDE_TRIAL_PARTS);
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
        timed_add(u->trial, u->turn, TIDE_TRIAL_ENTER, tide_trial_clock(u->plan->timed) - started);
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
static tide_turn *timed_turn_of_leave(const tide_timed_plan *plan)
{
    uint64_t pair = tide_timed_left(plan->trial) / TIDE_TRIAL_PAIR;
    if (pair >= TIDE_TRIAL_PAIRS)
        pair = TIDE_TRIAL_PAIRS - 1;
    return &plan->trial->turns[pair][plan - plan->trial->timed];
}

static void timed_leave(tide_scope *scope)
{
    _Static_assert(offsetof(tide_timed_plan, plan) == 0, "a copy is found by its plan");
    tide_timed_plan *plan = (tide_timed_plan *)(uintptr_t)scope->plan;
    tide_turn *turn = timed_turn_of_leave(plan);
    scope->plan = plan->timed;
    uint64_t started = tide_trial_clock(plan->timed);
    __atomic_load_n(&plan->timed->leave, __ATOMIC_RELAXED)(scope);
    timed_add(plan->trial, turn, TIDE_TRIAL_LEAVE, tide_trial_clock(plan->timed) - started);
}

static void timed_enter(tide_scope *scope, tide_pool *pool, const tide_plan *plan, tide_site *site)
{
    use u = timed_take(plan, site);
    const tide_plan *by = timed_plan(&u);
    uint64_t started = timed_start(&u);
    __atomic_load_n(&by->enter, __ATOMIC_RELAXED)(scope, pool, by, site);
    timed_over(&u, started);
    timed_leave_by(&u, scope);
}

static void timed_frame(tide_scope *scope, tide_pool *pool, uint32_t count, const tide_type *types,
                        const size_t *counts, void **data)
{
    use u = timed_take(scope->plan, scope->site);
    const tide_plan *by = scope->plan = timed_plan(&u);
    uint64_t started = timed_start(&u);
    __atomic_load_n(&by->frame, __ATOMIC_RELAXED)(scope, pool, count, types, counts, data);
    timed_over(&u, started);
    timed_leave_by(&u, scope);
}

static void *timed_acquire(tide_pool *pool, tide_type type, size_t n, const tide_plan *plan,
                           tide_site *site)
{
    use u = timed_take(plan, site);
    const tide_plan *by = timed_plan(&u);
    uint64_t started = timed_start(&u);
    void *data = __atomic_load_n(&by->acquire, __ATOMIC_RELAXED)(pool, type, n, by, site);
    timed_over(&u, started);
    return data;
}

static tide_array *timed_array(tide_pool *pool, tide_type type, int ndim, const int64_t *shape,
                               const tide_plan *plan, tide_site *site)
{
    use u = timed_take(plan, site);
    const tide_plan *by = timed_plan(&u);
    uint64_t started = timed_start(&u);
    tide_array *array =
        __atomic_load_n(&by->array, __ATOMIC_RELAXED)(pool, type, ndim, shape, by, site);
    timed_over(&u, started);
    return array;
}

static const tide_plan timed_plans[TIDE_SPEC_KINDS] = {
    [TIDE_KIND_SCOPE] = {.enter = timed_enter},
    [TIDE_KIND_FRAME] = {.frame = timed_frame},
    [TIDE_KIND_ACQUIRE] = {.acquire = timed_acquire},
    [TIDE_KIND_ARRAY] = {.array = timed_array},
};

void tide_timed_prepare(tide_trial *trial, const tide_plan *control, const tide_plan *candidate)
{
    _Static_assert(TIDE_SPEC_KINDS == 4, "timed_plans has a row for each kind that is compiled");
    const tide_plan *both[TIDE_TRIAL_PLANS] = {control, candidate};
    tide_assert(control->kind == candidate->kind && control != candidate);
    tide_assert(tide_timed_left(trial) == 0); /* not open */
    trial->plan = *control;
    trial->plan.enter = timed_plans[control->kind].enter;
    for (unsigned i = 0; i < TIDE_TRIAL_PLANS; i++) {
        trial->timed[i] = (tide_timed_plan){.plan = *both[i], .timed = both[i], .trial = trial};
        trial->timed[i].plan.leave = timed_leave;
    }
    tide_assert(trial->plan.enter != NULL && control->enter != NULL);
}

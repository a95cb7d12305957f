/* SPDX-License-Identifier: MIT */
/* Observation by plan swap: an observing plan lets the plan that it wraps do the work, and counts
 * what it saw. A site that is not observed runs its plan unwrapped.
 *
 * Which uses are counted. A window of n uses hands out n tickets, one for each use. The use that
 * takes the last one publishes the wrapped plan again, and so does any use that finds none left:
 *
 *  1. The wrapped plan is published by compare-and-swap from this wrapper, and a wrapper always
 *     wraps the same plan. So whatever was published since then stays.
 *  2. Meanwhile the site may have been published for a new window, with this same wrapper. The swap
 *     has then taken the new window's wrapper away. But it has also read what that publication
 *     stored, so it sees the new window's tickets and swaps back.
 *  3. The last ticket may go after a publisher has looked at the window and before it stores the
 *     wrapper. The wrapper is then in force without a window; the next use finds no ticket and
 *     takes it away. */
#include "profiler/observe.h"

#include <search.h>

#include <tidepool/scope.h>

#include "profiler/tally.h"
#include "profiler/touches.h"
#include "profiler/window.h"
#include "runtime/base/assert.h"
#include "runtime/base/os.h"
#include "runtime/dispatch/generic.h"

/* One wrapper for each plan that was ever observed. Plans are few; a wrapper lives as
 * long as its plan. */
typedef struct observing_plan {
    tide_plan plan;
    const tide_plan *wrapped;
} observing_plan;

_Static_assert(offsetof(observing_plan, plan) == 0, "a plan is cast to the wrapper that holds it");

static void *observe_wrappers;  /* by the plan they wrap; guarded by the registry */
static bool observe_everything; /* atomic; stored with the registry locked */

void (*tide_window_filled)(tide_site *site);

void tide_observe_always(bool on)
{
    __atomic_store_n(&observe_everything, on, __ATOMIC_RELAXED);
}

bool tide_observe_always_on(void)
{
    return __atomic_load_n(&observe_everything, __ATOMIC_RELAXED);
}

/* ---- one use ---------------------------------------------------------------------------- */

/* What a use counts in, while it lasts. */
typedef struct use {
    tide_site *site;
    const observing_plan *self;
    tide_shard *shard; /* NULL: it is not counted */
    bool last;         /* of its window           */
} use;

static bool observe_window_open(const tide_tally *tally)
{
    return tally != NULL && __atomic_load_n(&tally->remaining, __ATOMIC_RELAXED) > 0;
}

/* Publishes the wrapped plan again, unless another one was published or the site is to be observed
 * on: steps 1 and 2 above. */
static void observe_unwrap(tide_site *site, const observing_plan *self)
{
    tide_assert(tide_observe_wraps(&self->plan) && !tide_observe_wraps(self->wrapped));
    const tide_plan *in_force = &self->plan;
    if (tide_observe_always_on() ||
        !__atomic_compare_exchange_n(&site->plan, &in_force, self->wrapped, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return;
    if (tide_observe_always_on() || observe_window_open(tide_tally_of(site))) {
        in_force = self->wrapped;
        __atomic_compare_exchange_n(&site->plan, &in_force, &self->plan, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED);
    }
}

/* How many tickets were left, this one included; 0: there was none. */
static int64_t observe_take_ticket(tide_tally *tally)
{
    if (__atomic_load_n(&tally->remaining, __ATOMIC_RELAXED) <= 0)
        return 0;
    int64_t ticket = __atomic_fetch_sub(&tally->remaining, 1, __ATOMIC_RELAXED);
    return ticket > 0 ? ticket : 0;
}

/* `known`: there is something to count. A use without it takes a ticket, too: else a site whose
 * every use fails would be observed for ever. */
static use observe_begin_use(tide_site *site, const tide_plan *plan, bool known)
{
    use u = {.site = site, .self = (const observing_plan *)plan};
    tide_assert(plan->kind == site->kind && tide_observe_wraps(plan));
    tide_tally *tally = tide_tally_of(site);
    int64_t ticket = tally != NULL ? observe_take_ticket(tally) : 0;
    tide_assert(ticket >= 0);
    u.last = ticket == 1;
    if (ticket == 0 && !tide_observe_always_on())
        observe_unwrap(site, u.self);
    else if (tally != NULL && known)
        u.shard = tide_tally_enter(tally);
    return u;
}

/* The use that filled the window ends it, and tells learning. */
static void observe_end_use(const use *u)
{
    if (u->shard != NULL)
        tide_shard_leave(u->shard);
    if (TIDE_LIKELY(!u->last))
        return;
    observe_unwrap(u->site, u->self);
    void (*filled)(tide_site *) = __atomic_load_n(&tide_window_filled, __ATOMIC_RELAXED);
    if (filled != NULL)
        filled(u->site);
}

static const tide_plan *observe_wrapped_by(const tide_plan *plan)
{
    tide_assert(tide_observe_wraps(plan));
    return ((const observing_plan *)plan)->wrapped;
}

/* ---- scopes ----------------------------------------------------------------------------- */

static void observe_enter(tide_scope *scope, tide_pool *pool, const tide_plan *plan,
                          tide_site *site)
{
    const tide_plan *wrapped = observe_wrapped_by(plan);
    __atomic_load_n(&wrapped->enter, __ATOMIC_RELAXED)(scope, pool, wrapped, site);
    scope->plan = plan;
    scope->site = site;
}

/* Counts before the wrapped plan leaves: afterwards the log tells nothing. */
static void observe_leave(tide_scope *scope)
{
    const tide_plan *wrapped = observe_wrapped_by(scope->plan);
    use u = observe_begin_use(scope->site, scope->plan, tide_touches_known(scope));
    if (u.shard != NULL)
        tide_touches_count(u.shard, scope);
    observe_end_use(&u);
    scope->plan = wrapped;
    __atomic_load_n(&wrapped->leave, __ATOMIC_RELAXED)(scope);
}

/* ---- dispatches -------------------------------------------------------------------------- */

/* Counts before the method runs: it may use the site itself, or never return. */
static void observe_dispatch(tide_generic *generic, tide_type type, void *args,
                             const tide_plan *plan, tide_site *site)
{
    const tide_plan *wrapped = observe_wrapped_by(plan);
    bool met = generic != NULL && tide_generic_takes(generic, type) &&
               tide_generic_find(generic, type) != NULL;
    tide_type number = met ? tide_generic_number(generic, type) : TIDE_NO_TYPE;
    use u = observe_begin_use(site, plan, met);
    if (u.shard != NULL) {
        tide_shard_count(u.shard, generic);
        tide_shard_count_type(u.shard, number, 1);
    }
    observe_end_use(&u);
    __atomic_load_n(&wrapped->dispatch, __ATOMIC_RELAXED)(generic, type, args, wrapped, site);
}

/* ---- wrapping --------------------------------------------------------------------------- */

/* The code pointers of both kinds share one place in a plan, so `enter` stands for either. */
static const tide_plan observing_plans[TIDE_KIND_COUNT] = {
    [TIDE_KIND_SCOPE] = {.enter = observe_enter},
    [TIDE_KIND_DISPATCH] = {.dispatch = observe_dispatch},
};

_Static_assert(TIDE_KIND_COUNT == 2, "observing_plans has a row for each kind");

bool tide_observe_wraps(const tide_plan *plan)
{
    tide_assert((unsigned)plan->kind < TIDE_KIND_COUNT);
    return __atomic_load_n(&plan->enter, __ATOMIC_RELAXED) == observing_plans[plan->kind].enter;
}

static int observe_compare(const void *left, const void *right)
{
    const tide_plan *a = ((const observing_plan *)left)->wrapped;
    const tide_plan *b = ((const observing_plan *)right)->wrapped;
    return (a > b) - (a < b);
}

/* Tier, types and shelves are the wrapped plan's, for whoever asks what the site runs. */
static observing_plan *observe_make_plan(const tide_plan *plan)
{
    observing_plan *made = tide_os_resize(NULL, sizeof *made);
    if (made == NULL)
        return NULL;
    *made = (observing_plan){
        .plan = {.enter = observing_plans[plan->kind].enter,
                 .leave = plan->kind == TIDE_KIND_SCOPE ? observe_leave : NULL,
                 .kind = plan->kind,
                 .tier = plan->tier,
                 .type_count = plan->type_count,
                 .types = plan->types,
                 .shelves = plan->shelves},
        .wrapped = plan,
    };
    return made;
}

const tide_plan *tide_observe_wrap(const tide_plan *plan)
{
    tide_assert(!tide_observe_wraps(plan));
    observing_plan key = {.wrapped = plan};
    observing_plan *const *found = tfind(&key, &observe_wrappers, observe_compare);
    if (found != NULL)
        return &(*found)->plan;
    observing_plan *made = observe_make_plan(plan);
    if (made == NULL)
        return NULL;
    found =
        tide_os_faulted(sizeof(void *)) ? NULL : tsearch(made, &observe_wrappers, observe_compare);
    if (found == NULL)
        tide_os_free(made);
    tide_assert(found == NULL || *found == made);
    return found != NULL ? &(*found)->plan : NULL;
}

/* Another plan may later get the address of this one: it must not find this wrapper. */
void tide_observe_drop(const tide_plan *plan)
{
    observing_plan key = {.wrapped = plan};
    observing_plan *const *found = tfind(&key, &observe_wrappers, observe_compare);
    if (found == NULL)
        return;
    observing_plan *made = *found;
    tide_assert(made->wrapped == plan);
    tdelete(&key, &observe_wrappers, observe_compare);
    tide_os_free(made);
}

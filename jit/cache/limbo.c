/* SPDX-License-Identifier: MIT */
/* Retired code waits here until nobody can be inside it: each pool is asked to pass twice, and
 * threads that sleep are looked at. The proof is in jit/cache/limbo.h. */
#include "jit/cache/limbo.h"
#include "jit/cache/test_hooks.h"

#include "jit/cache/asleep.h"
#include "runtime/base/assert.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/pool/core.h"
#include "runtime/pool/request.h"

typedef struct waiting {
    struct waiting *next;
    tide_artefact *artefact;
    bool shared; /* waits for nobody, and does not count */
} waiting;

/* Guarded by the registry. Retired code waits in `arrived` until the pools are asked anew; it is in
 * `asked` while they pass, and in `free` when all have passed twice. */
static struct {
    waiting *arrived, *asked, *free;
    waiting *inherited; /* of the parent of a forked process: stays */
    uint64_t youngest;  /* number of the youngest pool that was asked */
    uint64_t looks;     /* rounds since they were asked, in which some had not passed */
    size_t count;       /* atomic */
} limbo;

bool tide_limbo_looks_at_sleepers = true;

void tide_limbo_add(tide_artefact *artefact, bool shared)
{
    tide_assert(artefact != NULL);
    waiting *made = tide_os_resize(NULL, sizeof *made);
    waiting **list = shared ? &limbo.free : &limbo.arrived;
    if (!shared)
        __atomic_fetch_add(&limbo.count, 1, __ATOMIC_RELAXED);
    if (made == NULL)
        return; /* for good */
    *made = (waiting){*list, artefact, shared};
    *list = made;
}

size_t tide_limbo_count(void)
{
    return __atomic_load_n(&limbo.count, __ATOMIC_RELAXED);
}

/* How many passes a pool owes. If an older question still stands, whose answer was not waited for,
 * one pass may be the answer to that one. */
static uint32_t limbo_passes_due(const tide_pool_requests *requests)
{
    return requests->unanswered ? 3 : 2;
}

/* A pool that nobody adopted has no uses, so it need not pass. */
static void limbo_ask(tide_pool *pool, void *user)
{
    (void)user;
    tide_assert(pool->core->requests.passes_left == 0); /* the last question was answered */
    if (pool->core->requests.orphan) {
        pool->core->requests.passes_left = 0;
        return;
    }
    pool->core->requests.pass_wanted =
        __atomic_load_n(&pool->core->requests.passes, __ATOMIC_ACQUIRE) + 1;
    pool->core->requests.passes_left = limbo_passes_due(&pool->core->requests);
    pool->core->requests.unanswered = false;
    tide_request_pass(pool);
}

/* After the first pass has been seen, the pool is asked for the second. */
static void limbo_look(tide_pool *pool, void *user)
{
    tide_pool_core *core = pool->core;
    bool *all = user;
    if (core->list.number > limbo.youngest || core->requests.passes_left == 0)
        return;
    tide_assert(core->requests.passes_left <= 3);
    uint64_t passes = __atomic_load_n(&core->requests.passes, __ATOMIC_ACQUIRE);
    if (passes >= core->requests.pass_wanted && --core->requests.passes_left != 0) {
        core->requests.pass_wanted = passes + 1;
        tide_request_pass(pool);
    }
    *all = *all && core->requests.passes_left == 0;
}

/* ---- sleepers ----------------------------------------------------------------------------- */

enum { SLEEPERS_MAX = 64 }; /* that one round looks at */

typedef struct sleepers {
    tide_sleeper owners[SLEEPERS_MAX];
    uint64_t pools[SLEEPERS_MAX]; /* their numbers; 0: the owner was not seen outside */
    size_t count;
} sleepers;

/* Has the pool yet to pass? */
static bool limbo_waits_for(const tide_pool_core *core)
{
    return core->list.number <= limbo.youngest && core->requests.passes_left != 0;
}

static void limbo_list_owner(tide_pool *pool, void *user)
{
    const tide_pool_core *core = pool->core;
    sleepers *all = user;
    if (all->count == SLEEPERS_MAX || !limbo_waits_for(core) ||
        __atomic_load_n(&core->requests.stray, __ATOMIC_RELAXED))
        return;
    all->pools[all->count] = core->list.number;
    all->owners[all->count++] =
        (tide_sleeper){core->owner.number, core->owner.stack.low, core->owner.stack.high};
}

/* Who was seen outside need not pass any more; the question goes on standing in the pool. */
static void limbo_excuse(tide_pool *pool, void *user)
{
    tide_pool_core *core = pool->core;
    const sleepers *all = user;
    for (size_t i = 0; i < all->count; i++)
        if (all->pools[i] == core->list.number && limbo_waits_for(core)) {
            core->requests.passes_left = 0;
            core->requests.unanswered = true;
        }
}

/* The round's own list: others only read it, with the registry locked. NULL: no memory. */
static tide_code_range *limbo_list_code(size_t *count)
{
    size_t found = 0;
    for (const waiting *one = limbo.asked; one != NULL; one = one->next)
        found++;
    tide_assert(found != 0);
    tide_code_range *code = tide_os_resize(NULL, found * sizeof *code);
    *count = 0;
    for (const waiting *one = limbo.asked; one != NULL && code != NULL; one = one->next) {
        tide_artefact_range(one->artefact, &code[*count].first, &code[*count].last);
        ++*count;
    }
    return code;
}

/* A pool that is used passes in a moment, so the first round waits for that; later ones look ever
 * more rarely. */
static bool limbo_look_is_due(void)
{
    enum { SELDOM = 64 };
    uint64_t looks = limbo.looks;
    return tide_limbo_looks_at_sleepers && limbo.asked != NULL && looks != 0 &&
           ((looks & (looks - 1)) == 0 || looks % SELDOM == 0);
}

void tide_limbo_look_at_sleepers(void)
{
    sleepers all = {.count = 0};
    size_t count = 0;
    if (!limbo_look_is_due())
        return;
    tide_pools_visit(limbo_list_owner, &all);
    tide_code_range *code = all.count != 0 ? limbo_list_code(&count) : NULL;
    if (code == NULL)
        return;
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* who sleeps from now on wakes to the turned plans */
    for (size_t i = 0; i < all.count; i++)
        if (!tide_asleep_outside(&all.owners[i], code, count))
            all.pools[i] = 0;
    tide_os_free(code);
    tide_pools_visit(limbo_excuse, &all);
}

/* ---- fork --------------------------------------------------------------------------------- */

/* In the child of a fork nobody waits for passes any more; pools of threads that are not there have
 * no uses. */
static void limbo_forget_question(tide_pool *pool, void *user)
{
    tide_pool_core *core = pool->core;
    core->requests.passes_left = 0;
    core->requests.unanswered = true;
    core->requests.orphan |= tide_pool_owner(core) != *(const uintptr_t *)user;
    core->owner.number = core->requests.orphan ? 0 : tide_os_thread_number(); /* it has another */
}

static void limbo_append(waiting **list, waiting *more)
{
    while (*list != NULL)
        list = &(*list)->next;
    *list = more;
}

/* Moves the whole list. What is inherited waits for nobody, so it does not count. */
static void limbo_inherit(waiting **list)
{
    size_t count = 0;
    for (const waiting *one = *list; one != NULL; one = one->next)
        count += !one->shared;
    limbo_append(&limbo.inherited, *list);
    *list = NULL;
    tide_assert(tide_limbo_count() >= count);
    __atomic_fetch_sub(&limbo.count, count, __ATOMIC_RELAXED);
}

/* The parent's retired code stays: its memory is shared with the parent, and to unload it the child
 * would need locks of the dynamic linker that another thread of the parent may have held. */
void tide_limbo_forked(void)
{
    uintptr_t self = tide_os_thread();
    tide_pools_visit(limbo_forget_question, &self);
    limbo_inherit(&limbo.arrived);
    limbo_inherit(&limbo.asked);
    limbo_inherit(&limbo.free);
}

/* ---- rounds ------------------------------------------------------------------------------- */

void tide_limbo_round(void)
{
    if (limbo.asked != NULL) {
        bool all = true;
        tide_pools_visit(limbo_look, &all);
        if (!all) {
            limbo.looks++;
            return;
        }
        limbo_append(&limbo.free, limbo.asked);
        limbo.asked = NULL;
    }
    if (limbo.arrived == NULL)
        return;
    tide_assert(limbo.asked == NULL);
    limbo.asked = limbo.arrived;
    limbo.arrived = NULL;
    limbo.looks = 0;
    tide_assert(tide_pool_numbers() >= limbo.youngest);
    limbo.youngest = tide_pool_numbers();
    tide_pools_visit(limbo_ask, NULL);
}

/* Taken out one by one: what is in no list is lost to the child of a fork that comes meanwhile. */
static waiting *limbo_take_free(void)
{
    tide_registry_lock();
    waiting *first = limbo.free;
    if (first != NULL) {
        limbo.free = first->next;
        if (!first->shared)
            __atomic_fetch_sub(&limbo.count, 1, __ATOMIC_RELAXED);
    }
    tide_registry_unlock();
    return first;
}

size_t tide_limbo_unload(void)
{
    size_t unloaded = 0;
    for (waiting *one; (one = limbo_take_free()) != NULL;) {
        tide_artefact *artefact = one->artefact;
        tide_assert(artefact != NULL);
        unloaded += !one->shared;
        tide_os_free(one); /* before the linker is called: a fork would leave it to nobody */
        tide_artefact_drop(artefact);
    }
    return unloaded;
}

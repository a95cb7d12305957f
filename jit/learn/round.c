/* SPDX-License-Identifier: MIT */
/* One round of learning, step by step, and the lock that lets one thread at a time do one. */
#define _GNU_SOURCE
#include "jit/learn/round.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <tidepool/learn.h>
#include <tidepool/pool.h>

#include "jit/events/event.h"
#include "jit/learn/compile_request.h"
#include "jit/learn/pays.h"
#include "jit/learn/watch.h"
#include "jit/stager/stager.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/fork.h"
#include "runtime/base/hooks.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/base/settings.h"
#include "runtime/buffers/buffers.h"
#include "runtime/pool/core.h"
#include "runtime/pool/request.h"
#include "runtime/pool/shell.h"
#include "runtime/scope/site.h"

enum { LISTENER_MS = 2000 }; /* that a listener or a hook has to return once the process ends */

/* ---- the lock --------------------------------------------------------------------------- */

/* jit/learn/round.h says who holds what, and why. */
static tide_lock round_lock = TIDE_LOCK(TIDE_FORK_ROUND);
static pthread_cond_t round_over; /* on the monotonic clock */
static pthread_once_t round_prepared = PTHREAD_ONCE_INIT;

/* Guarded by the lock. */
static bool round_busy;      /* a thread has the round, with the lock or without */
static bool round_in_linker; /* without, for as long as the linker takes         */
static bool round_taken;     /* at exit, from the thread that was outside        */
static bool
    round_closed; /* the process ends: no round begins any more; atomic for who reads it without */

/* The keeper, without the lock, gives back old buffers, for which hooks of the program are called.
 * Guarded by the lock; only the keeper sets it. */
static bool round_in_hooks;
static bool round_hooks_left; /* at exit they were not waited for any longer */

/* The calling thread's. */
static _Thread_local struct {
    uint16_t deep;   /* rounds, one inside the other; not 0: the busy one is its own */
    uint16_t inside; /* of these, since the lock was taken; 0: it has not the lock   */
    bool listening;  /* the lock was let go for a listener, not for the linker       */
    bool taker;      /* it took another thread's round over                          */
    bool keeper;     /* it is the keeper                                             */
    int cancel;      /* its state before the first round                             */
} round_own;

static void round_take_lock(void)
{
    if (round_own.inside++ == 0)
        tide_lock_take(&round_lock);
    tide_assert(round_own.inside != 0);
}

static bool round_is_anothers(void)
{
    return round_busy && round_own.deep == 0;
}

static void round_let_go_of_lock(void)
{
    tide_assert(round_own.inside > 0);
    if (--round_own.inside == 0)
        tide_lock_let_go(&round_lock);
}

/* The worker process and its files go with the program; other threads may go on to the very end,
 * and step. */
static void round_at_exit(void)
{
    (void)tide_round_close();
    tide_round_lock();
    tide_stager_stop();
    tide_round_unlock();
}

double tide_round_fork_patience_ms = 100;

/* A fork in the middle of dlopen leaves the linker's list locked in the child, which could load no
 * code then. So the thread that has the round gets time to come out, before visits of the list,
 * which it may need for that, are kept out. Not for ever: it may be waiting for this thread, which
 * forks in a constructor. If it is in the linker again when the fork comes, the child can load
 * nothing after all. */
static void round_await_linker(void)
{
    round_take_lock();
    struct timespec until = tide_lock_time_in(tide_round_fork_patience_ms);
    while (round_in_linker && round_is_anothers() &&
           tide_lock_wait_until(&round_lock, &round_over, &until))
        continue;
    round_let_go_of_lock();
}

/* The child has neither keeper nor stager, also if it was forked by a hook on the keeper; it may
 * get its own. Was another thread in the middle of a round, it was in the linker or in a listener,
 * for else it would have had the lock. What it had in hand there has failed. */
static void round_in_child(void)
{
    bool anothers = round_is_anothers() || round_own.taker;
    if (round_own.taker) { /* it forks in a handler of its exit; whose round that was is not here */
        round_own.deep--;
        round_own.inside -= round_own.inside > 1; /* not that of this fork */
        round_own.taker = false;
    }
    if (anothers) {
        round_busy = round_own.deep > 0;
        round_in_linker = round_taken = false;
    }
    round_own.keeper = round_in_hooks = round_hooks_left = false;
    __atomic_store_n(&round_closed, false, __ATOMIC_RELAXED);
    tide_lock_make_condition(&round_over);
    tide_compile_request_forget();
    tide_site *const *sites;
    tide_registry_lock();
    for (size_t i = 0, count = tide_site_list(&sites); i < count; i++)
        tide_watch_forked(sites[i]);
    tide_registry_unlock();
    round_let_go_of_lock();
}

static void round_prepare(void)
{
    static const tide_fork_handlers before = {.prepare = round_await_linker};
    static const tide_fork_handlers handlers = {round_take_lock, round_let_go_of_lock,
                                                round_in_child};
    tide_lock_make_condition(&round_over);
    tide_fork_register(TIDE_FORK_OUTSIDE, &before);
    tide_fork_register(TIDE_FORK_ROUND, &handlers);
    (void)atexit(round_at_exit);
}

void tide_round_prepare(void)
{
    pthread_once(&round_prepared, round_prepare);
}

/* The thread has the lock, and nobody has the round. */
static void round_begin(int cancel)
{
    tide_assert(round_own.inside == 1 || round_own.deep > 0);
    tide_assert(!round_is_anothers());
    round_busy = true;
    if (round_own.deep++ == 0)
        round_own.cancel = cancel;
}

void tide_round_lock(void)
{
    tide_round_prepare();
    int cancel = tide_os_forbid_cancel(); /* until the round ends, outside too */
    round_take_lock();
    while (round_is_anothers())
        tide_lock_wait(&round_lock, &round_over);
    round_begin(cancel);
}

/* Waits until then at most for another thread's round to be over, not at all for NULL. False: there
 * shall be no round. A thread that is in the middle of one does another only as a listener. */
static bool round_lock_until(const struct timespec *until)
{
    tide_round_prepare();
    if (round_own.deep > 0 && !round_own.listening)
        return false;
    int cancel = tide_os_forbid_cancel();
    round_take_lock();
    bool wait = until != NULL;
    while (wait && round_is_anothers() && !round_closed)
        wait = tide_lock_wait_until(&round_lock, &round_over, until);
    bool mine = !round_is_anothers() && !round_closed;
    if (mine) {
        round_begin(cancel);
    } else {
        round_let_go_of_lock();
        tide_os_restore_cancel(cancel);
    }
    return mine;
}

/* Waits for nobody, not for the lock either. */
static bool round_lock_at_once(void)
{
    tide_round_prepare();
    tide_assert(round_own.deep == 0 && round_own.inside == 0);
    int cancel = tide_os_forbid_cancel();
    if (!tide_lock_try(&round_lock)) {
        tide_os_restore_cancel(cancel);
        return false;
    }
    round_own.inside = 1;
    bool mine = !round_busy && !round_closed;
    if (mine) {
        round_begin(cancel);
    } else {
        round_let_go_of_lock();
        tide_os_restore_cancel(cancel);
    }
    return mine;
}

void tide_round_unlock(void)
{
    tide_assert(round_own.deep > 0 && round_own.inside > 0 && round_busy);
    bool last = --round_own.deep == 0;
    if (last) {
        round_busy = false;
        pthread_cond_broadcast(&round_over);
    }
    round_let_go_of_lock();
    if (last)
        tide_os_restore_cancel(round_own.cancel);
}

bool tide_round_held(void)
{
    return round_own.deep > 0;
}

void tide_round_become_keeper(void)
{
    tide_assert(round_own.deep == 0 && !round_own.keeper);
    round_own.keeper = true;
}

bool tide_round_is_keeper(void)
{
    return round_own.keeper;
}

unsigned tide_round_let_go(void)
{
    unsigned inside = round_own.inside;
    if (inside == 0)
        return 0;
    tide_assert(round_busy && round_own.deep >= inside);
    round_in_linker = !round_own.listening;
    pthread_cond_broadcast(&round_over); /* whoever closes waits for the linker, too */
    round_own.inside = 1;
    round_let_go_of_lock();
    return inside;
}

/* Whose round was taken over never goes on, also while the taker is outside. */
void tide_round_take_again(unsigned inside)
{
    if (round_own.deep == 0)
        return; /* the child of a fork, in which what was taken over is over */
    tide_assert(inside > 0 && round_own.inside == 0 && round_own.deep >= inside);
    round_take_lock();
    while (round_taken && !round_own.taker)
        tide_lock_wait(&round_lock, &round_over);
    round_own.inside = (uint16_t)inside;
    round_in_linker = false;
    pthread_cond_broadcast(&round_over); /* for who forks */
}

/* Locked. Waits for another thread's round to be over, or to be one that is not waited for: outside
 * in the linker, whose lock this thread may have, if a constructor called exit; or for too long in
 * a listener, which may never return. If a third thread took it over there is nothing else to do.
 */
static void round_wait_to_close(void)
{
    struct timespec until = tide_lock_time_in(LISTENER_MS);
    bool patient = true;
    while (round_is_anothers() && (round_taken || (patient && !round_in_linker))) {
        if (round_taken)
            tide_lock_wait(&round_lock, &round_over);
        else
            patient = tide_lock_wait_until(&round_lock, &round_over, &until);
    }
}

/* Locked. The keeper may never come back from a hook: it may be waiting there for what this thread
 * has, a lock of the program. So it is waited for once, and not for ever. False: it is still there,
 * and ends with the process. What it has in hand it finishes, if it can, since others may wait for
 * that, and does nothing more. */
static bool round_wait_for_hooks(void)
{
    struct timespec until = tide_lock_time_in(LISTENER_MS);
    tide_assert(round_closed && round_own.inside == 1);
    while (round_in_hooks && !round_hooks_left)
        round_hooks_left =
            !tide_lock_wait_until(&round_lock, &round_over, &until) && round_in_hooks;
    return !round_in_hooks;
}

/* Is it another thread's still, that one is outside, since this one has the lock: it is taken over.
 * That thread ends with the process. */
bool tide_round_close(void)
{
    tide_round_prepare();
    tide_registry_abandon(); /* the keeper may be waiting for it */
    round_take_lock();
    __atomic_store_n(&round_closed, true, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&round_over);
    round_wait_to_close();
    if (round_is_anothers()) {
        round_taken = round_own.taker = true; /* the other one waits for ever */
        round_own.deep++;
        return false;
    }
    bool over = round_own.deep == 0 && !round_own.keeper && round_wait_for_hooks();
    round_let_go_of_lock();
    return over;
}

/* ---- memory ----------------------------------------------------------------------------- */

static void round_request_of_pool(tide_pool *pool, void *user)
{
    tide_request_memory(pool, *(const uint32_t *)user);
}

static void round_request_of_all(uint32_t requests)
{
    tide_pools_visit(round_request_of_pool, &requests);
    if ((requests & TIDE_REQUEST_TRIM_UNUSED) != 0)
        tide_shells_trim(TIDE_SHELLS_UNUSED);
}

/* What the settings want of every pool. */
static uint32_t round_memory_wanted(void)
{
    uint32_t requests = 0;
    if (tide_setting_get(TIDE_SETTING_auto_trim) != 0)
        requests |= TIDE_REQUEST_TRIM_UNUSED;
    if (tide_setting_get(TIDE_SETTING_auto_compact) != 0)
        requests |= TIDE_REQUEST_TRIM_WASTED;
    return requests;
}

/* When both are switched off it asks for nothing: that takes back what was asked for before. */
static void round_request_memory(void)
{
    round_request_of_all(round_memory_wanted());
}

/* Has the period gone by? Then it begins again. */
static bool round_period_over(uint64_t *rounds, uint64_t passed, tide_setting period)
{
    *rounds += passed;
    if (*rounds < tide_setting_whole(period))
        return false;
    *rounds = 0;
    return true;
}

void tide_round_request_memory_after(uint64_t rounds)
{
    static uint64_t since_trim, since_compact; /* of the keeper, of which there is one at a time */
    uint32_t due = 0;
    if (round_period_over(&since_trim, rounds, TIDE_SETTING_trim_period))
        due |= TIDE_REQUEST_TRIM_UNUSED;
    if (round_period_over(&since_compact, rounds, TIDE_SETTING_compact_period))
        due |= TIDE_REQUEST_TRIM_WASTED;
    due &= round_memory_wanted();
    if (due != 0)
        round_request_of_all(due);
}

/* ---- a round ---------------------------------------------------------------------------- */

static uint64_t round_number; /* guarded by the lock */

/* Before the stager is asked: what the sites say. */
static void round_watch_sites(void)
{
    tide_site *const *sites;
    tide_assert(tide_round_held());
    tide_registry_lock();
    size_t count = tide_site_list(&sites);
    for (size_t i = 0; i < count; i++)
        tide_watch(sites[i], round_number);
    tide_pays_begin();
    for (size_t i = 0; i < count; i++)
        tide_compile_request_weigh(sites[i], round_number);
    for (size_t i = 0; i < count; i++)
        tide_compile_request_gather(sites[i], round_number);
    tide_registry_unlock();
}

/* After: what it answered. */
static void round_install(void)
{
    tide_assert(tide_round_held());
    tide_compile_request_find_code();
    tide_registry_lock();
    tide_compile_request_install(round_number);
    tide_registry_unlock();
}

/* Is something to be done that needs no more uses of the sites? */
static bool round_sites_pending(void)
{
    bool pending = false;
    tide_site *const *sites;
    tide_registry_lock();
    size_t count = tide_site_list(&sites);
    for (size_t i = 0; i < count && !pending; i++)
        pending = tide_watch_pending(sites[i], round_number);
    tide_registry_unlock();
    return pending;
}

/* The stager's own figures are for whoever holds the lock. */
static void round_note_stagers(void)
{
    tide_stager_figures figures;
    tide_assert(tide_round_held());
    tide_stager_figures_get(&figures);
    __atomic_store_n(&tide_learning_figures.stagers, figures.started, __ATOMIC_RELAXED);
}

/* A listener may do a round of its own, within this one: it is told what is left first. */
static void round_tell(void)
{
    bool before = round_own.listening;
    round_own.listening = true;
    tide_events_tell(round_number);
    round_own.listening = before;
}

/* The round itself, which is this thread's. Is something pending? */
static bool round_do(int wait_ms, uint64_t rounds)
{
    tide_assert(tide_round_held() && round_own.inside > 0 && rounds > 0);
    round_number += rounds;
    tide_count(rounds);
    if (tide_setting_get(TIDE_SETTING_learn) != 0)
        round_watch_sites();
    tide_compile_request_send();
    tide_compile_request_receive(wait_ms, round_number);
    tide_stager_tend();
    round_note_stagers();
    round_install();
    bool pending = tide_compile_request_pending() || round_sites_pending();
    round_tell();
    return pending;
}

/* False: the process ends, and the keeper shall not go where it would have to be waited for.
 * `before`: it is in a hook already, which steps. */
static bool round_begin_hooks(bool *before)
{
    round_take_lock();
    tide_assert(round_own.keeper);
    bool begun = !round_closed;
    *before = round_in_hooks;
    round_in_hooks |= begun;
    round_let_go_of_lock();
    return begun;
}

/* Not by the child of a fork that somebody did meanwhile on this thread: there it was over. */
static void round_end_hooks(bool before)
{
    if (!round_own.keeper)
        return;
    round_take_lock();
    tide_assert(round_in_hooks);
    round_in_hooks = before;
    pthread_cond_broadcast(&round_over);
    round_let_go_of_lock();
}

/* Exit waits for the keeper, so it is told. What the keeper gives back inside of a round, because a
 * listener steps, is the listener's. */
static void round_give_back_old_buffers(uint64_t rounds)
{
    bool before = false, told = round_own.keeper && round_own.deep == 0;
    if (told && !round_begin_hooks(&before))
        return;
    tide_buffers_tick(rounds);
    if (told)
        round_end_hooks(before);
}

static bool round_run_until(int wait_ms, const struct timespec *until, uint64_t rounds)
{
    tide_assert(wait_ms >= 0);
    if (!round_lock_until(until))
        return !__atomic_load_n(&round_closed, __ATOMIC_RELAXED);
    bool listening = round_own.listening;
    round_own.listening = false;
    bool pending = round_do(wait_ms, rounds);
    round_own.listening = listening;
    tide_round_unlock();
    round_give_back_old_buffers(rounds);
    return pending;
}

bool tide_round_run(int wait_ms)
{
    return round_run_until(wait_ms, NULL, 1);
}

bool tide_round_run_after(uint64_t rounds)
{
    return round_run_until(0, NULL, rounds);
}

bool tide_round_begin_at_once(void)
{
    if (tide_registry_held() || tide_round_held() || !round_lock_at_once())
        return false;
    if (tide_registry_try_lock())
        return true;
    tide_round_unlock();
    return false;
}

void tide_round_end_at_once(void)
{
    tide_registry_unlock();
    tide_round_unlock();
}

uint64_t tide_round_number(void)
{
    tide_assert(tide_round_held());
    return round_number;
}

/* Twice: what the first finds full opens its next window in the second. Who has the registry came
 * by a visitor of sites, and whoever does a round does all this too. */
void tide_round_run_without_thread(void)
{
    if (!tide_round_begin_at_once())
        return;
    for (unsigned i = 0; i < 2 && tide_setting_get(TIDE_SETTING_learn) != 0; i++) {
        round_number++;
        tide_count(rounds);
        round_watch_sites();
    }
    tide_round_end_at_once();
}

tide_status tide_step(void)
{
    tide_attach();
    TIDE_FORWARD(tide_registry_admit("tide_step")); /* which comes after the round's lock */
    round_request_memory();
    tide_round_run(0);
    return TIDE_OK;
}

/* ---- settling --------------------------------------------------------------------------- */

static double round_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

tide_status tide_settle(int timeout_ms)
{
    double started = round_now_ms();
    tide_attach();
    TIDE_FORWARD(tide_registry_admit("tide_settle"));
    if (round_own.deep > 0 && !round_own.listening)
        return tide_fail(TIDE_ERROR_STATE, "tide_settle",
                         "called by code that this thread's own round loads: it cannot end before");
    for (;;) {
        struct timespec until = tide_lock_time_in(10);
        if (!round_run_until(10, &until, 1))
            return TIDE_OK;
        if (round_now_ms() - started >= timeout_ms)
            return tide_fail(TIDE_ERROR_STATE, "tide_settle",
                             "something is still pending after %d ms", timeout_ms);
    }
}

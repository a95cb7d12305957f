/* SPDX-License-Identifier: MIT */
/* The thread that does the rounds: it starts, rests between rounds, and ends with the program. */
#define _GNU_SOURCE
#include "jit/learn/background.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include <tidepool/learn.h>

#include "jit/learn/round.h"
#include "jit/stager/processors.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/fork.h"
#include "runtime/base/hooks.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/base/settings.h"
#include "runtime/pool/request.h"
#include "runtime/scope/site.h"

enum {
    PERIODS_MAX = 100, /* from one round to the next, when nothing is going on */
    END_MS = 2000      /* that the keeper has to end once the process does     */
};

/* Guarded by the lock. Uses of sites read `running` and `wanted` without it, so these are
 * atomic. */
static struct {
    pthread_t thread;
    bool running, stopping;
    bool exiting;  /* the process ends */
    bool wanted;   /* some window is full: the next round is due after one period */
    bool refused;  /* stopped by the program: only it starts it again */
    bool ordered;  /* started by the program: it does rounds whatever the setting says */
    bool ordinary; /* who made the thread was: it sets its own processors */
} keeper;

static void keeper_set(bool *what, bool value)
{
    __atomic_store_n(what, value, __ATOMIC_SEQ_CST);
}

static bool keeper_needed; /* atomic: a window has asked for it, or the program */
static bool keeper_lost;   /* atomic: the parent of this process needed one when it forked */

static tide_lock keeper_lock = TIDE_LOCK(TIDE_FORK_KEEPER);
static pthread_cond_t keeper_wake; /* on the monotonic clock */
static pthread_once_t keeper_once = PTHREAD_ONCE_INIT;

/* ---- the thread ------------------------------------------------------------------------- */

/* Locked. Sleeps until then, or until the keeper is wanted (if it is not yet) or is to stop. */
static void keeper_rest(struct timespec since, double ms)
{
    struct timespec until = tide_lock_time_after(since, ms);
    bool wanted = keeper.wanted;
    while (!keeper.stopping && keeper.wanted == wanted &&
           tide_lock_wait_until(&keeper_lock, &keeper_wake, &until))
        continue;
}

static uint64_t keeper_periods_since(struct timespec since, double period)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double ms =
        (double)(now.tv_sec - since.tv_sec) * 1e3 + (double)(now.tv_nsec - since.tv_nsec) * 1e-6;
    return ms > period ? (uint64_t)(ms / period) : 1;
}

/* Locked. Rests for so many periods; for one only, if the keeper is wanted meanwhile. Returns how
 * many have passed: rounds are how learning counts time. */
static uint64_t keeper_rest_periods(uint64_t periods)
{
    double period = tide_setting_get(TIDE_SETTING_keeper_period);
    struct timespec since;
    clock_gettime(CLOCK_MONOTONIC, &since);
    tide_assert(periods > 0 && periods <= PERIODS_MAX);
    keeper_rest(since, period * (double)periods);
    if (keeper.wanted)
        keeper_rest(since, period);
    return keeper_periods_since(since, period);
}

void tide_background_lower_thread(void)
{
    if (getpriority(PRIO_PROCESS, 0) < 0) /* of this thread */
        (void)setpriority(PRIO_PROCESS, 0, 0);
}

/* All processors that the process was given: the thread that made it may be bound to one. */
static void keeper_introduce_itself(void)
{
    tide_background_lower_thread();
    if (keeper.ordinary)
        (void)sched_setaffinity(0, sizeof tide_processors,
                                (const cpu_set_t *)(void *)tide_processors);
    tide_round_become_keeper();
    (void)prctl(PR_SET_NAME, "tide-background");
}

static void *keeper_run(void *unused)
{
    (void)unused;
    keeper_introduce_itself(); /* without the lock, which who made it still has */
    tide_lock_take(&keeper_lock);
    tide_assert(keeper.running); /* set before the lock was let go */
    for (uint64_t periods = 1, passed = 1; !keeper.stopping;) {
        keeper_set(&keeper.wanted, false);
        __atomic_thread_fence(
            __ATOMIC_SEQ_CST); /* before windows are looked at: keeper_is_coming */
        bool works = keeper.ordered || tide_setting_get(TIDE_SETTING_background) != 0;
        tide_lock_let_go(&keeper_lock);
        if (works)
            tide_round_request_memory_after(passed);
        bool busy = works && tide_round_run_after(passed);
        tide_lock_take(&keeper_lock);
        if (!tide_round_is_keeper()) /* a hook has forked, and returned in the child */
            break;
        periods = busy || keeper.wanted ? 1 : periods * 2 < PERIODS_MAX ? periods * 2 : PERIODS_MAX;
        passed = keeper_rest_periods(periods);
    }
    tide_lock_let_go(&keeper_lock);
    return NULL;
}

int tide_background_create_described(pthread_t *thread, void *(*run)(void *))
{
    static const struct sched_param none = {.sched_priority = 0};
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error != 0)
        return error;
    bool described = pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED) == 0 &&
                     pthread_attr_setschedpolicy(&attributes, SCHED_OTHER) == 0 &&
                     pthread_attr_setschedparam(&attributes, &none) == 0 &&
                     pthread_attr_setaffinity_np(&attributes, sizeof tide_processors,
                                                 (const cpu_set_t *)(void *)tide_processors) == 0;
    error = pthread_create(thread, described ? &attributes : NULL, run, NULL);
    if (error == EPERM || error == EINVAL) /* a sandbox that forbids to say so */
        error = pthread_create(thread, NULL, run, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

/* Locked. The thread blocks all signals: they are for the program's own threads. A use of a site
 * waits for this, so most is left to the thread itself, if it will come to that: among threads of
 * the usual class each gets its turn. */
static int keeper_create_thread(void)
{
    tide_assert(!keeper.running);
    sigset_t all, before;
    sigfillset(&all);
    keeper.ordinary = sched_getscheduler(0) == SCHED_OTHER;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = keeper.ordinary ? pthread_create(&keeper.thread, NULL, keeper_run, NULL)
                                : tide_background_create_described(&keeper.thread, keeper_run);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* ---- starting and stopping -------------------------------------------------------------- */

/* Locked. Another thread is stopping it: that is waited for all the same, but not for ever once the
 * process ends. */
static void keeper_wait_for_stop(void)
{
    while (keeper.stopping && !keeper.exiting)
        tide_lock_wait(&keeper_lock, &keeper_wake);
    struct timespec until = tide_lock_time_in(END_MS);
    while (keeper.stopping && tide_lock_wait_until(&keeper_lock, &keeper_wake, &until))
        continue;
}

/* Destructors of what the program has there for each thread run as the keeper ends, and may want a
 * lock of who exits. False: it has not ended in time. */
static bool keeper_join(bool exiting)
{
    struct timespec now;
    tide_assert(!tide_lock_held_any());
    if (!exiting)
        return pthread_join(keeper.thread, NULL) == 0;
    clock_gettime(CLOCK_REALTIME, &now); /* the one clock of this call */
    struct timespec until = tide_lock_time_after(now, END_MS);
    return pthread_timedjoin_np(keeper.thread, NULL, &until) == 0;
}

static void keeper_note_end(void)
{
    tide_lock_take(&keeper_lock);
    tide_assert(keeper.running && keeper.stopping); /* nobody else ends or starts it meanwhile */
    keeper_set(&keeper.running, false);
    keeper.stopping = false;
    pthread_cond_broadcast(&keeper_wake);
    tide_lock_let_go(&keeper_lock);
}

/* One that has not ended in time as the process ends is being stopped for ever. */
static void keeper_stop_thread(void)
{
    int cancel = tide_os_forbid_cancel(); /* or `stopping` would stay, and all wait for ever */
    tide_lock_take(&keeper_lock);
    bool ours = keeper.running && !keeper.stopping, exiting = keeper.exiting;
    if (ours)
        keeper.stopping = true;
    else
        keeper_wait_for_stop();
    pthread_cond_broadcast(&keeper_wake);
    tide_lock_let_go(&keeper_lock);
    if (ours && keeper_join(exiting))
        keeper_note_end();
    tide_os_restore_cancel(cancel);
}

/* If a listener calls exit, its thread has the round: the keeper, if that is another thread, does
 * no more. Nobody waits for a keeper that does not come back from code which is not ours. */
static void keeper_at_exit(void)
{
    tide_lock_take(&keeper_lock);
    keeper.refused = keeper.exiting = true;
    pthread_cond_broadcast(&keeper_wake);
    tide_lock_let_go(&keeper_lock);
    if (tide_round_close())
        keeper_stop_thread();
}

static void keeper_before_fork(void)
{
    tide_lock_take(&keeper_lock);
}

static void keeper_after_fork(void)
{
    tide_lock_let_go(&keeper_lock);
}

static void keeper_ask_pool(tide_pool *pool, void *unused)
{
    (void)unused;
    tide_request_pass(pool);
}

/* In the child of a fork: the parent's thread is not here. Most children execute another program at
 * once, so the child gets a thread of its own only when a thread comes by a pool: without rounds no
 * window would open, and no other thing would ask for a keeper. If the parent never needed its
 * keeper, the child's first window asks. */
static void keeper_forget(void)
{
    bool lost =
        keeper.running && !keeper.stopping && __atomic_load_n(&keeper_needed, __ATOMIC_RELAXED);
    keeper_set(&keeper.running, false);
    keeper_set(&keeper.wanted, false);
    keeper.stopping = keeper.exiting = false;
    tide_lock_make_condition(&keeper_wake);
    keeper_after_fork();
    if (!lost)
        return;
    __atomic_store_n(&keeper_lost, true, __ATOMIC_RELAXED);
    tide_pools_visit(keeper_ask_pool, NULL); /* this thread has the registry: it forks */
}

static void keeper_prepare(void)
{
    static const tide_fork_handlers handlers = {keeper_before_fork, keeper_after_fork,
                                                keeper_forget};
    tide_fork_register(TIDE_FORK_KEEPER, &handlers);
    tide_lock_make_condition(&keeper_wake);
    atexit(keeper_at_exit);
}

void tide_background_prepare(void)
{
    pthread_once(&keeper_once, keeper_prepare);
}

/* Zero or an error number. */
static int keeper_start_thread(bool by_program)
{
    int error = 0;
    tide_attach();
    tide_background_prepare();
    tide_lock_take(&keeper_lock);
    if (by_program) {
        keeper.refused = false;
        keeper.ordered = true;
        __atomic_store_n(&keeper_needed, true, __ATOMIC_RELAXED);
    }
    if (!keeper.running && !keeper.refused) {
        error = keeper_create_thread();
        keeper_set(&keeper.running, error == 0);
    }
    tide_lock_let_go(&keeper_lock);
    return error;
}

tide_status tide_background_start(void)
{
    int error = keeper_start_thread(true);
    return error == 0 ? TIDE_OK
                      : tide_fail(TIDE_ERROR_MEMORY, "tide_background_start", "no thread: %s",
                                  strerror(error));
}

tide_status tide_background_stop(void)
{
    tide_background_prepare();
    if (tide_round_held())
        return tide_fail(TIDE_ERROR_STATE, "tide_background_stop",
                         "called by a listener to events");
    if (tide_round_is_keeper())
        return tide_fail(TIDE_ERROR_STATE, "tide_background_stop",
                         "called by a hook on the keeper's thread, which would wait for itself");
    TIDE_FORWARD(tide_registry_admit("tide_background_stop"));
    tide_lock_take(&keeper_lock);
    keeper.refused = true;
    keeper.ordered = false;
    tide_lock_let_go(&keeper_lock);
    keeper_stop_thread();
    return TIDE_OK;
}

bool tide_background_running(void)
{
    tide_background_prepare();
    tide_lock_take(&keeper_lock);
    bool running = keeper.running;
    tide_lock_let_go(&keeper_lock);
    return running;
}

static void keeper_wake_up(void)
{
    tide_lock_take(&keeper_lock);
    keeper_set(&keeper.wanted, true);
    pthread_cond_broadcast(&keeper_wake);
    tide_lock_let_go(&keeper_lock);
}

/* The window is full before this is asked, and the keeper takes its wish back before it looks at
 * windows; so if it is still wanted here, it will see this one. */
static bool keeper_is_coming(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return __atomic_load_n(&keeper.wanted, __ATOMIC_SEQ_CST) &&
           __atomic_load_n(&keeper.running, __ATOMIC_SEQ_CST);
}

void tide_background_wanted(void)
{
    __atomic_store_n(&keeper_needed, true, __ATOMIC_RELAXED);
    if (tide_setting_get(TIDE_SETTING_background) == 0 || keeper_is_coming())
        return;
    if (__atomic_load_n(&keeper.running, __ATOMIC_SEQ_CST))
        keeper_wake_up();
    else if (keeper_start_thread(false) != 0)
        tide_round_run_without_thread();
}

/* To make a thread takes longer than any scope: where no use may be late, it is done where a pool
 * is made and not inside the use that fills the first window. Not unless the program says so: many
 * a process is better off with one thread. */
static void keeper_start_early(void)
{
    enum { FROM_THE_FIRST_POOL = 2 };
    static bool started; /* atomic */
    if (TIDE_LIKELY(__atomic_load_n(&started, __ATOMIC_RELAXED)) ||
        tide_setting_get(TIDE_SETTING_background) != FROM_THE_FIRST_POOL ||
        tide_setting_get(TIDE_SETTING_learn) == 0 || !tide_site_any() ||
        tide_lock_held_any() || /* by a visitor that makes a pool */
        __atomic_exchange_n(&started, true, __ATOMIC_RELAXED))
        return;
    (void)keeper_start_thread(false); /* without one the first window asks again */
}

void tide_background_passed(void)
{
    keeper_start_early();
    if (TIDE_UNLIKELY(__atomic_load_n(&keeper_lost, __ATOMIC_RELAXED)) &&
        __atomic_exchange_n(&keeper_lost, false, __ATOMIC_RELAXED))
        tide_background_wanted();
}

/* SPDX-License-Identifier: MIT */
/* The thread that does rounds: it starts, rests between rounds, and ends with the program. */
#define _GNU_SOURCE
#include "jit/learn/background.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include <tidepool/learn.h>

#include "jit/events/event.h"
#include "jit/learn/round.h"
#include "jit/stager/processors.h"
#include "jit/stager/stager.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/fork.h"
#include "runtime/base/hooks.h"
#include "runtime/base/lock.h"
#include "runtime/base/registry.h"
#include "runtime/base/settings.h"

enum {
    PERIODS_MAX = 100, /* from one round to the next, when nothing is going on            */
    END_MS = 2000      /* that exit waits for the thread, and for the round of another one */
};

/* Guarded by the lock. */
static struct {
    pthread_t thread;
    bool running, stopping;
    bool wanted;  /* some window is full: the next round is due after one period    */
    bool refused; /* stopped by the program: only it starts it again                */
    bool ordered; /* started by the program: it does rounds whatever the setting says */
} background;

static tide_lock background_lock = TIDE_LOCK(TIDE_FORK_BACKGROUND);
static pthread_cond_t background_wake; /* on the monotonic clock */

/* ---- the thread ------------------------------------------------------------------------- */

/* Locked. Sleeps until then, or until it is wanted (if it is not yet) or is to stop. */
static void background_rest(struct timespec since, double ms)
{
    struct timespec until = tide_lock_time_after(since, ms);
    bool wanted = background.wanted;
    while (!background.stopping && background.wanted == wanted &&
           tide_lock_wait_until(&background_lock, &background_wake, &until))
        continue;
}

/* Locked. Rests for so many periods; for one only, if it is wanted meanwhile. Returns how many have
 * passed: rounds are how learning counts time. */
static uint64_t background_rest_periods(uint64_t periods)
{
    double period = tide_constant_get(TIDE_CONSTANT_background_period);
    struct timespec since, now;
    tide_assert(periods > 0 && periods <= PERIODS_MAX);
    clock_gettime(CLOCK_MONOTONIC, &since);
    background_rest(since, period * (double)periods);
    if (background.wanted)
        background_rest(since, period);
    clock_gettime(CLOCK_MONOTONIC, &now);
    double ms =
        (double)(now.tv_sec - since.tv_sec) * 1e3 + (double)(now.tv_nsec - since.tv_nsec) * 1e-6;
    return ms > period ? (uint64_t)(ms / period) : 1;
}

void tide_background_lower_thread(void)
{
    if (getpriority(PRIO_PROCESS, 0) < 0) /* of this thread */
        (void)setpriority(PRIO_PROCESS, 0, 0);
}

static void *background_run(void *unused)
{
    (void)unused;
    tide_background_lower_thread();
    (void)prctl(PR_SET_NAME, "tide-background");
    tide_lock_take(&background_lock);
    for (uint64_t periods = 1, passed = 1; !background.stopping;) {
        background.wanted = false; /* before windows are looked at */
        bool works = background.ordered || tide_setting_get(TIDE_SETTING_background) != 0;
        tide_lock_let_go(&background_lock);
        bool busy = works && tide_round_run_in_background(passed);
        tide_lock_take(&background_lock);
        periods = busy || background.wanted   ? 1
                  : periods * 2 < PERIODS_MAX ? periods * 2
                                              : PERIODS_MAX;
        passed = background_rest_periods(periods);
    }
    tide_lock_let_go(&background_lock);
    return NULL;
}

int tide_background_create_thread(pthread_t *thread, void *(*run)(void *))
{
    static const struct sched_param none = {.sched_priority = 0};
    pthread_attr_t attributes;
    sigset_t all, before;
    int error = pthread_attr_init(&attributes);
    if (error != 0)
        return error;
    bool described = pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED) == 0 &&
                     pthread_attr_setschedpolicy(&attributes, SCHED_OTHER) == 0 &&
                     pthread_attr_setschedparam(&attributes, &none) == 0 &&
                     pthread_attr_setaffinity_np(&attributes, sizeof tide_processors,
                                                 (const cpu_set_t *)(void *)tide_processors) == 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(thread, described ? &attributes : NULL, run, NULL);
    if (error == EPERM || error == EINVAL) /* a sandbox that forbids to say so */
        error = pthread_create(thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

/* ---- starting and stopping -------------------------------------------------------------- */

/* Zero or an error number; ECANCELED: learning is over in this process. */
static int background_start(bool by_program)
{
    int error = 0;
    tide_attach();
    if (tide_round_is_over())
        return ECANCELED;
    tide_lock_take(&background_lock);
    if (by_program) {
        background.refused = false;
        background.ordered = true;
    }
    background.wanted = true;
    if (!background.running && !background.refused) {
        error = tide_background_create_thread(&background.thread, background_run);
        background.running = error == 0;
    }
    tide_lock_let_go(&background_lock);
    return error;
}

tide_status tide_background_start(void)
{
    int error = background_start(true);
    if (error == ECANCELED)
        return tide_fail(TIDE_ERROR_STATE, "tide_background_start",
                         "in the child of a fork, and while the process ends, nothing is learned");
    return error == 0 ? TIDE_OK
                      : tide_fail(TIDE_ERROR_MEMORY, "tide_background_start", "no thread: %s",
                                  strerror(error));
}

/* If another thread is stopping it, that is waited for, too. False: it has not ended within so many
 * milliseconds; 0: it is waited for without end. */
static bool background_stop(double ms)
{
    struct timespec now;
    tide_lock_take(&background_lock);
    background.refused = true;
    background.ordered = false;
    while (background.stopping && !tide_round_is_over())
        tide_lock_wait(&background_lock, &background_wake);
    bool ours = background.running && !background.stopping;
    background.stopping |= ours;
    pthread_cond_broadcast(&background_wake);
    tide_lock_let_go(&background_lock);
    if (!ours)
        return true;
    tide_assert(!tide_lock_held_any());
    clock_gettime(CLOCK_REALTIME, &now); /* the one clock of that call */
    struct timespec until = tide_lock_time_after(now, ms + 1);
    bool ended = ms == 0 ? pthread_join(background.thread, NULL) == 0
                         : pthread_timedjoin_np(background.thread, NULL, &until) == 0;
    tide_lock_take(&background_lock);
    if (ended)
        background.running = background.stopping = false;
    pthread_cond_broadcast(&background_wake);
    tide_lock_let_go(&background_lock);
    return ended;
}

tide_status tide_background_stop(void)
{
    tide_attach();
    TIDE_FORWARD(tide_registry_admit("tide_background_stop"));
    (void)background_stop(0);
    (void)tide_event_deliver();
    return TIDE_OK;
}

bool tide_background_running(void)
{
    tide_lock_take(&background_lock);
    bool running = background.running;
    tide_lock_let_go(&background_lock);
    return running;
}

void tide_background_wanted(void)
{
    tide_lock_take(&background_lock);
    background.wanted = true;
    bool start = !background.running && !background.refused;
    pthread_cond_broadcast(&background_wake);
    tide_lock_let_go(&background_lock);
    if (start && tide_setting_get(TIDE_SETTING_background) != 0)
        (void)background_start(false); /* without a thread the program may step */
}

/* ---- fork and exit ---------------------------------------------------------------------- */

static void background_before_fork(void)
{
    tide_lock_take(&background_lock);
}

static void background_after_fork(void)
{
    tide_lock_let_go(&background_lock);
}

static void background_after_fork_in_child(void)
{
    background.running = background.stopping = background.wanted = false;
    tide_lock_make_condition(&background_wake);
    background_after_fork();
}

/* The thread may be in the dynamic linker, which who exits may have entered before: so it is not
 * waited for without end. The compiler process and its files go with the program. */
static void background_at_exit(void)
{
    tide_round_end();
    if (background_stop(END_MS) && tide_round_lock_within(END_MS)) {
        tide_stager_stop();
        tide_round_unlock();
    }
}

static void background_prepare(void)
{
    static const tide_fork_handlers handlers = {background_before_fork, background_after_fork,
                                                background_after_fork_in_child};
    tide_fork_register(TIDE_FORK_BACKGROUND, &handlers);
    tide_lock_make_condition(&background_wake);
    (void)atexit(background_at_exit);
}

void tide_background_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, background_prepare);
}

/* SPDX-License-Identifier: MIT */
/* The thread that does the rounds: it starts, rests between rounds, and ends with the program. */
#define _GNU_SOURCE
#include "jit/learn/keeper.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tidepool/learn.h>

#include "jit/learn/round.h"
#include "jit/stager/stager.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/fork.h"
#include "runtime/base/hooks.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/base/settings.h"

enum {
    QUIET = 200, /* rounds in which nothing was going on, after which … */
    SLOWER = 10  /* … they come so many times more rarely              */
};

/* Guarded by the mutex. */
static struct {
    pthread_t thread;
    bool running, stopping;
    bool refused; /* stopped by the program: only it starts it again */
} keeper;

static pthread_mutex_t keeper_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t keeper_wake; /* on the monotonic clock */
static pthread_once_t keeper_once = PTHREAD_ONCE_INIT;

/* ---- the thread ------------------------------------------------------------------------- */

/* Locked. Sleeps until the next round is due or the keeper is to stop. */
static void keeper_rest(double ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ms / 1e3);
    until.tv_nsec += (long)((ms - 1e3 * (double)(long)(ms / 1e3)) * 1e6);
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    tide_assert(ms > 0 && until.tv_nsec >= 0 && until.tv_nsec < 1000000000);
    while (!keeper.stopping && pthread_cond_timedwait(&keeper_wake, &keeper_mutex, &until) == 0)
        continue;
}

static void *keeper_run(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&keeper_mutex);
    tide_assert(keeper.running); /* set before the lock was let go */
    for (unsigned quiet = 0; !keeper.stopping;) {
        pthread_mutex_unlock(&keeper_mutex);
        bool busy = tide_round_run(0);
        quiet = busy ? 0 : quiet + 1;
        pthread_mutex_lock(&keeper_mutex);
        keeper_rest(tide_setting_get(TIDE_SETTING_keeper_period) * (quiet > QUIET ? SLOWER : 1));
    }
    pthread_mutex_unlock(&keeper_mutex);
    return NULL;
}

/* Locked. The thread blocks all signals: they are for the program's own threads. */
static int keeper_create_thread(void)
{
    tide_assert(!keeper.running);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&keeper.thread, NULL, keeper_run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        pthread_setname_np(keeper.thread, "tide-keeper");
    return error;
}

/* ---- starting and stopping -------------------------------------------------------------- */

static void keeper_stop_thread(void)
{
    int cancel = tide_os_forbid_cancel(); /* or `stopping` would stay, and all wait for ever */
    pthread_mutex_lock(&keeper_mutex);
    bool ours = keeper.running && !keeper.stopping;
    while (keeper.stopping) /* somebody else's: it is waited for all the same */
        pthread_cond_wait(&keeper_wake, &keeper_mutex);
    keeper.stopping = ours;
    pthread_cond_broadcast(&keeper_wake);
    pthread_mutex_unlock(&keeper_mutex);
    if (!ours) {
        tide_os_restore_cancel(cancel);
        return;
    }
    pthread_join(keeper.thread, NULL);
    pthread_mutex_lock(&keeper_mutex);
    tide_assert(keeper.running && keeper.stopping); /* nobody else ends or starts it meanwhile */
    keeper.running = keeper.stopping = false;
    pthread_cond_broadcast(&keeper_wake);
    pthread_mutex_unlock(&keeper_mutex);
    tide_os_restore_cancel(cancel);
}

/* The worker process and its files go with the program. If a listener calls exit, its thread holds
 * the round: the keeper, if that is another thread, waits for it and does no more. */
static void keeper_at_exit(void)
{
    pthread_mutex_lock(&keeper_mutex);
    keeper.refused = true;
    pthread_mutex_unlock(&keeper_mutex);
    while (tide_registry_held()) /* by a visitor of sites that called exit, which never returns */
        tide_registry_unlock();  /* there; and the keeper may be waiting for this lock */
    if (!tide_round_held())
        keeper_stop_thread();
    tide_round_lock();
    tide_stager_stop(true);
    tide_round_unlock();
}

static void keeper_prepare_clock(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&keeper_wake, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* In the child of a fork: the parent's thread is not here, nor is what it held. */
static void keeper_forget(void)
{
    keeper_mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    keeper.running = keeper.stopping = false;
    keeper_prepare_clock();
}

static void keeper_prepare(void)
{
    static const tide_fork_handlers handlers = {.child = keeper_forget};
    tide_fork_register(TIDE_FORK_KEEPER, &handlers);
    keeper_prepare_clock();
    atexit(keeper_at_exit);
}

/* Zero or an error number. */
static int keeper_start_thread(bool by_program)
{
    int error = 0;
    tide_attach();
    pthread_once(&keeper_once, keeper_prepare);
    pthread_mutex_lock(&keeper_mutex);
    if (by_program)
        keeper.refused = false;
    if (!keeper.running && !keeper.refused) {
        error = keeper_create_thread();
        keeper.running = error == 0;
    }
    pthread_mutex_unlock(&keeper_mutex);
    return error;
}

tide_status tide_keeper_start(void)
{
    int error = keeper_start_thread(true);
    return error == 0 ? TIDE_OK
                      : tide_fail(TIDE_ERROR_MEMORY, "tide_keeper_start", "no thread: %s",
                                  strerror(error));
}

tide_status tide_keeper_stop(void)
{
    pthread_once(&keeper_once, keeper_prepare);
    if (tide_round_held())
        return tide_fail(TIDE_ERROR_STATE, "tide_keeper_stop", "called by a listener to events");
    if (tide_registry_held())
        return tide_fail(TIDE_ERROR_STATE, "tide_keeper_stop", "called by a visitor of sites");
    pthread_mutex_lock(&keeper_mutex);
    keeper.refused = true;
    pthread_mutex_unlock(&keeper_mutex);
    keeper_stop_thread();
    return TIDE_OK;
}

bool tide_keeper_running(void)
{
    pthread_mutex_lock(&keeper_mutex);
    bool running = keeper.running;
    pthread_mutex_unlock(&keeper_mutex);
    return running;
}

void tide_keeper_wanted(void)
{
    if (tide_setting_get(TIDE_SETTING_keeper) != 0)
        (void)keeper_start_thread(false);
}

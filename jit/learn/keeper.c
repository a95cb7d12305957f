/* SPDX-License-Identifier: MIT */
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
#include "runtime/base/error.h"
#include "runtime/base/fork.h"
#include "runtime/base/hooks.h"
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

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake; /* on the monotonic clock */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- the thread ------------------------------------------------------------------------- */

/* Locked. Until the next round is due or the keeper is to stop. */
static void rest(double ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ms / 1e3);
    until.tv_nsec += (long)((ms - 1e3 * (double)(long)(ms / 1e3)) * 1e6);
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    while (!keeper.stopping && pthread_cond_timedwait(&wake, &mutex, &until) == 0)
        continue;
}

static void *keep(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&mutex);
    for (unsigned quiet = 0; !keeper.stopping;) {
        pthread_mutex_unlock(&mutex);
        bool busy = tide_round_run(0);
        quiet = busy ? 0 : quiet + 1;
        pthread_mutex_lock(&mutex);
        rest(tide_setting_get(TIDE_SETTING_keeper_period) * (quiet > QUIET ? SLOWER : 1));
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

/* Signals are for the program's own threads. */
static int create(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&keeper.thread, NULL, keep, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        pthread_setname_np(keeper.thread, "tide-keeper");
    return error;
}

/* ---- starting and stopping -------------------------------------------------------------- */

static void stop(void)
{
    pthread_mutex_lock(&mutex);
    bool ours = keeper.running && !keeper.stopping;
    if (ours) {
        keeper.stopping = true;
        pthread_cond_broadcast(&wake);
    }
    pthread_mutex_unlock(&mutex);
    if (!ours)
        return;
    pthread_join(keeper.thread, NULL);
    pthread_mutex_lock(&mutex);
    keeper.running = keeper.stopping = false;
    pthread_mutex_unlock(&mutex);
}

/* The helper process and its files go with the program. When a listener calls exit, its thread
 * holds the round: the keeper, should it be another, waits for that and does nothing any more. */
static void at_exit(void)
{
    pthread_mutex_lock(&mutex);
    keeper.refused = true;
    pthread_mutex_unlock(&mutex);
    if (!tide_round_held())
        stop();
    tide_round_lock();
    tide_stager_stop(true);
    tide_round_unlock();
}

static void prepare_clock(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&wake, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* The parent's thread does not exist here. What it held it held for the parent. */
static void keeper_forget(void)
{
    mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    keeper.running = keeper.stopping = false;
    prepare_clock();
}

static void prepare(void)
{
    static const tide_fork_handlers handlers = {.child = keeper_forget};
    tide_fork_register(TIDE_FORK_KEEPER, &handlers);
    prepare_clock();
    atexit(at_exit);
}

/* Zero or an error number. */
static int start(bool by_program)
{
    int error = 0;
    tide_attach();
    pthread_once(&once, prepare);
    pthread_mutex_lock(&mutex);
    if (by_program)
        keeper.refused = false;
    if (!keeper.running && !keeper.refused) {
        error = create();
        keeper.running = error == 0;
    }
    pthread_mutex_unlock(&mutex);
    return error;
}

tide_status tide_keeper_start(void)
{
    int error = start(true);
    return error == 0 ? TIDE_OK
                      : tide_fail(TIDE_ERROR_MEMORY, "tide_keeper_start", "no thread: %s",
                                  strerror(error));
}

tide_status tide_keeper_stop(void)
{
    pthread_once(&once, prepare);
    if (tide_round_held())
        return tide_fail(TIDE_ERROR_STATE, "tide_keeper_stop", "called by a listener to events");
    pthread_mutex_lock(&mutex);
    keeper.refused = true;
    pthread_mutex_unlock(&mutex);
    stop();
    return TIDE_OK;
}

bool tide_keeper_running(void)
{
    pthread_mutex_lock(&mutex);
    bool running = keeper.running;
    pthread_mutex_unlock(&mutex);
    return running;
}

void tide_keeper_wanted(void)
{
    if (tide_setting_get(TIDE_SETTING_keeper) != 0)
        (void)start(false);
}

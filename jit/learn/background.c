/* SPDX-License-Identifier: MIT */
/* The thread that does rounds: it starts, rests between rounds, and ends with the program. */
#define _GNU_SOURCE
#include "jit/learn/background.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <tidepool/learn.h>

#include "jit/events/event.h"
#include "jit/learn/round.h"
#include "jit/stager/processors.h"
#include "jit/stager/stager.h"
#include "runtime/base/assert.h"
#include "runtime/base/error.h"
#include "runtime/base/fork.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/base/ring.h"
#include "runtime/base/settings.h"
#include "runtime/buffers/buffers.h"

enum {
    PERIODS_MAX = 100, /* from one round to the next, when nothing is going on            */
    END_MS = 2000      /* that exit waits for the thread, and for the round of another one */
};

/* Guarded by the lock. */
static struct {
    pid_t task; /* the thread's number with the system; 0: it has not begun, or is gone */
    bool running, stopping;
    bool left;    /* ended for a fork                                                */
    bool wanted;  /* some window is full: the next round is due after one period     */
    bool needed;  /* something was found that it is for: it does not end now         */
    bool refused; /* stopped by the program: only it starts it again                 */
    bool ordered; /* started by the program: it does rounds whatever the setting says, and stays */
} background;

static tide_lock background_lock = TIDE_LOCK(TIDE_FORK_BACKGROUND);
static pthread_cond_t background_wake; /* on the monotonic clock */

/* ---- the thread ------------------------------------------------------------------------- */

static double background_now_ms(void)
{
    return (double)tide_os_now_ns() * 1e-6;
}

/* Locked. Sleeps for so long, or until it is wanted (if it is not yet) or is to stop. */
static void background_sleep(double ms)
{
    struct timespec until = tide_lock_time_in(ms);
    bool wanted = background.wanted;
    while (!background.stopping && background.wanted == wanted &&
           tide_lock_wait_until(&background_lock, &background_wake, &until))
        continue;
}

/* Locked. Rests for so many periods; for one more only, if it is wanted meanwhile. (What was wanted
 * during the round comes after the rest of one period.) */
static void background_rest(uint64_t periods)
{
    double period = tide_constant_get(TIDE_CONSTANT_background_period);
    tide_assert(periods > 0 && periods <= PERIODS_MAX);
    if (!background.wanted)
        background_sleep(period * (double)periods);
    if (background.wanted)
        background_sleep(period);
}

/* How many periods have passed since the last call, in this thread or the one before: rounds are
 * how learning counts time. */
static uint64_t background_passed(void)
{
    static double last; /* of the one thread there is */
    double period = tide_constant_get(TIDE_CONSTANT_background_period), now = background_now_ms();
    uint64_t passed = last == 0 ? 1 : (uint64_t)((now - last) / period);
    last = now;
    return passed != 0 ? passed : 1;
}

/* What no attribute says: a niceness below 0, which Linux gives a thread from who made it, becomes 0. */
static void background_lower_thread(void)
{
    if (getpriority(PRIO_PROCESS, 0) < 0) /* of this thread */
        (void)setpriority(PRIO_PROCESS, 0, 0);
}

/* Is there nothing any more that the thread is for? Once it is gone the next use of a site must be
 * noticed by itself, so each is observed. */
static bool background_may_end(tide_round_rest rest, double idle_ms)
{
    return rest == TIDE_ROUND_IDLE && idle_ms >= tide_constant_get(TIDE_CONSTANT_background_idle) &&
           tide_round_leave();
}

/* Locked, but for what takes time. One round, and a rest. False: the thread ends. */
static bool background_turn(uint64_t *periods, double *busy_ms)
{
    background.wanted = background.needed = false; /* before windows are looked at */
    bool ordered = background.ordered;
    tide_lock_let_go(&background_lock);
    bool works = ordered || tide_setting_get(TIDE_SETTING_background) != 0;
    tide_round_rest rest = TIDE_ROUND_IDLE;
    if (works)
        rest = tide_round_run_in_background(background_passed());
    if (ordered && rest == TIDE_ROUND_IDLE)
        rest = TIDE_ROUND_WAITS;
    double now = background_now_ms();
    if (rest == TIDE_ROUND_BUSY)
        *busy_ms = now;
    bool over = rest != TIDE_ROUND_BUSY && background_may_end(rest, now - *busy_ms);
    tide_lock_take(&background_lock);
    if (background.wanted || background.needed)
        *busy_ms = now;
    else if (over)
        return false;
    *periods = rest == TIDE_ROUND_BUSY || background.wanted ? 1
               : *periods * 2 < PERIODS_MAX                 ? *periods * 2
                                                            : PERIODS_MAX;
    background_rest(*periods);
    return true;
}

static void *background_run(void *unused)
{
    (void)unused;
    background_lower_thread();
    (void)prctl(PR_SET_NAME, "tide-background");
    uint64_t periods = 1;
    double busy_ms = background_now_ms();
    tide_lock_take(&background_lock);
    background.task = gettid();
    while (!background.stopping && background_turn(&periods, &busy_ms))
        continue;
    background.running = background.stopping = false;
    pthread_cond_broadcast(&background_wake);
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

/* Locked. Who finds it wanted already wakes nobody: the rest of one period then goes on. */
static void background_want(void)
{
    if (!background.wanted)
        pthread_cond_broadcast(&background_wake);
    background.wanted = true;
}

/* Zero or an error number; ECANCELED: there is to be no thread in this process. */
static int background_start(bool by_program)
{
    int error = 0;
    tide_attach();
    tide_lock_take(&background_lock);
    if (tide_round_is_over() || tide_locked_down()) { /* tide_lock_down comes by this lock */
        tide_lock_let_go(&background_lock);
        return ECANCELED;
    }
    if (by_program) {
        background.refused = false;
        background.ordered = true;
    }
    background_want();
    if (!background.running && !background.refused) {
        pthread_t thread; /* which nobody joins: it says when it has ended */
        error = tide_background_create_thread(&thread, background_run);
        background.running = error == 0 && pthread_detach(thread) == 0;
    }
    tide_lock_let_go(&background_lock);
    return error;
}

tide_status tide_background_start(void)
{
    int error = background_start(true);
    if (error == ECANCELED)
        return tide_fail(TIDE_ERROR_STATE, "tide_background_start", "%s no thread is started",
                         tide_round_is_over()
                             ? "in the child of a fork, and while the process ends,"
                             : "after tide_lock_down");
    return error == 0 ? TIDE_OK
                      : tide_fail(TIDE_ERROR_MEMORY, "tide_background_start", "no thread: %s",
                                  strerror(error));
}

/* The thread is there for a moment after it has said that it ends: fork in Python counts it, and
 * unshare refuses. Should its number be another thread's by now, the look ends all the same. Where main
 * has left by pthread_exit the thread may be the last, and so the one that exits. */
static void background_wait_for_kernel(pid_t task)
{
    enum { LOOKS = 20000 }; /* of 50 microseconds and more each: the system may be busy */
    if (task == gettid())
        return;
    static const struct timespec nap = {.tv_nsec = 50000};
    for (int i = 0; i < LOOKS && syscall(SYS_tgkill, getpid(), task, 0) == 0; i++)
        (void)nanosleep(&nap, NULL);
}

/* Ends the thread. False: it has not ended within so many milliseconds; 0: it is waited for without
 * end. */
static bool background_end(double ms)
{
    bool waits = true;
    tide_assert(!tide_lock_held_any());
    tide_lock_take(&background_lock);
    struct timespec until = tide_lock_time_in(ms + 1);
    while (background.running && waits) {
        if (!background.stopping) { /* also one that was started while this waited */
            background.stopping = true;
            pthread_cond_broadcast(&background_wake);
        }
        if (ms != 0)
            waits = tide_lock_wait_until(&background_lock, &background_wake, &until);
        else
            tide_lock_wait(&background_lock, &background_wake);
    }
    bool ended = !background.running;
    pid_t task = background.task;
    if (ended)
        background.task = 0;
    tide_lock_let_go(&background_lock);
    if (ended && task != 0)
        background_wait_for_kernel(task);
    return ended;
}

/* From now on only the program starts it again. */
static void background_refuse(void)
{
    tide_lock_take(&background_lock);
    background.refused = true;
    background.ordered = false;
    tide_lock_let_go(&background_lock);
}

void tide_background_end(void)
{
    (void)background_end(0);
}

tide_status tide_background_stop(void)
{
    tide_attach();
    TIDE_FORWARD(tide_registry_admit("tide_background_stop"));
    background_refuse();
    (void)background_end(0);
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

/* Without a thread the program may step. */
static void background_ask(bool now)
{
    tide_lock_take(&background_lock);
    background.needed = true;
    if (now)
        background_want();
    bool start = !background.running && !background.refused;
    tide_lock_let_go(&background_lock);
    if (start && tide_setting_get(TIDE_SETTING_background) != 0)
        (void)background_start(false);
}

void tide_background_wanted(void)
{
    if (tide_setting_get(TIDE_SETTING_learn) != 0)
        background_ask(true);
}

void tide_background_need(void)
{
    background_ask(false);
}

/* ---- fork and exit ---------------------------------------------------------------------- */

/* Who forks does so without the thread, so nothing of it is torn in the child, and Python does not
 * warn of it. It comes back when it is wanted. Inside a visit of the program's the thread may wait
 * for what this thread has: then it is left alone. */
static void background_end_for_fork(void)
{
    if (tide_lock_held_any() || !tide_background_running())
        return;
    background.left = background_end(0);
}

/* Beside this thread another one may fork, and has this done as well: no harm. */
static void background_come_back(void)
{
    bool left = background.left;
    background.left = false;
    if (left && (background.ordered || tide_buffers_age(0, true)))
        (void)background_start(background.ordered);
    else if (left)
        (void)tide_round_leave();
}

static void background_in_child(void)
{
    background.running = background.stopping = background.wanted = false;
    background.task = 0;
    tide_lock_make_condition(&background_wake);
}

/* The thread may be in the dynamic linker, which who exits may have entered before: so it is not
 * waited for without end. The compiler process and its files go with the program. */
static void background_at_exit(void)
{
    tide_round_end();
    background_refuse();
    if (background_end(END_MS) && tide_round_lock_within(END_MS)) {
        tide_stager_stop();
        tide_round_unlock();
    }
}

static void background_prepare(void)
{
    static const tide_fork_handlers thread = {.prepare = background_end_for_fork,
                                              .parent = background_come_back,
                                              .child = tide_stager_forget_in_child};
    static const tide_fork_handlers lock = {.lock = &background_lock, .child = background_in_child};
    tide_fork_register(TIDE_FORK_THREAD, &thread);
    tide_fork_register(TIDE_FORK_BACKGROUND, &lock);
    tide_lock_make_condition(&background_wake);
    (void)atexit(background_at_exit);
}

void tide_background_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, background_prepare);
}

/* SPDX-License-Identifier: MIT */
/* The life of workers: they are started when first needed, recycled, lost, and ended. */
#define _GNU_SOURCE
#include "jit/stager/workers.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "jit/stager/directory.h"
#include "jit/stager/locate.h"
#include "jit/stager/test_hooks.h"
#include "runtime/base/assert.h"
#include "runtime/base/fork.h"
#include "runtime/base/settings.h"

enum {
    LEAVE_KINDLY = 100, /* milliseconds that dismissing waits for an idle worker … */
    LEAVE = 1000,       /* … and for one that was killed */
    STEP = 20,          /* milliseconds between looks at whether a worker is still there … */
    STEP_OF_END = 5     /* … and at whether one has ended that has to */
};

tide_worker tide_workers[TIDE_WORKERS_MAX];
tide_stager_figures tide_worker_figures;
int64_t (*tide_stager_clock)(void);

_Static_assert(TIDE_WORKER_FREE == 0, "places that are all zero are free");

static pid_t workers_owner; /* who started the workers */

int64_t tide_workers_real_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

int64_t tide_workers_now(void)
{
    return tide_stager_clock != NULL ? tide_stager_clock() : tide_workers_real_time();
}

tide_worker *tide_workers_find(tide_worker_state state)
{
    for (size_t i = 0; i < TIDE_WORKERS_MAX; i++)
        if (tide_workers[i].state == state)
            return &tide_workers[i];
    return NULL;
}

bool tide_workers_works(const tide_worker *worker)
{
    return worker->state == TIDE_WORKER_READY || worker->state == TIDE_WORKER_DRAINING;
}

bool tide_workers_tell_to_go(tide_worker *worker)
{
    static const char bye[] = "bye\n";
    size_t length = strlen(bye);
    tide_assert(worker->state != TIDE_WORKER_FREE && worker->bye_sent <= length);
    worker->bye_sent +=
        tide_process_send(&worker->process, bye + worker->bye_sent, length - worker->bye_sent);
    tide_assert(worker->bye_sent <= length);
    return worker->bye_sent == length;
}

/* ---- ending ------------------------------------------------------------------------------- */

void tide_workers_kill(tide_worker *worker)
{
    tide_assert(worker->state != TIDE_WORKER_FREE);
    tide_process_kill(&worker->process);
    worker->killed = true;
}

static void workers_release_place(tide_worker *worker)
{
    tide_assert(worker->state == TIDE_WORKER_TERMINATING && worker->process.pid == 0);
    worker->state = TIDE_WORKER_FREE;
    worker->killed = false;
}

void tide_workers_collect(tide_worker *worker)
{
    tide_assert(worker->state == TIDE_WORKER_TERMINATING);
    if (tide_process_collect(&worker->process))
        workers_release_place(worker);
}

/* The connection stays open, unwatched, until the process is gone, unless it was told "bye".
 * Without that, a worker that sees the end of its input takes us for dead and removes our files. */
static void workers_terminate(tide_worker *worker, tide_ending how)
{
    tide_assert(tide_workers_works(worker) && tide_queue_head(worker) == NULL);
    worker->state = TIDE_WORKER_TERMINATING;
    worker->since = tide_workers_now();
    if (how == TIDE_LET_GO)
        tide_process_hang_up(&worker->process);
    else if (how == TIDE_TERMINATE)
        tide_process_terminate(&worker->process);
    else
        tide_workers_kill(worker);
    tide_workers_collect(worker);
}

void tide_workers_lose(tide_worker *worker, tide_queued *guilty, tide_stager_result result,
                       const char *text, tide_ending how)
{
    tide_assert(tide_workers_works(worker) && result != TIDE_STAGER_OK);
    tide_queue_take_back(worker, guilty, result, text);
    workers_terminate(worker, how);
}

void tide_workers_lose_late(tide_worker *worker)
{
    char text[160];
    tide_worker_figures.late++;
    snprintf(text, sizeof text, "the stager was killed: no answer within %g ms",
             tide_setting_get(TIDE_SETTING_stager_deadline));
    tide_workers_lose(worker, tide_queue_head(worker), TIDE_STAGER_LATE, text, TIDE_TERMINATE);
}

void tide_workers_lose_ended(tide_worker *worker)
{
    tide_assert(tide_workers_works(worker));
    bool expected = worker->state == TIDE_WORKER_DRAINING && tide_queue_head(worker) == NULL;
    tide_worker_figures.died += !expected;
    tide_workers_lose(worker, NULL, TIDE_STAGER_DIED, "the stager died with the order",
                      expected ? TIDE_LET_GO : TIDE_KILL);
}

void tide_workers_let_idle_go(tide_worker *worker)
{
    tide_worker_figures.idle++;
    tide_queue_return(worker, "stagers were idle again and again, and did not compile it");
    workers_terminate(worker, TIDE_LET_GO);
}

void tide_workers_lose_all(const char *why, tide_ending how)
{
    for (size_t i = 0; i < TIDE_WORKERS_MAX; i++)
        if (tide_workers_works(&tide_workers[i]))
            tide_workers_lose(&tide_workers[i], NULL, TIDE_STAGER_REFUSED, why, how);
}

/* ---- starting ----------------------------------------------------------------------------- */

/* Whoever forks holds the lock under which all this is used (jit/learn/round.h), so it is whole.
 * The workers are the parent's: the child leaves them without a word. */
static void workers_forget_in_child(void)
{
    for (size_t i = 0; i < TIDE_WORKERS_MAX; i++)
        if (tide_workers[i].state != TIDE_WORKER_FREE)
            tide_process_forget(&tide_workers[i].process);
    memset(tide_workers, 0, sizeof tide_workers);
    tide_queue_clear();
}

void tide_workers_prepare(void)
{
    static const tide_fork_handlers handlers = {.child = workers_forget_in_child};
    tide_fork_register(TIDE_FORK_WORKERS, &handlers);
}

/* Is it the program that a start failed for? Else another start may go well. */
static tide_stager_result workers_result_of_start(int number)
{
    switch (number) {
    case EAGAIN:
    case EBADF: /* the program closed one of ours just then */
    case EIO:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case ESTALE:                            /* our directory went just then */
    case ETXTBSY: return TIDE_STAGER_SHORT; /* it is being installed anew */
    default: return TIDE_STAGER_MISSING;
    }
}

/* Only one worker takes new requests, so none may be ready before. NULL: one line in `error`. */
static tide_worker *workers_start_in_free_place(const char *program, const char *directory,
                                                tide_stager_result *result, char *error,
                                                size_t room)
{
    tide_assert(tide_workers_find(TIDE_WORKER_READY) == NULL);
    tide_worker *worker = tide_workers_find(TIDE_WORKER_FREE);
    if (worker == NULL) {
        snprintf(error, room, "the stager cannot be started: %d earlier ones do not end",
                 TIDE_WORKERS_MAX);
        *result = TIDE_STAGER_SHORT;
        return NULL;
    }
    tide_workers_prepare();
    workers_owner = getpid(); /* also of a child that starts its own */
    tide_privileges privileges = tide_privileges_now();
    int failed = tide_process_start(&worker->process, program, directory, error, room);
    if (failed) {
        *result = workers_result_of_start(failed);
        return NULL;
    }
    *worker = (tide_worker){.state = TIDE_WORKER_READY,
                            .since = tide_workers_now(),
                            .privileges = privileges,
                            .process = worker->process};
    tide_worker_figures.started++;
    tide_assert(tide_queue_head(worker) == NULL); /* of an earlier worker in this place */
    return worker;
}

/* The directory comes last: without a stager the program has no use for it, and nobody would remove
 * it after a crash. */
static tide_worker *workers_start(tide_stager_result *result, char *error, size_t room)
{
    char program[4096];
    *result = TIDE_STAGER_MISSING;
    if (!tide_locate_stager(program, sizeof program, error, room))
        return NULL;
    *result = TIDE_STAGER_REFUSED;
    const char *directory = tide_directory_get(error, room);
    if (directory == NULL)
        return NULL;
    return workers_start_in_free_place(program, directory, result, error, room);
}

/* One that has done its part goes, unless the one before it has not gone yet. */
static void workers_recycle(void)
{
    tide_worker *worker = tide_workers_find(TIDE_WORKER_READY);
    if (worker == NULL || tide_workers_find(TIDE_WORKER_DRAINING) != NULL ||
        (double)worker->sites < tide_setting_get(TIDE_SETTING_stager_recycle))
        return;
    worker->state = TIDE_WORKER_DRAINING;
    tide_worker_figures.recycled++;
    tide_assert(tide_workers_find(TIDE_WORKER_READY) == NULL);
}

tide_worker *tide_workers_serving(tide_stager_result *result, char *error, size_t room)
{
    tide_assert(error != NULL && room > 0);
    *result = TIDE_STAGER_REFUSED;
    if (tide_privileges_raised()) {
        snprintf(error, room, "no stager: the program runs with raised privileges");
        return NULL;
    }
    workers_recycle();
    tide_worker *worker = tide_workers_find(TIDE_WORKER_READY);
    return worker != NULL ? worker : workers_start(result, error, room);
}

/* ---- sleeping ----------------------------------------------------------------------------- */

/* That a process ended is seen at the end of its connection, or, where something that it started
 * holds that, by looking once in a while. */
void tide_workers_wait(int64_t most_ms)
{
    struct pollfd set[TIDE_WORKERS_MAX];
    nfds_t count = 0;
    tide_assert(most_ms >= 0);
    for (size_t i = 0; i < TIDE_WORKERS_MAX; i++) {
        const tide_worker *worker = &tide_workers[i];
        int socket = tide_workers_works(worker) ? tide_descriptor_get(&worker->process.socket) : -1;
        if (socket >= 0)
            set[count++] = (struct pollfd){
                .fd = socket, .events = (short)(POLLIN | (worker->full ? POLLOUT : 0))};
    }
    (void)poll(set, count, most_ms < STEP ? (int)most_ms : STEP);
}

/* ---- leaving ------------------------------------------------------------------------------ */

static bool workers_all_ended(void)
{
    for (size_t i = 0; i < TIDE_WORKERS_MAX; i++)
        if (tide_workers[i].state != TIDE_WORKER_FREE)
            return false;
    return true;
}

/* Waits for terminating workers to end, in short steps. */
static void workers_wait_for_ends(int most_ms)
{
    tide_assert(most_ms > 0);
    int64_t end = tide_workers_real_time() + most_ms;
    for (;;) {
        for (size_t i = 0; i < TIDE_WORKERS_MAX; i++)
            if (tide_workers[i].state == TIDE_WORKER_TERMINATING)
                tide_workers_collect(&tide_workers[i]);
        int64_t left = end - tide_workers_real_time();
        if (workers_all_ended() || left <= 0)
            return;
        (void)poll(NULL, 0, left < STEP_OF_END ? (int)left : STEP_OF_END);
    }
}

/* An idle worker is told to go. One at work is killed: it would still write into our directory. One
 * that may do more than we is told nothing, and removes the directory, which may be beyond us. */
static void workers_dismiss_one(tide_worker *worker)
{
    bool idle = tide_queue_head(worker) == NULL && worker->state == TIDE_WORKER_READY;
    if (worker->state == TIDE_WORKER_TERMINATING)
        return;
    worker->state = TIDE_WORKER_TERMINATING;
    worker->since = tide_workers_now();
    if (!tide_privileges_kept(&worker->privileges) || (idle && tide_workers_tell_to_go(worker)))
        tide_process_hang_up(&worker->process);
    else
        tide_workers_kill(worker);
}

void tide_workers_dismiss(void)
{
    for (size_t i = 0; i < TIDE_WORKERS_MAX; i++)
        if (tide_workers[i].state != TIDE_WORKER_FREE)
            workers_dismiss_one(&tide_workers[i]);
    workers_wait_for_ends(LEAVE_KINDLY);
    for (size_t i = 0; i < TIDE_WORKERS_MAX; i++)
        if (tide_workers[i].state != TIDE_WORKER_FREE)
            tide_workers_kill(&tide_workers[i]);
    workers_wait_for_ends(LEAVE);
    for (size_t i = 0; i < TIDE_WORKERS_MAX; i++)
        if (tide_workers[i].state != TIDE_WORKER_FREE) {
            tide_process_forget(&tide_workers[i].process);
            workers_release_place(&tide_workers[i]);
        }
    tide_assert(workers_all_ended());
}

bool tide_workers_is_ours(void)
{
    return workers_owner == getpid();
}

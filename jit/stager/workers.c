/* SPDX-License-Identifier: MIT */
/* The life of helpers: started when first needed, recycled, lost, ended. */
#define _GNU_SOURCE
#include "jit/stager/workers.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "jit/stager/directory.h"
#include "jit/stager/locate.h"
#include "jit/stager/privilege.h"
#include "jit/stager/poll_set.h"
#include "runtime/base/assert.h"
#include "runtime/base/fork.h"
#include "runtime/base/settings.h"

enum {
    LEAVE_KINDLY = 100, /* milliseconds that dismissing waits for an idle helper … */
    LEAVE = 1000        /* … and for one that was killed */
};

tide_worker tide_workers[TIDE_WORKERS_MAX];
tide_stager_figures tide_worker_figures;
int64_t (*tide_stager_clock)(void);
static pid_t owner; /* who started the helpers */

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

tide_worker *tide_workers_find(tide_worker_state role)
{
    for (size_t i = 0; i < TIDE_WORKERS_MAX; i++)
        if (tide_workers[i].role == role)
            return &tide_workers[i];
    return NULL;
}

bool tide_workers_works(const tide_worker *member)
{
    return member->role == TIDE_WORKER_READY || member->role == TIDE_WORKER_DRAINING;
}

bool tide_workers_tell_to_go(tide_worker *member)
{
    static const char bye[] = "bye\n";
    size_t length = strlen(bye);
    member->bye_sent +=
        tide_process_send(&member->process, bye + member->bye_sent, length - member->bye_sent);
    tide_assert(member->bye_sent <= length);
    return member->bye_sent == length;
}

/* ---- ending ------------------------------------------------------------------------------- */

void tide_workers_kill(tide_worker *member)
{
    tide_assert(member->role != TIDE_WORKER_FREE);
    tide_process_kill(&member->process);
    member->killed = true;
}

static void release(tide_worker *member)
{
    member->role = TIDE_WORKER_FREE;
    member->killed = false;
}

void tide_workers_collect(tide_worker *member)
{
    tide_assert(member->role == TIDE_WORKER_TERMINATING);
    if (!tide_process_ended(&member->process))
        return;
    tide_poll_set_drop(member->process.process);
    tide_process_collect(&member->process);
    release(member);
}

/* The connection stays open, unwatched, until the process is gone, unless that has been told "bye":
 * whoever sees the end of its input without it takes us for dead and removes our directory. */
static void doom(tide_worker *member, tide_ending how)
{
    tide_assert(tide_queue_head(member) == NULL);
    member->role = TIDE_WORKER_TERMINATING;
    member->since = tide_workers_now();
    tide_poll_set_drop(member->process.socket);
    if (how == TIDE_LET_GO)
        tide_process_hang_up(&member->process);
    else if (how == TIDE_TERMINATE)
        tide_process_terminate(&member->process);
    else
        tide_workers_kill(member);
    tide_workers_collect(member);
}

void tide_workers_lose(tide_worker *member, tide_queued *guilty, tide_stager_result result,
                    const char *text, tide_ending how)
{
    tide_assert(tide_workers_works(member));
    tide_queue_take_back(member, guilty, result, text);
    doom(member, how);
}

void tide_workers_lose_late(tide_worker *member)
{
    char text[160];
    tide_worker_figures.late++;
    snprintf(text, sizeof text, "the stager was killed: no answer within %g ms",
             tide_setting_get(TIDE_SETTING_stager_deadline));
    tide_workers_lose(member, tide_queue_head(member), TIDE_STAGER_LATE, text, TIDE_TERMINATE);
}

void tide_workers_lose_ended(tide_worker *member)
{
    bool expected = member->role == TIDE_WORKER_DRAINING && tide_queue_head(member) == NULL;
    tide_worker_figures.died += !expected;
    tide_workers_lose(member, NULL, TIDE_STAGER_DIED, "the stager died with the order",
                   expected ? TIDE_LET_GO : TIDE_KILL);
}

void tide_workers_lose_all(const char *why)
{
    for (size_t i = 0; i < TIDE_WORKERS_MAX; i++)
        if (tide_workers_works(&tide_workers[i]))
            tide_workers_lose(&tide_workers[i], NULL, TIDE_STAGER_REFUSED, why, TIDE_KILL);
}

/* ---- starting ----------------------------------------------------------------------------- */

/* Whoever forks holds the lock under which all this is used (jit/learn/round.h), so it is whole. The
 * helpers are the parent's: they are left without a word. */
static void forget_in_child(void)
{
    for (size_t i = 0; i < TIDE_WORKERS_MAX; i++)
        if (tide_workers[i].role != TIDE_WORKER_FREE)
            tide_process_forget(&tide_workers[i].process);
    memset(tide_workers, 0, sizeof tide_workers);
    tide_queue_clear();
    tide_poll_set_close();
}

static void start_first(void)
{
    static const tide_fork_handlers handlers = {.child = forget_in_child};
    tide_fork_register(TIDE_FORK_WORKERS, &handlers);
    owner = getpid();
}

/* NULL: one line in `error`. */
static tide_worker *start(const char *program, const char *directory, char *error, size_t room)
{
    tide_worker *member = tide_workers_find(TIDE_WORKER_FREE);
    if (member == NULL) {
        snprintf(error, room, "the stager cannot be started: %d earlier ones do not end",
                 TIDE_WORKERS_MAX);
        return NULL;
    }
    start_first();
    if (!tide_process_start(&member->process, program, directory, error, room))
        return NULL;
    *member =
        (tide_worker){.role = TIDE_WORKER_READY, .since = tide_workers_now(), .process = member->process};
    tide_worker_figures.started++;
    if (tide_poll_set_add(&member->process, error, room))
        return member;
    doom(member, TIDE_KILL);
    return NULL;
}

/* The directory comes last: a program that has no stager has no use for it, and nobody to remove it
 * should it crash. */
static tide_worker *start_anew(tide_stager_result *result, char *error, size_t room)
{
    char program[4096];
    *result = TIDE_STAGER_MISSING;
    if (!tide_locate_stager(program, sizeof program, error, room))
        return NULL;
    *result = TIDE_STAGER_REFUSED;
    const char *directory = tide_directory_get(error, room);
    if (directory == NULL)
        return NULL;
    *result = TIDE_STAGER_MISSING;
    return start(program, directory, error, room);
}

/* One that has done its part goes, unless the one before it has not gone yet. */
static void recycle(void)
{
    tide_worker *member = tide_workers_find(TIDE_WORKER_READY);
    if (member == NULL || tide_workers_find(TIDE_WORKER_DRAINING) != NULL ||
        (double)member->sites < tide_setting_get(TIDE_SETTING_stager_recycle))
        return;
    member->role = TIDE_WORKER_DRAINING;
    tide_worker_figures.recycled++;
}

tide_worker *tide_workers_serving(tide_stager_result *result, char *error, size_t room)
{
    *result = TIDE_STAGER_REFUSED;
    if (tide_privileges_raised()) {
        snprintf(error, room, "no stager: the program runs with raised privileges");
        return NULL;
    }
    recycle();
    tide_worker *member = tide_workers_find(TIDE_WORKER_READY);
    return member != NULL ? member : start_anew(result, error, room);
}

/* ---- leaving ------------------------------------------------------------------------------ */

static bool all_ended(void)
{
    for (size_t i = 0; i < TIDE_WORKERS_MAX; i++)
        if (tide_workers[i].role != TIDE_WORKER_FREE)
            return false;
    return true;
}

/* Waits for doomed helpers to end; sleeps by process descriptors, or in short steps. */
static void wait_for_ends(int most_ms)
{
    int64_t end = tide_workers_real_time() + most_ms;
    for (;;) {
        for (size_t i = 0; i < TIDE_WORKERS_MAX; i++)
            if (tide_workers[i].role == TIDE_WORKER_TERMINATING)
                tide_workers_collect(&tide_workers[i]);
        int64_t left = end - tide_workers_real_time();
        if (all_ended() || left <= 0)
            return;
        if (!tide_poll_set_wait(left < 5 ? left : 5))
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* nothing is watched */
    }
}

/* One that is idle is told to go; one at work would go on writing into the directory. */
static void dismiss(tide_worker *member)
{
    bool idle = tide_queue_head(member) == NULL && member->role == TIDE_WORKER_READY;
    if (member->role == TIDE_WORKER_TERMINATING)
        return;
    member->role = TIDE_WORKER_TERMINATING;
    member->since = tide_workers_now();
    tide_poll_set_drop(member->process.socket);
    if (idle && tide_workers_tell_to_go(member))
        tide_process_hang_up(&member->process);
    else
        tide_workers_kill(member);
}

void tide_workers_dismiss(void)
{
    for (size_t i = 0; i < TIDE_WORKERS_MAX; i++)
        if (tide_workers[i].role != TIDE_WORKER_FREE)
            dismiss(&tide_workers[i]);
    wait_for_ends(LEAVE_KINDLY);
    for (size_t i = 0; i < TIDE_WORKERS_MAX; i++)
        if (tide_workers[i].role != TIDE_WORKER_FREE)
            tide_workers_kill(&tide_workers[i]);
    wait_for_ends(LEAVE);
    for (size_t i = 0; i < TIDE_WORKERS_MAX; i++)
        if (tide_workers[i].role != TIDE_WORKER_FREE) {
            tide_process_forget(&tide_workers[i].process);
            release(&tide_workers[i]);
        }
}

bool tide_workers_is_ours(void)
{
    return owner == getpid();
}

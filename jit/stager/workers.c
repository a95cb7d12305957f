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
#include "jit/stager/watched.h"
#include "runtime/base/assert.h"
#include "runtime/base/fork.h"
#include "runtime/base/settings.h"

enum {
    LEAVE_KINDLY = 100, /* milliseconds that dismissing waits for an idle helper … */
    LEAVE = 1000        /* … and for one that was killed */
};

tide_member tide_crew[TIDE_CREW_MOST];
tide_stager_figures tide_crew_figures;
int64_t (*tide_stager_clock)(void);
static pid_t owner; /* who started the helpers */

int64_t tide_crew_real_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

int64_t tide_crew_now(void)
{
    return tide_stager_clock != NULL ? tide_stager_clock() : tide_crew_real_time();
}

tide_member *tide_crew_find(tide_role role)
{
    for (size_t i = 0; i < TIDE_CREW_MOST; i++)
        if (tide_crew[i].role == role)
            return &tide_crew[i];
    return NULL;
}

bool tide_crew_works(const tide_member *member)
{
    return member->role == TIDE_SERVES || member->role == TIDE_FINISHES;
}

bool tide_crew_tell_to_go(tide_member *member)
{
    static const char bye[] = "bye\n";
    size_t length = strlen(bye);
    member->bye_sent +=
        tide_helper_send(&member->process, bye + member->bye_sent, length - member->bye_sent);
    tide_assert(member->bye_sent <= length);
    return member->bye_sent == length;
}

/* ---- ending ------------------------------------------------------------------------------- */

void tide_crew_kill(tide_member *member)
{
    tide_assert(member->role != TIDE_ROLE_FREE);
    tide_helper_kill(&member->process);
    member->killed = true;
}

static void release(tide_member *member)
{
    member->role = TIDE_ROLE_FREE;
    member->killed = false;
}

void tide_crew_collect(tide_member *member)
{
    tide_assert(member->role == TIDE_DOOMED);
    if (!tide_helper_ended(&member->process))
        return;
    tide_watched_drop(member->process.process);
    tide_helper_collect(&member->process);
    release(member);
}

/* The connection stays open, unwatched, until the process is gone, unless that has been told "bye":
 * whoever sees the end of its input without it takes us for dead and removes our directory. */
static void doom(tide_member *member, tide_ending how)
{
    tide_assert(tide_queue_head(member) == NULL);
    member->role = TIDE_DOOMED;
    member->since = tide_crew_now();
    tide_watched_drop(member->process.socket);
    if (how == TIDE_LET_GO)
        tide_helper_hang_up(&member->process);
    else if (how == TIDE_TERMINATE)
        tide_helper_terminate(&member->process);
    else
        tide_crew_kill(member);
    tide_crew_collect(member);
}

void tide_crew_lose(tide_member *member, tide_queued *guilty, tide_stager_result result,
                    const char *text, tide_ending how)
{
    tide_assert(tide_crew_works(member));
    tide_queue_take_back(member, guilty, result, text);
    doom(member, how);
}

void tide_crew_lose_late(tide_member *member)
{
    char text[160];
    tide_crew_figures.late++;
    snprintf(text, sizeof text, "the stager was killed: no answer within %g ms",
             tide_setting_get(TIDE_SETTING_stager_deadline));
    tide_crew_lose(member, tide_queue_head(member), TIDE_STAGER_LATE, text, TIDE_TERMINATE);
}

void tide_crew_lose_ended(tide_member *member)
{
    bool expected = member->role == TIDE_FINISHES && tide_queue_head(member) == NULL;
    tide_crew_figures.died += !expected;
    tide_crew_lose(member, NULL, TIDE_STAGER_DIED, "the stager died with the order",
                   expected ? TIDE_LET_GO : TIDE_KILL);
}

void tide_crew_lose_all(const char *why)
{
    for (size_t i = 0; i < TIDE_CREW_MOST; i++)
        if (tide_crew_works(&tide_crew[i]))
            tide_crew_lose(&tide_crew[i], NULL, TIDE_STAGER_REFUSED, why, TIDE_KILL);
}

/* ---- starting ----------------------------------------------------------------------------- */

/* Whoever forks holds the lock under which all this is used (jit/learn/round.h), so it is whole. The
 * helpers are the parent's: they are left without a word. */
static void forget_in_child(void)
{
    for (size_t i = 0; i < TIDE_CREW_MOST; i++)
        if (tide_crew[i].role != TIDE_ROLE_FREE)
            tide_helper_forget(&tide_crew[i].process);
    memset(tide_crew, 0, sizeof tide_crew);
    tide_queue_clear();
    tide_watched_close();
}

static void start_first(void)
{
    static const tide_fork_handlers handlers = {.child = forget_in_child};
    tide_fork_register(TIDE_FORK_WORKERS, &handlers);
    owner = getpid();
}

/* NULL: one line in `error`. */
static tide_member *start(const char *program, const char *directory, char *error, size_t room)
{
    tide_member *member = tide_crew_find(TIDE_ROLE_FREE);
    if (member == NULL) {
        snprintf(error, room, "the stager cannot be started: %d earlier ones do not end",
                 TIDE_CREW_MOST);
        return NULL;
    }
    start_first();
    if (!tide_helper_start(&member->process, program, directory, error, room))
        return NULL;
    *member =
        (tide_member){.role = TIDE_SERVES, .since = tide_crew_now(), .process = member->process};
    tide_crew_figures.started++;
    if (tide_watched_add(&member->process, error, room))
        return member;
    doom(member, TIDE_KILL);
    return NULL;
}

/* The directory comes last: a program that has no stager has no use for it, and nobody to remove it
 * should it crash. */
static tide_member *start_anew(tide_stager_result *result, char *error, size_t room)
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
    tide_member *member = tide_crew_find(TIDE_SERVES);
    if (member == NULL || tide_crew_find(TIDE_FINISHES) != NULL ||
        (double)member->sites < tide_setting_get(TIDE_SETTING_stager_recycle))
        return;
    member->role = TIDE_FINISHES;
    tide_crew_figures.recycled++;
}

tide_member *tide_crew_serving(tide_stager_result *result, char *error, size_t room)
{
    *result = TIDE_STAGER_REFUSED;
    if (tide_privileges_raised()) {
        snprintf(error, room, "no stager: the program runs with raised privileges");
        return NULL;
    }
    recycle();
    tide_member *member = tide_crew_find(TIDE_SERVES);
    return member != NULL ? member : start_anew(result, error, room);
}

/* ---- leaving ------------------------------------------------------------------------------ */

static bool all_ended(void)
{
    for (size_t i = 0; i < TIDE_CREW_MOST; i++)
        if (tide_crew[i].role != TIDE_ROLE_FREE)
            return false;
    return true;
}

/* Waits for doomed helpers to end; sleeps by process descriptors, or in short steps. */
static void wait_for_ends(int most_ms)
{
    int64_t end = tide_crew_real_time() + most_ms;
    for (;;) {
        for (size_t i = 0; i < TIDE_CREW_MOST; i++)
            if (tide_crew[i].role == TIDE_DOOMED)
                tide_crew_collect(&tide_crew[i]);
        int64_t left = end - tide_crew_real_time();
        if (all_ended() || left <= 0)
            return;
        if (!tide_watched_wait(left < 5 ? left : 5))
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* nothing is watched */
    }
}

/* One that is idle is told to go; one at work would go on writing into the directory. */
static void dismiss(tide_member *member)
{
    bool idle = tide_queue_head(member) == NULL && member->role == TIDE_SERVES;
    if (member->role == TIDE_DOOMED)
        return;
    member->role = TIDE_DOOMED;
    member->since = tide_crew_now();
    tide_watched_drop(member->process.socket);
    if (idle && tide_crew_tell_to_go(member))
        tide_helper_hang_up(&member->process);
    else
        tide_crew_kill(member);
}

void tide_crew_dismiss(void)
{
    for (size_t i = 0; i < TIDE_CREW_MOST; i++)
        if (tide_crew[i].role != TIDE_ROLE_FREE)
            dismiss(&tide_crew[i]);
    wait_for_ends(LEAVE_KINDLY);
    for (size_t i = 0; i < TIDE_CREW_MOST; i++)
        if (tide_crew[i].role != TIDE_ROLE_FREE)
            tide_crew_kill(&tide_crew[i]);
    wait_for_ends(LEAVE);
    for (size_t i = 0; i < TIDE_CREW_MOST; i++)
        if (tide_crew[i].role != TIDE_ROLE_FREE) {
            tide_helper_forget(&tide_crew[i].process);
            release(&tide_crew[i]);
        }
}

bool tide_crew_is_ours(void)
{
    return owner == getpid();
}

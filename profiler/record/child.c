/* SPDX-License-Identifier: MIT */
/* A program that is run as if it were this one. */
#define _GNU_SOURCE
#include "profiler/record/child.h"

#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/assert.h"

static const int child_signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
enum { CHILD_SIGNALS = sizeof child_signals / sizeof *child_signals };

int tide_child_start(tide_child *child, char **args)
{
    posix_spawnattr_t how;
    sigset_t before, usual;
    sigemptyset(&child->wanted);
    sigaddset(&child->wanted, SIGCHLD);
    for (int i = 0; i < CHILD_SIGNALS; i++)
        sigaddset(&child->wanted, child_signals[i]);
    sigprocmask(SIG_BLOCK, &child->wanted, &before);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE); /* which this process ignores */
    posix_spawnattr_init(&how);
    posix_spawnattr_setsigmask(&how, &before);
    posix_spawnattr_setsigdefault(&how, &usual);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawnp(&child->pid, args[0], NULL, &how, args, environ);
    posix_spawnattr_destroy(&how);
    if (error != 0)
        sigprocmask(SIG_SETMASK, &before, NULL);
    return error;
}

static long long child_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool child_has_ended(tide_child *child)
{
    return waitpid(child->pid, &child->status, WNOHANG) == child->pid;
}

bool tide_child_wait(tide_child *child, int ms)
{
    long long until = child_now_ms() + ms, left = ms;
    siginfo_t what;
    tide_assert(child->pid > 0 && ms >= 0);
    for (; !child_has_ended(child); left = until - child_now_ms()) {
        if (left <= 0)
            return false;
        struct timespec wait = {.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
        int signal = sigtimedwait(&child->wanted, &what, &wait);
        if (signal > 0 && signal != SIGCHLD && what.si_code != SI_KERNEL)
            kill(child->pid, signal);
    }
    return true;
}

int tide_child_code(const tide_child *child)
{
    tide_assert(WIFEXITED(child->status) || WIFSIGNALED(child->status));
    return WIFEXITED(child->status) ? WEXITSTATUS(child->status) : 128 + WTERMSIG(child->status);
}

/* SPDX-License-Identifier: MIT */
/* A program that is run as if it were this one. */
#define _GNU_SOURCE
#include "profiler/record/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/assert.h"

static const int child_signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
enum { CHILD_SIGNALS = sizeof child_signals / sizeof *child_signals };

/* In the child: becomes the program, or writes why not. */
__attribute__((noreturn)) static void child_become(const tide_child *child, char **args,
                                                   const char *const *variables, int tell)
{
    bool set = true;
    (void)signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &child->before, NULL);
    for (; set && *variables != NULL; variables += 2)
        set = setenv(variables[0], variables[1], 1) == 0;
    if (set)
        execvp(args[0], args);
    int error = errno;
    ssize_t written = write(tell, &error, sizeof error);
    _exit(written == (ssize_t)sizeof error ? 127 : 126);
}

int tide_child_start(tide_child *child, char **args, const char *const *variables)
{
    int tell[2], error = 0;
    sigemptyset(&child->wanted);
    sigaddset(&child->wanted, SIGCHLD);
    for (int i = 0; i < CHILD_SIGNALS; i++)
        sigaddset(&child->wanted, child_signals[i]);
    if (pipe2(tell, O_CLOEXEC) != 0)
        return errno;
    sigprocmask(SIG_BLOCK, &child->wanted, &child->before);
    child->pid = fork();
    if (child->pid == 0)
        child_become(child, args, variables, tell[1]);
    if (child->pid < 0)
        error = errno;
    close(tell[1]);
    ssize_t got = child->pid > 0 ? read(tell[0], &error, sizeof error) : 0;
    close(tell[0]);
    if (got > 0)
        waitpid(child->pid, &child->status, 0); /* it is no program */
    if (error != 0)
        sigprocmask(SIG_SETMASK, &child->before, NULL);
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

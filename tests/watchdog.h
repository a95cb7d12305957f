/* SPDX-License-Identifier: MIT */
/* A watchdog for what may hang: the process ends, and says in which scene it was. */
#ifndef TIDEPOOL_TESTS_WATCHDOG_H
#define TIDEPOOL_TESTS_WATCHDOG_H

#include <signal.h>
#include <string.h>
#include <unistd.h>

static const char *playing = "none";

static inline void watchdog_bark(int signal)
{
    (void)signal;
    static const char text[] = "hung in the scene: ";
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    (void)!write(STDERR_FILENO, playing, strlen(playing));
    (void)!write(STDERR_FILENO, "\n", 1);
    _exit(99);
}

/* From now on the scene of this name is played, two minutes at most; NULL: none is any more. The
 * name must stay meanwhile. A child of fork has no watchdog before it says what it plays. */
static inline void play(const char *name)
{
    enum { SECONDS = 120 };
    sigset_t alarms;
    playing = name != NULL ? name : "none";
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL); /* in the child of a thread that blocks all */
    signal(SIGALRM, watchdog_bark);
    alarm(name != NULL ? SECONDS : 0);
}

#endif

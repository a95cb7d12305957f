/* SPDX-License-Identifier: MIT */
/* A program that is run as if it were this one: it gets the signals that are sent to us. */
#ifndef TIDEPOOL_PROFILER_RECORD_CHILD_H
#define TIDEPOOL_PROFILER_RECORD_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct tide_child {
    pid_t pid;
    int status;      /* as waitpid tells it, once it has ended */
    sigset_t wanted; /* signals that are waited for            */
} tide_child;

/* Starts it, in our environment. 0, or the error. From then on signals that would end this process
 * are kept for tide_child_wait. */
int tide_child_start(tide_child *child, char **args);

/* Waits so long, and hands signals on meanwhile: those that somebody sent to this process alone,
 * for a terminal sends its own to both. True once the program has ended. */
bool tide_child_wait(tide_child *child, int ms);

/* What a shell would say: the exit status, or 128 and the signal. */
int tide_child_code(const tide_child *child);

#endif

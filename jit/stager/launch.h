/* SPDX-License-Identifier: MIT */
/* Starts a program that is nobody's child, and that has of the calling process what it is given and
 * nothing else. */
#ifndef TIDEPOOL_JIT_STAGER_LAUNCH_H
#define TIDEPOOL_JIT_STAGER_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct tide_launch {
    const char *program; /* absolute, as all paths here */
    char *const *arguments, *const *environment;
    const char *folder; /* that it starts in */
    int socket;         /* becomes its standard input and output; above the standard streams */
    bool errors;        /* it writes errors where the program does; else nowhere */
} tide_launch;

/* Zero and its number, or an errno; ESTALE: the folder is not there. It leads a session of its
 * own. Its signals, its scheduling and its processors are those of a fresh process; its real,
 * effective and saved ids are the effective ones of the calling thread, and it can never gain a
 * privilege that the calling thread lacks. */
int tide_launch_program(const tide_launch *launch, pid_t *pid);

#endif

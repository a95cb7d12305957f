/* SPDX-License-Identifier: MIT */
/* One worker process: it is started, talked to in lines, signalled, and seen to end. This file
 * knows processes and sockets, and no requests. Nothing here blocks.
 *
 * The process is not a child of the program, so nobody here learns how it ended. No signal goes to
 * a process that may be another's. The one descriptor that is held is looked at before each use. */
#ifndef TIDEPOOL_JIT_STAGER_PROCESS_H
#define TIDEPOOL_JIT_STAGER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "runtime/base/descriptor.h"

enum { TIDE_PROCESS_LINE = 1024 }; /* most bytes of a line, its end included */

typedef struct tide_process {
    pid_t pid;                /* of the process, and of its group; 0: none             */
    unsigned long long start; /* when it was started, to the system; 0: not known      */
    dev_t device;             /* the folder it was started in                          */
    ino_t inode;
    bool alone; /* nothing that it started is left, if it has ended      */
    tide_descriptor socket;
    size_t filled, used;
    char line[TIDE_PROCESS_LINE];
} tide_process;

/* Starts `program --serve directory`. Not 0: an error number, and one line in `error`. */
int tide_process_start(tide_process *process, const char *program, const char *directory,
                       char *error, size_t room);

/* Sends as much as the system takes now; the bytes taken. That the process is gone is
 * seen when reading. */
size_t tide_process_send(tide_process *process, const char *bytes, size_t count);

typedef enum tide_process_reading {
    TIDE_PROCESS_GOT,  /* a line, without its end */
    TIDE_PROCESS_NONE, /* none yet                */
    TIDE_PROCESS_END,  /* it has closed its side  */
    TIDE_PROCESS_LONG  /* a line too long, or with a 0 in it */
} tide_process_reading;

/* The next line; it lasts until the next call. */
tide_process_reading tide_process_read(tide_process *process, const char **line);

/* Asks it to end; ends it and what it has started. */
void tide_process_terminate(tide_process *process);
void tide_process_kill(tide_process *process);

bool tide_process_ended(const tide_process *process);

/* Has the program closed our end of the connection? */
bool tide_process_lost(const tide_process *process);

/* If it has ended: kills what it left running, and forgets it. False: it runs. */
bool tide_process_collect(tide_process *process);

/* Closes our end of the connection, or everything, without a word. */
void tide_process_hang_up(tide_process *process);
void tide_process_forget(tide_process *process);

#endif

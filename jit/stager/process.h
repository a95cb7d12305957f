/* SPDX-License-Identifier: MIT */
/* One helper process: started, talked to in lines, signalled, collected. It knows processes and
 * sockets, and nothing of orders. Nothing here blocks.
 *
 * The program may collect all children, or have the system do it: nothing here relies on learning
 * how the helper ended, and no signal goes to a process that may be another's. */
#ifndef TIDEPOOL_JIT_STAGER_PROCESS_H
#define TIDEPOOL_JIT_STAGER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { TIDE_HELPER_LINE = 1024 }; /* most bytes of a line, its end included */

typedef struct tide_helper {
    pid_t pid;   /* of the process, and of its group; 0: none */
    int process; /* a descriptor of it, readable once it has ended; -1 where the system has none */
    int socket;  /* -1: closed */
    size_t filled, used;
    char line[TIDE_HELPER_LINE];
} tide_helper;

/* Starts `program --serve directory`. False: one line in `error`. */
bool tide_helper_start(tide_helper *helper, const char *program, const char *directory, char *error,
                       size_t room);

/* Sends as much as the system takes now; the bytes taken. What cannot be sent because the helper
 * is gone is seen when reading. */
size_t tide_helper_send(tide_helper *helper, const char *bytes, size_t count);

typedef enum tide_helper_reading {
    TIDE_HELPER_GOT,  /* a line, without its end */
    TIDE_HELPER_NONE, /* none yet                */
    TIDE_HELPER_END,  /* it has closed its side  */
    TIDE_HELPER_LONG  /* a line too long, or with a 0 in it */
} tide_helper_reading;

/* The next line; it lasts until the next call. */
tide_helper_reading tide_helper_read(tide_helper *helper, const char **line);

/* Asks it to end; ends it and what it has started. */
void tide_helper_terminate(tide_helper *helper);
void tide_helper_kill(tide_helper *helper);

bool tide_helper_ended(const tide_helper *helper);

/* Collects one that has ended, kills what it left running, and forgets it. */
void tide_helper_collect(tide_helper *helper);

/* Moves a descriptor (-1 is passed on) out of the places of the standard streams: a program that
 * has closed those may read from them, print to them or put others there. -1 with errno: it is
 * closed. */
int tide_helper_lift(int descriptor);

/* Closes our end of the connection, or everything, without a word. */
void tide_helper_hang_up(tide_helper *helper);
void tide_helper_forget(tide_helper *helper);

#endif

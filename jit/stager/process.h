/* SPDX-License-Identifier: MIT */
/* One child process that lines are exchanged with over a socket. The program's own `wait` or its
 * handler of SIGCHLD may collect the child before we do: then waitpid knows no such child, and that
 * says as well that it has ended. */
#ifndef TIDEPOOL_JIT_STAGER_PROCESS_H
#define TIDEPOOL_JIT_STAGER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { TIDE_PROCESS_LINE = 1024 }; /* most bytes of a line, its end included */

typedef struct tide_process {
    pid_t pid; /* of the process, and of its group; 0: none */
    int socket;
    size_t filled, used;
    char line[TIDE_PROCESS_LINE];
} tide_process;

/* Starts `program --serve directory`; the socket is its standard input and output, and its errors go
 * nowhere. Zero or an error number. */
int tide_process_start(tide_process *process, const char *program, const char *directory,
                       char *const *environment);

/* Sends as much as the system takes now; the bytes taken. That the child is gone is seen when
 * reading. */
size_t tide_process_send(const tide_process *process, const char *bytes, size_t count);

typedef enum tide_process_reading {
    TIDE_PROCESS_GOT,  /* a line, without its end */
    TIDE_PROCESS_NONE, /* none yet                */
    TIDE_PROCESS_END,  /* it has closed its side  */
    TIDE_PROCESS_LONG  /* a line that is too long */
} tide_process_reading;

/* The next line; it lasts until the next call. */
tide_process_reading tide_process_read(tide_process *process, const char **line);

/* Kills it and what it has started, and collects it. */
void tide_process_end(tide_process *process);

/* Leaves it without a word: in the child of a fork, whose sibling it is. */
void tide_process_forget(tide_process *process);

#endif

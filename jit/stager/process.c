/* SPDX-License-Identifier: MIT */
/* A child as the system sees it: its start, its socket, its end. */
#define _GNU_SOURCE
#include "jit/stager/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/assert.h"
#include "runtime/base/os.h"

/* ---- starting ----------------------------------------------------------------------------- */

/* Its standard streams: what else the program has open and does not close by itself when it executes
 * another, the child closes as its first act. A group of its own, which a key on the terminal does
 * not reach; signals as of a fresh process. */
static bool process_describe(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes,
                             int socket)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    return posix_spawn_file_actions_adddup2(actions, socket, STDIN_FILENO) == 0 &&
           posix_spawn_file_actions_adddup2(actions, socket, STDOUT_FILENO) == 0 &&
           posix_spawn_file_actions_addopen(actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) ==
               0 &&
           posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                    POSIX_SPAWN_SETSIGDEF) == 0 &&
           posix_spawnattr_setsigmask(attributes, &none) == 0 &&
           posix_spawnattr_setsigdefault(attributes, &all) == 0;
}

static int process_spawn(pid_t *pid, char *const *arguments, char *const *environment, int socket)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return ENOMEM;
    int failed = ENOMEM; /* for want of which only all this fails */
    if (posix_spawnattr_init(&attributes) == 0) {
        if (process_describe(&actions, &attributes, socket))
            failed = posix_spawn(pid, arguments[0], &actions, &attributes, arguments, environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

/* Outside of the places of the standard streams, which the program may have closed. */
static int process_connect(int ends[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return errno;
    ends[0] = tide_os_lift(ends[0]);
    ends[1] = tide_os_lift(ends[1]);
    if (ends[0] >= 0 && ends[1] >= 0)
        return 0;
    int failed = errno;
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    return failed;
}

int tide_process_start(tide_process *process, const char *program, const char *directory,
                       char *const *environment)
{
    int ends[2];
    char *arguments[] = {(char *)program, "--serve", (char *)directory, NULL};
    tide_assert(program[0] == '/' && directory[0] == '/' && process->pid == 0);
    int failed = process_connect(ends);
    if (failed != 0)
        return failed;
    *process = (tide_process){.socket = ends[0]};
    failed = process_spawn(&process->pid, arguments, environment, ends[1]);
    close(ends[1]);
    if (failed != 0) {
        close(ends[0]);
        *process = (tide_process){.socket = -1};
    }
    tide_assert(failed != 0 || process->pid > 1);
    return failed;
}

/* ---- talking ------------------------------------------------------------------------------ */

size_t tide_process_send(const tide_process *process, const char *bytes, size_t count)
{
    size_t sent = 0;
    while (sent < count) {
        ssize_t taken =
            send(process->socket, bytes + sent, count - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (taken < 0 && errno == EINTR)
            continue;
        if (taken <= 0)
            break;
        sent += (size_t)taken;
    }
    tide_assert(sent <= count);
    return sent;
}

/* Moves what is left to the front and reads behind it. */
static tide_process_reading process_read_more(tide_process *process)
{
    tide_assert(process->used <= process->filled && process->filled <= sizeof process->line);
    memmove(process->line, process->line + process->used, process->filled - process->used);
    process->filled -= process->used;
    process->used = 0;
    if (process->filled == sizeof process->line)
        return TIDE_PROCESS_LONG;
    ssize_t got;
    do
        got = recv(process->socket, process->line + process->filled,
                   sizeof process->line - process->filled, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOMEM))
        return TIDE_PROCESS_NONE;
    if (got <= 0)
        return TIDE_PROCESS_END;
    process->filled += (size_t)got;
    return TIDE_PROCESS_GOT;
}

tide_process_reading tide_process_read(tide_process *process, const char **line)
{
    tide_assert(process->pid > 1 && process->used <= process->filled);
    for (;;) {
        char *start = process->line + process->used;
        char *end = memchr(start, '\n', process->filled - process->used);
        if (end != NULL) {
            *end = '\0';
            process->used = (size_t)(end - process->line) + 1;
            *line = start;
            return TIDE_PROCESS_GOT;
        }
        tide_process_reading reading = process_read_more(process);
        if (reading != TIDE_PROCESS_GOT)
            return reading;
    }
}

/* ---- the end ------------------------------------------------------------------------------ */

/* As long as it is not collected, its number and that of its group are its own. */
void tide_process_end(tide_process *process)
{
    siginfo_t seen;
    tide_assert(process->pid > 1); /* kill(-1) would reach every process */
    if (waitid(P_PID, (id_t)process->pid, &seen, WEXITED | WNOHANG | WNOWAIT) == 0)
        (void)kill(-process->pid, SIGKILL);
    while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    tide_process_forget(process);
}

void tide_process_forget(tide_process *process)
{
    if (process->pid != 0)
        close(process->socket);
    *process = (tide_process){.socket = -1};
}

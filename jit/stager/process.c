/* SPDX-License-Identifier: MIT */
/* One worker process, as the system sees it: spawn, pidfd, signals, socket.
 *
 * Whose process a pid is. A pid may be given to another process as soon as this one has ended *and*
 * been collected, which in a foreign program can happen at any moment. So:
 *   1. a descriptor of the process (pidfd) is had right after the start, and is believed only if it
 *      is a child of ours;
 *   2. signals go through it: they reach this process or none. Since Linux 6.9 the same holds for
 *      its group, which has the pid for its number as long as it has members;
 *   3. on older systems the group is signalled by number, and only while the process is there and
 *      has not been collected (waitid says so): so long the number cannot be another's. A program
 *      that collects it between that question and the signal would have to see the number used
 *      again in the same microseconds;
 *   4. without pidfd (Valgrind 3.19) the process is signalled in the same way as the group. */
#define _GNU_SOURCE
#include "jit/stager/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jit/stager/locate.h"
#include "runtime/base/assert.h"

#ifndef PIDFD_SIGNAL_PROCESS_GROUP
#define PIDFD_SIGNAL_PROCESS_GROUP (1U << 2)
#endif

static const tide_process process_none = {.pidfd = -1, .socket = -1};

static void process_close_descriptor(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

/* ---- whether it is there ------------------------------------------------------------------ */

typedef enum presence { RUNS, ENDED, COLLECTED } presence;

/* Asks without collecting it. */
static presence process_presence(const tide_process *process)
{
    siginfo_t seen = {.si_pid = 0};
    tide_assert(process->pid > 0);
    idtype_t type = process->pidfd >= 0 ? P_PIDFD : P_PID;
    id_t id = process->pidfd >= 0 ? (id_t)process->pidfd : (id_t)process->pid;
    int failed;
    do
        failed = waitid(type, id, &seen, WEXITED | WNOHANG | WNOWAIT);
    while (failed && errno == EINTR);
    if (failed)
        return COLLECTED; /* ECHILD: by the program, or by the system on its behalf */
    return seen.si_pid != 0 ? ENDED : RUNS;
}

/* ---- signals ------------------------------------------------------------------------------ */

static void process_signal_group(const tide_process *process, int number)
{
    tide_assert(process->pid > 1); /* kill(-1) would reach every process */
    if (process->pidfd >= 0 &&
        pidfd_send_signal(process->pidfd, number, NULL, PIDFD_SIGNAL_PROCESS_GROUP) == 0)
        return;
    if (process_presence(process) != COLLECTED)
        (void)kill(-process->pid, number);
}

void tide_process_terminate(tide_process *process)
{
    tide_assert(process->pid > 0);
    if (process->pidfd >= 0)
        (void)pidfd_send_signal(process->pidfd, SIGTERM, NULL, 0);
    else if (process_presence(process) != COLLECTED)
        (void)kill(process->pid, SIGTERM);
}

void tide_process_kill(tide_process *process)
{
    tide_assert(process->pid > 0);
    process_signal_group(process, SIGKILL);
}

bool tide_process_ended(const tide_process *process)
{
    tide_assert(process->pid > 0);
    return process_presence(process) != RUNS;
}

void tide_process_collect(tide_process *process)
{
    siginfo_t seen;
    tide_assert(tide_process_ended(process));
    process_signal_group(process, SIGKILL); /* a linker that it waited for, say */
    if (process->pidfd >= 0)
        (void)waitid(P_PIDFD, (id_t)process->pidfd, &seen, WEXITED | WNOHANG);
    else
        (void)waitid(P_PID, (id_t)process->pid, &seen, WEXITED | WNOHANG);
    tide_process_forget(process);
}

void tide_process_hang_up(tide_process *process)
{
    process_close_descriptor(&process->socket);
}

void tide_process_forget(tide_process *process)
{
    process_close_descriptor(&process->socket);
    process_close_descriptor(&process->pidfd);
    *process = process_none;
    tide_assert(process->pid == 0 && process->socket < 0 && process->pidfd < 0);
}

/* ---- starting ----------------------------------------------------------------------------- */

/* Standard streams, and nothing else that is open in the program. */
static int process_describe_files(posix_spawn_file_actions_t *files, int socket, bool verbose)
{
    int failed = posix_spawn_file_actions_adddup2(files, socket, STDIN_FILENO);
    if (!failed)
        failed = posix_spawn_file_actions_adddup2(files, STDIN_FILENO, STDOUT_FILENO);
    if (!failed && !verbose)
        failed = posix_spawn_file_actions_addopen(files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (!failed)
        failed = posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
    return failed;
}

/* It gets a group of its own: it can be killed with all that it starts, and a ^C for the program
 * does not reach it. Signals are as in a fresh process. */
static int process_describe_attributes(posix_spawnattr_t *attributes)
{
    sigset_t every, blocked;
    sigfillset(&every);
    sigemptyset(&blocked);
    int failed = posix_spawnattr_setflags(
        attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    if (!failed)
        failed = posix_spawnattr_setsigdefault(attributes, &every);
    if (!failed)
        failed = posix_spawnattr_setsigmask(attributes, &blocked);
    return failed;
}

/* The environment is written anew: nothing of the program's own goes to the compiler. */
static int process_spawn_described(pid_t *pid, const char *program, const char *directory,
                                   const posix_spawn_file_actions_t *files,
                                   const posix_spawnattr_t *attributes)
{
    char path[4096], temporary[512], nvrtc[4096];
    tide_assert(program[0] == '/' && directory[0] == '/');
    const char *said = tide_locate_environment_get()->path;
    const char *compiler = tide_locate_environment_get()->nvrtc;
    snprintf(path, sizeof path, "PATH=%s", said != NULL ? said : "/usr/local/bin:/usr/bin:/bin");
    snprintf(temporary, sizeof temporary, "TMPDIR=%s", directory);
    char *arguments[] = {(char *)program, "--serve", (char *)directory, NULL};
    snprintf(nvrtc, sizeof nvrtc, "TIDEPOOL_NVRTC=%s", compiler != NULL ? compiler : "");
    char *environment[] = {path, temporary, "LANG=C", compiler != NULL ? nvrtc : NULL, NULL};
    return posix_spawn(pid, program, files, attributes, arguments, environment);
}

/* An errno; 0 when it has been started. */
static int process_spawn(pid_t *pid, const char *program, const char *directory, int socket)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&files);
    if (failed)
        return failed;
    failed = posix_spawnattr_init(&attributes);
    if (!failed) {
        failed = process_describe_files(&files, socket, tide_locate_environment_get()->verbose);
        if (!failed)
            failed = process_describe_attributes(&attributes);
        if (!failed)
            failed = process_spawn_described(pid, program, directory, &files, &attributes);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

int tide_process_lift(int descriptor)
{
    if (descriptor < 0 || descriptor > STDERR_FILENO)
        return descriptor;
    int lifted = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), failed = errno;
    close(descriptor);
    errno = failed;
    tide_assert(lifted < 0 || lifted > STDERR_FILENO);
    return lifted;
}

static int process_connect_ends(int ends[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
        return errno;
    ends[0] = tide_process_lift(ends[0]);
    if (ends[0] >= 0 && fcntl(ends[1], F_SETFL, 0) == 0) /* the worker's end blocks */
        return 0;
    int failed = errno;
    process_close_descriptor(&ends[0]);
    process_close_descriptor(&ends[1]);
    return failed;
}

/* An errno; 0 when the process is there, with a descriptor or on a system that has none. */
static int process_take_hold(tide_process *process)
{
    static bool unknown; /* the system call: asked for once only */
    tide_assert(process->pid > 1 && process->pidfd < 0);
    if (!unknown) {
        process->pidfd = tide_process_lift(pidfd_open(process->pid, 0));
        if (process->pidfd < 0 && errno != ENOSYS && errno != ESRCH)
            return errno; /* no descriptor left, most likely */
        unknown = process->pidfd < 0 && errno == ENOSYS;
    }
    return process_presence(process) == COLLECTED ? ESRCH : 0;
}

static bool process_refuse(int number, const char *what, char *error, size_t room)
{
    snprintf(error, room, "the stager cannot be started: %.120s: %s", what, strerror(number));
    return false;
}

bool tide_process_start(tide_process *process, const char *program, const char *directory,
                        char *error, size_t room)
{
    int ends[2];
    *process = process_none;
    int failed = process_connect_ends(ends);
    if (failed)
        return process_refuse(failed, "socketpair", error, room);
    failed = process_spawn(&process->pid, program, directory, ends[1]);
    close(ends[1]);
    process->socket = ends[0];
    if (failed) {
        tide_process_forget(process);
        return process_refuse(failed, program, error, room);
    }
    failed = process_take_hold(process);
    if (failed) {
        if (failed != ESRCH) {
            process_signal_group(process, SIGKILL);
            (void)waitpid(process->pid, NULL, 0); /* killed, so at once */
        }
        tide_process_forget(process);
        return process_refuse(failed, failed == ESRCH ? "it ended at once" : "pidfd_open", error,
                              room);
    }
    tide_assert(process->socket > STDERR_FILENO && process->filled == 0);
    return true;
}

/* ---- talking ------------------------------------------------------------------------------ */

size_t tide_process_send(tide_process *process, const char *bytes, size_t count)
{
    size_t sent = 0;
    tide_assert(process->socket >= 0);
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
    tide_assert(process->filled <= sizeof process->line);
    return TIDE_PROCESS_GOT;
}

tide_process_reading tide_process_read(tide_process *process, const char **line)
{
    tide_assert(process->socket >= 0);
    for (;;) {
        char *start = process->line + process->used;
        char *end = memchr(start, '\n', process->filled - process->used);
        if (end != NULL) {
            *end = '\0';
            process->used = (size_t)(end - process->line) + 1;
            *line = start;
            tide_assert(process->used <= process->filled);
            return strlen(start) == (size_t)(end - start) ? TIDE_PROCESS_GOT : TIDE_PROCESS_LONG;
        }
        tide_process_reading reading = process_read_more(process);
        if (reading != TIDE_PROCESS_GOT)
            return reading;
    }
}

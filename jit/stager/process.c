/* SPDX-License-Identifier: MIT */
/* One worker process, as the system sees it: its number, its signals, its socket.
 *
 * Whose process a pid is. It is not our child, so its number may be given to another process as
 * soon as it has ended. So:
 *   1. its time of start is noted when it has been started, and is believed only if the connection
 *      was whole afterwards: then the process was there, and nobody else can have had its number;
 *   2. before each signal its time of start is read once more. Should it end between that and the
 *      signal, its number would have to go round and be used again in the same microseconds;
 *   3. its group has its number, for as long as it has members. Where the leader ended by itself,
 *      it is not known whose group that is: then each process of it that works in our folder is
 *      ended by itself;
 *   4. where there is no /proc (after chroot, say), it is taken to run as long as it is
 * connected. */
#define _GNU_SOURCE
#include "jit/stager/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jit/stager/entries.h"
#include "jit/stager/launch.h"
#include "jit/stager/locate.h"
#include "runtime/base/assert.h"
#include "runtime/base/settings.h"

enum { FOLDERS = 4096 /* most bytes of a list of folders that is handed on */ };

static const tide_process process_none = {.socket = {.number = -1}};

/* ---- whether it is there ------------------------------------------------------------------ */

typedef struct process_facts {
    char state;
    pid_t group;
    unsigned long long start; /* clock ticks since boot */
} process_facts;

typedef enum look { SEEN, GONE, UNKNOWN } look;

/* The line is "PID (NAME) STATE PARENT GROUP …"; the time of start is its 22nd word. The name may
 * hold anything, brackets too. */
static look process_parse(char *line, process_facts *out)
{
    char *rest = strrchr(line, ')');
    int group;
    if (rest == NULL || sscanf(rest, ") %c %*d %d", &out->state, &group) != 2)
        return UNKNOWN;
    out->group = group;
    for (int word = 2; word < 22; word++) {
        rest = strchr(rest + 1, ' ');
        if (rest == NULL)
            return UNKNOWN;
    }
    out->start = strtoull(rest, NULL, 10);
    return SEEN;
}

/* Is there a /proc, and does it show the processes that have our numbers? */
static bool process_knows_system(void)
{
    char self[32];
    ssize_t got = readlink("/proc/self", self, sizeof self - 1);
    self[got > 0 ? got : 0] = '\0';
    return strtol(self, NULL, 10) == getpid();
}

static look process_look(pid_t pid, process_facts *out)
{
    char path[64], line[1024];
    tide_assert(pid > 0);
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return errno == ENOENT && process_knows_system() ? GONE : UNKNOWN;
    ssize_t got = pread(file, line, sizeof line - 1, 0);
    int failed = errno;
    close(file);
    if (got <= 0)
        return got < 0 && failed == ESRCH ? GONE : UNKNOWN;
    line[got] = '\0';
    return process_parse(line, out);
}

/* Has it, or what it started, still the other end? */
static bool process_is_connected(const tide_process *process)
{
    char byte;
    int socket = tide_descriptor_get(&process->socket);
    if (socket < 0)
        return false;
    ssize_t got = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

typedef enum presence { RUNS, ENDED, COLLECTED } presence;

static presence process_presence(const tide_process *process)
{
    process_facts seen = {0};
    tide_assert(process->pid > 0);
    look looked = process->start != 0 ? process_look(process->pid, &seen) : UNKNOWN;
    if (looked == UNKNOWN)
        return process_is_connected(process) ? RUNS : COLLECTED;
    if (looked == GONE || seen.start != process->start)
        return COLLECTED;
    return seen.state == 'Z' || seen.state == 'X' ? ENDED : RUNS;
}

bool tide_process_ended(const tide_process *process)
{
    return process_presence(process) != RUNS;
}

bool tide_process_lost(const tide_process *process)
{
    return process->socket.number >= 0 && tide_descriptor_get(&process->socket) < 0;
}

/* ---- signals ------------------------------------------------------------------------------ */

void tide_process_terminate(tide_process *process)
{
    tide_assert(process->pid > 1);
    if (process_presence(process) == RUNS)
        (void)kill(process->pid, SIGTERM);
}

/* One that has ended keeps its number until it is collected: then the group is still its own. */
void tide_process_kill(tide_process *process)
{
    tide_assert(process->pid > 1); /* kill(-1) would reach every process */
    if (process_presence(process) != COLLECTED && kill(-process->pid, SIGKILL) == 0)
        process->alone = true;
}

/* Is it of the group, not older than its leader, and at work in the leader's folder? */
static bool process_belongs(const tide_process *process, pid_t pid)
{
    process_facts seen;
    struct stat folder;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cwd", (int)pid);
    return process_look(pid, &seen) == SEEN && seen.group == process->pid &&
           seen.start >= process->start && stat(path, &folder) == 0 &&
           folder.st_dev == process->device && folder.st_ino == process->inode;
}

/* Ends what a leader left that ended by itself: a linker that it waited for, say. */
static void process_kill_rest(const tide_process *process)
{
    tide_entries list;
    if (process->alone)
        return;
    tide_entries_open(&list, "/proc");
    for (const char *name; (name = tide_entries_next(&list)) != NULL;) {
        long pid = strtol(name, NULL, 10);
        if (pid > 1 && process_belongs(process, (pid_t)pid))
            (void)kill((pid_t)pid, SIGKILL);
    }
    tide_entries_end(&list);
}

/* It is our child all the same if the program itself collects orphans: init of a container, a
 * subreaper. Then it is collected here, and `wait` of the program does not see it for long. */
bool tide_process_collect(tide_process *process)
{
    presence now = process_presence(process);
    if (now == RUNS)
        return false;
    if (now == ENDED)
        tide_process_kill(process);
    process_kill_rest(process);
    if (now == ENDED)
        (void)waitpid(process->pid, NULL, WNOHANG | __WALL);
    tide_process_forget(process);
    return true;
}

void tide_process_hang_up(tide_process *process)
{
    process->alone = true; /* it was told to go, and waits for nothing that it started */
    tide_descriptor_close(&process->socket);
}

void tide_process_forget(tide_process *process)
{
    tide_descriptor_close(&process->socket);
    *process = process_none;
    tide_assert(process->pid == 0 && process->socket.number < 0);
}

/* ---- starting ----------------------------------------------------------------------------- */

/* "NAME=" and the absolute folders of a list, which others would find at the mercy of the folder
 * that the process works in. `otherwise` (NULL: nothing) stands for a list that has none. */
static bool process_write_folders(char out[FOLDERS], const char *name, const char *list,
                                  const char *otherwise)
{
    size_t at = (size_t)snprintf(out, FOLDERS, "%s=", name), start = at;
    while (list != NULL && *list != '\0') {
        size_t length = strcspn(list, ":");
        if (list[0] == '/' && at + length + 2 <= FOLDERS) {
            at += (size_t)snprintf(out + at, FOLDERS - at, "%s%.*s", at > start ? ":" : "",
                                   (int)length, list);
            tide_assert(at < FOLDERS);
        }
        list += length + (list[length] == ':');
    }
    if (at == start && otherwise != NULL)
        at += (size_t)snprintf(out + at, FOLDERS - at, "%s", otherwise);
    return at > start;
}

/* The environment is written anew: nothing of the program's own goes to the compiler, but for where
 * libraries lie that the stager looks for on the program's behalf. */
static int process_launch(pid_t *pid, const char *program, const char *directory, int socket)
{
    char path[FOLDERS], libraries[FOLDERS], temporary[512], idle[32];
    const tide_locate_environment *said = tide_locate_environment_get();
    snprintf(temporary, sizeof temporary, "TMPDIR=%s", directory);
    snprintf(idle, sizeof idle, "%.0f", tide_setting_get(TIDE_SETTING_stager_idle));
    char *arguments[] = {(char *)program, "--serve", (char *)directory, idle, NULL};
    char *environment[5] = {path, temporary, "LANG=C"};
    size_t count = 3;
    (void)process_write_folders(path, "PATH", said->path, "/usr/local/bin:/usr/bin:/bin");
    if (process_write_folders(libraries, "LD_LIBRARY_PATH", said->libraries, NULL))
        environment[count++] = libraries;
    tide_assert(count < sizeof environment / sizeof *environment);
    tide_launch launch = {.program = program,
                          .arguments = arguments,
                          .environment = environment,
                          .folder = directory,
                          .socket = socket,
                          .errors = said->verbose};
    return tide_launch_program(&launch, pid);
}

static int process_connect_ends(int ends[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
        return errno;
    ends[0] = tide_descriptor_lift(ends[0]);
    ends[1] = tide_descriptor_lift(ends[1]);
    if (ends[0] >= 0 && ends[1] >= 0 && fcntl(ends[1], F_SETFL, 0) == 0) /* its end blocks */
        return 0;
    int failed = errno;
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    return failed;
}

/* Notes what it is known by; see above. */
static void process_get_to_know(tide_process *process, const char *directory)
{
    process_facts seen;
    struct stat folder = {0};
    (void)stat(directory, &folder);
    process->device = folder.st_dev;
    process->inode = folder.st_ino;
    if (process_knows_system() && process_look(process->pid, &seen) == SEEN &&
        process_is_connected(process))
        process->start = seen.start;
}

static int process_refuse(int number, const char *what, char *error, size_t room)
{
    tide_assert(number != 0);
    snprintf(error, room, "the stager cannot be started: %.120s: %s", what, strerror(number));
    return number;
}

int tide_process_start(tide_process *process, const char *program, const char *directory,
                       char *error, size_t room)
{
    int ends[2];
    *process = process_none;
    int failed = process_connect_ends(ends);
    if (failed)
        return process_refuse(failed, "socketpair", error, room);
    tide_descriptor its = tide_descriptor_hold(ends[1]);
    process->socket = tide_descriptor_hold(ends[0]);
    failed = process_launch(&process->pid, program, directory, ends[1]);
    tide_descriptor_close(&its);
    if (failed) {
        tide_process_forget(process);
        return process_refuse(failed, failed == ESTALE ? directory : program, error, room);
    }
    process_get_to_know(process, directory);
    tide_assert(process->pid > 1 && process->filled == 0);
    return 0;
}

/* ---- talking ------------------------------------------------------------------------------ */

size_t tide_process_send(tide_process *process, const char *bytes, size_t count)
{
    size_t sent = 0;
    int socket = tide_descriptor_get(&process->socket);
    while (socket >= 0 && sent < count) {
        ssize_t taken = send(socket, bytes + sent, count - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
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
    int socket = tide_descriptor_get(&process->socket);
    ssize_t got;
    if (socket < 0)
        return TIDE_PROCESS_END;
    do
        got = recv(socket, process->line + process->filled, sizeof process->line - process->filled,
                   MSG_DONTWAIT);
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
    tide_assert(process->used <= process->filled);
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

/* SPDX-License-Identifier: MIT */
/* A connection to a process that listens. */
#define _GNU_SOURCE
#include "profiler/tool/client.h"

#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "profiler/record/need.h"
#include "runtime/base/assert.h"

__attribute__((format(printf, 3, 4))) static int client_fail(tool_client *client, int code,
                                                             const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(client->error, sizeof client->error, format, values);
    va_end(values);
    tide_assert(code != TOOL_OK);
    return code;
}

static int client_end(tool_client *client, const char *what)
{
    return client_fail(client, TOOL_BROKEN, "process %d: %s", (int)client->pid, what);
}

static int64_t client_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A zombie has a number still, and is none that does anything. Its descriptor says so. */
bool tool_process_ended(pid_t pid)
{
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    if (process < 0)
        return kill(pid, 0) != 0 && errno == ESRCH;
    struct pollfd end = {process, POLLIN, 0};
    bool ended = poll(&end, 1, 0) > 0;
    close(process);
    return ended;
}

/* ---- opening ------------------------------------------------------------------------------ */

/* Waits for its turn where many others come at the same time. */
static int client_connect(const char *folder, pid_t pid, int timeout_ms)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval most = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0)
        return -1;
    (void)setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/%d.sock", folder, (int)pid);
    if (connect(made, (struct sockaddr *)&address, sizeof address) == 0)
        return made;
    int failed = errno;
    if (failed == ECONNREFUSED) /* its process has ended, and left it behind */
        (void)unlink(address.sun_path);
    close(made);
    errno = failed;
    return -1;
}

/* Who listens there: a process of this user, and the one whose name it is? (0: it is none of those
 * that have a number here.) */
static int client_check_peer(tool_client *client)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    int pid = (int)client->pid;
    if (getsockopt(client->socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
        (peer.uid != geteuid() && peer.uid != 0 && geteuid() != 0))
        return client_fail(client, TOOL_BROKEN, "process %d: its socket is another user's", pid);
    if (peer.pid != 0 && peer.pid != client->pid)
        return client_fail(client, TOOL_BROKEN, "process %d: its socket is that of process %d", pid,
                           (int)peer.pid);
    return TOOL_OK;
}

/* Another user's, who has a folder of sockets of his own. */
static int client_foreign(tool_client *client, uid_t owner)
{
    const struct passwd *user = getpwuid(owner);
    return client_fail(client, TOOL_NOBODY,
                       "process %d is that of user %s (%u): ask as that user, or as root with -d "
                       "and that user's folder",
                       (int)client->pid, user != NULL ? user->pw_name : "?", (unsigned)owner);
}

static int client_refused(tool_client *client, const char *path, int error)
{
    int pid = (int)client->pid;
    char process[32];
    struct stat seen;
    snprintf(process, sizeof process, "/proc/%d", pid);
    if (tool_process_ended(client->pid))
        return client_fail(client, TOOL_NOBODY, "there is no process %d", pid);
    if (stat(process, &seen) == 0 && seen.st_uid != geteuid())
        return client_foreign(client, seen.st_uid);
    if (error == EAGAIN)
        return client_fail(client, TOOL_BROKEN, "process %d does not take connections", pid);
    return client_fail(client, TOOL_NOBODY,
                       "process %d does not listen (no socket in %.80s; TIDEPOOL_LISTEN=1 makes "
                       "a program listen)",
                       pid, path);
}

int tool_client_open(tool_client *client, pid_t pid, const char *folder, int timeout_ms)
{
    *client = (tool_client){.socket = -1, .pid = pid, .timeout_ms = timeout_ms};
    const char *path = tool_folder(folder);
    if (path == NULL)
        return client_fail(client, TOOL_USAGE, "the folder's path is too long");
    client->socket = client_connect(path, pid, timeout_ms);
    int error = errno;
    if (tool_process_ended(pid)) /* its socket may live a moment longer */
        tool_client_close(client);
    if (client->socket < 0)
        return client_refused(client, path, error);
    int code = client_check_peer(client);
    if (code != TOOL_OK)
        tool_client_close(client);
    return code;
}

void tool_client_close(tool_client *client)
{
    if (client->socket >= 0)
        close(client->socket);
    free(client->bytes);
    client->socket = -1;
    client->bytes = NULL;
    client->count = client->room = client->line = 0;
}

int tool_client_complain(const tool_client *client, int code)
{
    tide_assert(client->error[0] != '\0');
    return tool_complain(code, "%s", client->error);
}

int tool_client_open_named(tool_client *client, const char *text, const tool_options *options)
{
    pid_t pid;
    int code = tool_process_of(text, options, &pid);
    if (code != TOOL_OK)
        return code;
    code = tool_client_open(client, pid, options->folder, options->timeout_ms);
    return code == TOOL_OK ? code : tool_client_complain(client, code);
}

/* ---- lines -------------------------------------------------------------------------------- */

/* Waits until then for something to come. False: nothing has. */
static bool client_wait(tool_client *client, int64_t until)
{
    struct pollfd one = {.fd = client->socket, .events = POLLIN};
    for (;;) {
        int64_t left = until - client_now_ms();
        int ready = poll(&one, 1, left > 0 ? (int)left : 0);
        if (ready >= 0 || errno != EINTR)
            return ready > 0;
    }
}

/* At once: who answers a request need not have read a line feed that comes after it. */
int tool_client_send(tool_client *client, const char *request)
{
    size_t length = strlen(request) + 1, sent = 0;
    char *line = tide_need(strdup(request));
    tide_assert(client->socket >= 0 && strchr(request, '\n') == NULL);
    line[length - 1] = '\n';
    for (ssize_t wrote = 1; wrote > 0 && sent<length; sent += wrote> 0 ? (size_t)wrote : 0)
        wrote = send(client->socket, line + sent, length - sent, MSG_NOSIGNAL);
    free(line);
    return sent == length ? TOOL_OK
                          : client_end(client, errno == EAGAIN ? "it does not read what it is asked"
                                                               : "it has ended, or hung up");
}

/* Room for more; false: no memory, or the line is too long. */
static bool client_grow(tool_client *client)
{
    size_t wanted = client->room > 0 ? client->room * 2 : 4096;
    if (client->count < client->room)
        return true;
    char *larger = client->room < TOOL_LINE_MAX ? realloc(client->bytes, wanted) : NULL;
    if (larger == NULL)
        return false;
    client->bytes = larger;
    client->room = wanted;
    return true;
}

static void client_drop_line(tool_client *client)
{
    tide_assert(client->line <= client->count);
    if (client->line > 0)
        memmove(client->bytes, client->bytes + client->line, client->count - client->line);
    client->count -= client->line;
    client->line = 0;
}

/* Reads what is there. TOOL_NO: nothing is. */
static int client_fill(tool_client *client)
{
    if (!client_grow(client))
        return client_end(client, "its answer has no end");
    ssize_t got = recv(client->socket, client->bytes + client->count, client->room - client->count,
                       MSG_DONTWAIT);
    if (got > 0)
        client->count += (size_t)got;
    else if (got == 0)
        return client_end(client, "it has ended, or hung up");
    else if (errno != EAGAIN && errno != EINTR)
        return client_end(client, strerror(errno));
    return got > 0 ? TOOL_OK : TOOL_NO;
}

int tool_client_read(tool_client *client, int timeout_ms, const char **line, size_t *length)
{
    int64_t until = client_now_ms() + timeout_ms;
    client_drop_line(client);
    for (size_t looked = 0;;) {
        char *end = client->count > looked
                        ? memchr(client->bytes + looked, '\n', client->count - looked)
                        : NULL;
        if (end != NULL) {
            *end = '\0';
            *line = client->bytes;
            *length = (size_t)(end - client->bytes);
            client->line = *length + 1;
            return TOOL_OK;
        }
        looked = client->count;
        int code = client_fill(client);
        if (code == TOOL_NO && !client_wait(client, until))
            return client_fail(client, TOOL_NO, "process %d: no answer in time", (int)client->pid);
        if (code == TOOL_BROKEN)
            return code;
    }
}

/* ---- requests ----------------------------------------------------------------------------- */

int tool_client_object(tool_client *client, int timeout_ms, json_t **answer)
{
    const char *line;
    size_t length;
    *answer = NULL;
    int code = tool_client_read(client, timeout_ms, &line, &length);
    if (code != TOOL_OK)
        return code;
    *answer = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(*answer))
        return TOOL_OK;
    json_decref(*answer);
    *answer = NULL;
    return client_end(client, "its answer is no JSON object");
}

int tool_client_ask(tool_client *client, json_t *request, json_t **answer)
{
    char *text = request != NULL ? json_dumps(request, JSON_COMPACT) : NULL;
    json_decref(request);
    *answer = NULL;
    if (text == NULL)
        return client_fail(client, TOOL_NO, "the request is no text that JSON can hold");
    int code = tool_client_send(client, text);
    free(text);
    if (code == TOOL_OK && tool_client_object(client, client->timeout_ms, answer) != TOOL_OK)
        return TOOL_BROKEN; /* silence is no answer, either */
    const char *refused = json_string_value(json_object_get(*answer, "error"));
    if (code != TOOL_OK || refused == NULL)
        return code;
    code = client_fail(client, TOOL_NO, "process %d: %s", (int)client->pid, refused);
    json_decref(*answer);
    *answer = NULL;
    return code;
}

static bool client_facts_are_true(const tool_client *client, const json_t *facts)
{
    const char *format = json_string_value(json_object_get(facts, "format"));
    return format != NULL && strcmp(format, "tidepool-facts") == 0 &&
           json_integer_value(json_object_get(facts, "format_version")) == 1 &&
           json_integer_value(json_object_get(facts, "pid")) == client->pid &&
           json_is_array(json_object_get(facts, "pools")) &&
           json_is_array(json_object_get(facts, "sites")) &&
           json_is_array(json_object_get(facts, "buffers"));
}

int tool_client_facts(tool_client *client, json_t **facts)
{
    int code = tool_client_ask(client, json_pack("{s:s}", "get", "facts"), facts);
    if (code != TOOL_OK || client_facts_are_true(client, *facts))
        return code;
    json_decref(*facts);
    *facts = NULL;
    return client_end(client, "its answer is no facts document of that process");
}

int tool_client_facts_of(tool_client *client, const char *text, const tool_options *options,
                         json_t **facts)
{
    int code = tool_client_open_named(client, text, options);
    if (code != TOOL_OK)
        return code;
    code = tool_client_facts(client, facts);
    if (code == TOOL_OK)
        return code;
    (void)tool_client_complain(client, code);
    tool_client_close(client);
    return code;
}

/* SPDX-License-Identifier: MIT */
/* Workers: found by their sockets, looked at by one thread, asked by any. A worker may lie, hang or
 * die: an answer is a line of JSON within two seconds and 8 MiB, or there is none. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "service.h"

enum { PATIENCE_US = 2000000 }; /* of a whole exchange */

static pthread_mutex_t workers_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t workers_stopped = PTHREAD_COND_INITIALIZER;
static json_t *workers_list; /* [{"pid", "facts"}] */
static bool workers_end;
static int workers_period_ms;
static pthread_t workers_thread;

/* ---- one request -------------------------------------------------------------------------- */

static void workers_folder(char *out, size_t room)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (runtime != NULL && runtime[0] == '/')
        snprintf(out, room, "%s/tidepool", runtime);
    else
        snprintf(out, room, "/tmp/tidepool-%d", (int)getuid());
}

static int64_t workers_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

/* What comes next may take until then. False: it is too late. */
static bool workers_wait_until(int number, int64_t deadline_us)
{
    int64_t left = deadline_us - workers_now_us();
    struct timeval patience = {.tv_sec = left / 1000000, .tv_usec = left % 1000000};
    return left > 0 &&
           setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
           setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0;
}

/* Who listens there is a process of this user, or root's, and the one whose name it is (0: it has no
 * number here): in /tmp anybody may make the folder. */
static bool workers_is_of(int number, pid_t pid)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(number, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0 || geteuid() == 0) &&
           (peer.pid == pid || peer.pid == 0);
}

/* A connected socket, or -1. */
static int workers_connect(pid_t pid, int64_t deadline_us)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char folder[80];
    workers_folder(folder, sizeof folder);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/%d.sock", folder, (int)pid);
    int number = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (number < 0)
        return -1;
    if (workers_wait_until(number, deadline_us) &&
        connect(number, (struct sockaddr *)&address, sizeof address) == 0 &&
        workers_is_of(number, pid))
        return number;
    close(number);
    return -1;
}

static bool workers_send(int number, const char *bytes, size_t count, int64_t deadline_us)
{
    while (count > 0 && workers_wait_until(number, deadline_us)) {
        ssize_t sent = send(number, bytes, count, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        bytes += sent;
        count -= (size_t)sent;
    }
    return count == 0;
}

/* A line, to be freed; NULL: none came. */
static char *workers_read_line(int number, size_t *length, int64_t deadline_us)
{
    size_t room = 1 << 16, have = 0;
    char *line = malloc(room);
    while (line != NULL && have < ANSWER_MAX && workers_wait_until(number, deadline_us)) {
        ssize_t got = recv(number, line + have, room - have, 0);
        if (got <= 0)
            break;
        char *end = memchr(line + have, '\n', (size_t)got);
        have += (size_t)got;
        if (end != NULL) {
            *length = (size_t)(end - line);
            return line;
        }
        char *more = have == room ? realloc(line, room *= 2) : line;
        if (more == NULL)
            break;
        line = more;
    }
    free(line);
    return NULL;
}

/* The reference is the caller's; NULL with a text. */
static json_t *workers_exchange(int number, json_t *request, int64_t deadline_us, char error[200])
{
    size_t length = 0;
    char *text = json_dumps(request, JSON_COMPACT);
    bool sent = text != NULL && workers_send(number, text, strlen(text), deadline_us) &&
                workers_send(number, "\n", 1, deadline_us);
    char *line = sent ? workers_read_line(number, &length, deadline_us) : NULL;
    json_t *answer = line != NULL ? json_loadb(line, length, 0, NULL) : NULL;
    if (answer == NULL)
        snprintf(error, 200, "no answer");
    free(text);
    free(line);
    return answer;
}

json_t *workers_ask(pid_t pid, json_t *request, char error[200], bool *gone)
{
    int64_t deadline_us = workers_now_us() + PATIENCE_US;
    int number = workers_connect(pid, deadline_us);
    *gone = number < 0;
    if (number < 0) {
        snprintf(error, 200, "no worker has the number %d", (int)pid);
        return NULL;
    }
    json_t *answer = workers_exchange(number, request, deadline_us, error);
    close(number);
    const char *refused = json_string_value(json_object_get(answer, "error"));
    if (refused == NULL)
        return answer;
    snprintf(error, 200, "%s", refused);
    json_decref(answer);
    return NULL;
}

/* ---- looking ------------------------------------------------------------------------------ */

static json_t *workers_look_at(pid_t pid)
{
    char error[200];
    bool gone;
    json_t *request = json_pack("{s:s}", "get", "facts");
    json_t *facts = workers_ask(pid, request, error, &gone);
    json_decref(request);
    if (json_integer_value(json_object_get(facts, "pid")) == pid)
        return json_pack("{s:i, s:o}", "pid", (int)pid, "facts", facts);
    json_decref(facts);
    return NULL;
}

static json_t *workers_look(void)
{
    char folder[80];
    json_t *list = json_array();
    workers_folder(folder, sizeof folder);
    DIR *names = opendir(folder);
    for (struct dirent *one; names != NULL && (one = readdir(names)) != NULL;) {
        char *end;
        long pid = strtol(one->d_name, &end, 10);
        if (pid <= 0 || strcmp(end, ".sock") != 0 || pid == getpid() ||
            json_array_size(list) == WORKERS_MAX)
            continue;
        json_t *worker = workers_look_at((pid_t)pid);
        if (worker != NULL)
            json_array_append_new(list, worker);
    }
    if (names != NULL)
        closedir(names);
    return list;
}

static void *workers_run(void *unused)
{
    pthread_mutex_lock(&workers_lock);
    while (!workers_end) {
        pthread_mutex_unlock(&workers_lock);
        json_t *list = workers_look();
        pthread_mutex_lock(&workers_lock);
        json_decref(workers_list);
        workers_list = list;
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += workers_period_ms * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (!workers_end)
            (void)pthread_cond_timedwait(&workers_stopped, &workers_lock, &until);
    }
    pthread_mutex_unlock(&workers_lock);
    return unused;
}

bool workers_start(int period_ms)
{
    workers_period_ms = period_ms;
    workers_list = workers_look();
    return pthread_create(&workers_thread, NULL, workers_run, NULL) == 0;
}

void workers_stop(void)
{
    pthread_mutex_lock(&workers_lock);
    workers_end = true;
    pthread_cond_broadcast(&workers_stopped);
    pthread_mutex_unlock(&workers_lock);
    pthread_join(workers_thread, NULL);
    json_decref(workers_list);
    workers_list = NULL;
}

/* Each gets a copy of its own: jansson's counts of references are no business of two threads. */
json_t *workers_seen(void)
{
    pthread_mutex_lock(&workers_lock);
    json_t *list = json_deep_copy(workers_list);
    pthread_mutex_unlock(&workers_lock);
    return list;
}

json_t *workers_facts(pid_t pid)
{
    json_t *one, *found = NULL;
    size_t i;
    pthread_mutex_lock(&workers_lock);
    json_array_foreach(workers_list, i, one)
    {
        if (found == NULL && json_integer_value(json_object_get(one, "pid")) == pid)
            found = json_deep_copy(json_object_get(one, "facts"));
    }
    pthread_mutex_unlock(&workers_lock);
    return found;
}

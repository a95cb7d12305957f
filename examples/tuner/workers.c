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

enum { WORKERS_MAX = 64, ANSWER_MAX = 8 << 20, PATIENCE_S = 2, LOOK_MS = 250 };

static pthread_mutex_t workers_lock = PTHREAD_MUTEX_INITIALIZER;
static json_t *workers_list; /* facts */
static char *workers_texts[VIEW_COUNT];
static bool workers_end; /* atomic */
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

static time_t workers_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
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
static int workers_connect(pid_t pid)
{
    static const struct timeval patience = {.tv_sec = PATIENCE_S};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char folder[80];
    workers_folder(folder, sizeof folder);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/%d.sock", folder, (int)pid);
    int number = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (number < 0)
        return -1;
    if (setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
        setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 &&
        connect(number, (struct sockaddr *)&address, sizeof address) == 0 &&
        workers_is_of(number, pid))
        return number;
    close(number);
    return -1;
}

typedef struct workers_answer {
    int number;
    size_t length;
    time_t since;
} workers_answer;

/* Of an answer that is too long or too slow there is no more. */
static size_t workers_receive(void *buffer, size_t most, void *user)
{
    workers_answer *answer = user;
    ssize_t got = recv(answer->number, buffer, most, 0);
    answer->length += got > 0 ? (size_t)got : 0;
    bool good =
        got > 0 && answer->length <= ANSWER_MAX && workers_now() - answer->since <= PATIENCE_S;
    return good ? (size_t)got : (size_t)-1;
}

/* The reference is the caller's; NULL: no answer. */
static json_t *workers_exchange(int number, const json_t *request)
{
    char *text = json_dumps(request, JSON_COMPACT), *line = NULL;
    int length = text != NULL ? asprintf(&line, "%s\n", text) : -1;
    bool sent = length > 0 && send(number, line, (size_t)length, MSG_NOSIGNAL) == length;
    if (length > 0)
        free(line);
    free(text);
    return sent ? json_load_callback(workers_receive, &(workers_answer){number, 0, workers_now()},
                                     JSON_DISABLE_EOF_CHECK, NULL)
                : NULL;
}

json_t *workers_ask(pid_t pid, json_t *request, char error[200], bool *gone)
{
    int number = workers_connect(pid);
    json_t *answer = NULL;
    *gone = number < 0;
    if (number < 0)
        snprintf(error, 200, "no worker has the number %d", (int)pid);
    else {
        answer = workers_exchange(number, request);
        close(number);
        if (answer == NULL)
            snprintf(error, 200, "no answer");
    }
    json_decref(request);
    const char *refused = json_string_value(json_object_get(answer, "error"));
    if (refused == NULL)
        return answer;
    snprintf(error, 200, "%s", refused);
    json_decref(answer);
    return NULL;
}

/* ---- what clients see, made once a look: a thousand readers cost no more than one ---------- */

/* A site or tunable with the name by which it is asked for, PID:ID, of tunables PID:NAME; and when it
 * was so, on the worker's monotonic clock. */
static void workers_add_entries(json_t *out, const json_t *facts, const char *member,
                                const char *key)
{
    size_t i;
    json_t *one, *pid = json_object_get(facts, "pid");
    json_array_foreach(json_object_get(facts, member), i, one)
    {
        const json_t *name = json_object_get(one, key);
        if (!json_is_object(one))
            continue;
        json_t *copy = json_copy(one);
        json_object_set_new(
            copy, "id",
            json_is_integer(name)
                ? json_sprintf("%lld:%lld", (long long)json_integer_value(pid),
                               (long long)json_integer_value(name))
                : json_sprintf("%lld:%s", (long long)json_integer_value(pid),
                               json_is_string(name) ? json_string_value(name) : ""));
        json_object_set(copy, "worker", pid);
        json_object_set(copy, "seen_ns", json_object_get(facts, "time_ns"));
        json_array_append_new(out, copy);
    }
}

static json_t *workers_view(view which, const json_t *list)
{
    json_t *out = which == VIEW_SETTINGS ? json_object() : json_array(), *facts;
    size_t i;
    json_array_foreach(list, i, facts)
    {
        char pid[24];
        snprintf(pid, sizeof pid, "%lld",
                 (long long)json_integer_value(json_object_get(facts, "pid")));
        if (which == VIEW_SETTINGS)
            json_object_set(out, pid, json_object_get(facts, "settings"));
        else if (which == VIEW_WORKERS)
            json_array_append_new(
                out, json_pack("{s:O, s:O*, s:O*, s:O*}", "pid", json_object_get(facts, "pid"),
                               "program", json_object_get(facts, "program"), "version",
                               json_object_get(facts, "version"), "process_cpu_ns",
                               json_object_get(facts, "process_cpu_ns")));
        else {
            workers_add_entries(out, facts, "tunables", "name");
            workers_add_entries(out, facts, "sites", "id");
        }
    }
    return out;
}

/* ---- looking ------------------------------------------------------------------------------ */

static json_t *workers_look(void)
{
    char folder[80], error[200];
    json_t *list = json_array();
    workers_folder(folder, sizeof folder);
    DIR *names = opendir(folder);
    for (struct dirent *one; names != NULL && (one = readdir(names)) != NULL;) {
        char *end;
        bool gone;
        long pid = strtol(one->d_name, &end, 10);
        if (pid <= 0 || strcmp(end, ".sock") != 0 || pid == getpid() ||
            json_array_size(list) == WORKERS_MAX)
            continue;
        json_t *facts = workers_ask((pid_t)pid, json_pack("{s:s}", "get", "facts"), error, &gone);
        if (json_integer_value(json_object_get(facts, "pid")) == pid)
            json_array_append(list, facts);
        json_decref(facts);
    }
    if (names != NULL)
        closedir(names);
    return list;
}

/* Takes the list over. */
static void workers_keep(json_t *list)
{
    char *texts[VIEW_COUNT];
    for (int i = 0; i < VIEW_COUNT; i++) {
        json_t *made = workers_view((view)i, list);
        texts[i] = json_dumps(made, JSON_COMPACT);
        json_decref(made);
    }
    pthread_mutex_lock(&workers_lock);
    json_decref(workers_list);
    workers_list = list;
    for (int i = 0; i < VIEW_COUNT; i++) {
        free(workers_texts[i]);
        workers_texts[i] = texts[i];
    }
    pthread_mutex_unlock(&workers_lock);
}

static void *workers_run(void *unused)
{
    while (!__atomic_load_n(&workers_end, __ATOMIC_RELAXED)) {
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
        workers_keep(workers_look());
    }
    return unused;
}

bool workers_start(void)
{
    workers_keep(workers_look());
    return pthread_create(&workers_thread, NULL, workers_run, NULL) == 0;
}

void workers_stop(void)
{
    __atomic_store_n(&workers_end, true, __ATOMIC_RELAXED);
    pthread_join(workers_thread, NULL);
    workers_keep(NULL);
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
            found = json_deep_copy(one);
    }
    pthread_mutex_unlock(&workers_lock);
    return found;
}

char *workers_text(view which)
{
    pthread_mutex_lock(&workers_lock);
    char *text = workers_texts[which] != NULL ? strdup(workers_texts[which]) : NULL;
    pthread_mutex_unlock(&workers_lock);
    return text;
}

json_t *workers_site(const char *id)
{
    json_t *facts = workers_facts((pid_t)strtol(id, NULL, 10)), *found = NULL, *one;
    json_t *list = facts != NULL ? json_pack("[o]", facts) : NULL;
    json_t *sites = workers_view(VIEW_SITES, list);
    size_t i;
    json_array_foreach(sites, i, one)
    {
        if (found == NULL && strcmp(json_string_value(json_object_get(one, "id")), id) == 0)
            found = json_incref(one);
    }
    json_decref(sites);
    json_decref(list);
    return found;
}

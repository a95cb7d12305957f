/* SPDX-License-Identifier: MIT */
/* The service's face: HTTP with JSON. Nothing that comes is believed: bodies, connections and times
 * have limits, what changes something wants the token, and every error is a problem document (RFC
 * 9457). What is only looked at comes from the last look at the workers, so that readers cost the
 * workers nothing; but who reads the profile asks each of them. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/profile.h>
#include <tidepool/status.h>

#include "service.h"

enum {
    BODY_MAX = 64 << 10,
    PROFILE_MAX = 4 << 20,
    CONNECTIONS = 32,
    PATIENCE_S = 20,
    FOLLOWERS = 8,
    NAME_MAX_BYTES = 200
};

typedef struct http_body {
    char *bytes;
    size_t count;
    bool refused; /* it is too large */
} http_body;

static struct MHD_Daemon *http_daemon;
static const char *http_token, *http_profile;
static int http_followers; /* atomic */
static bool http_ends;     /* atomic */

/* Over the profile that the library has loaded, in which texts are merged and checked. */
static pthread_mutex_t http_profile_lock = PTHREAD_MUTEX_INITIALIZER;
static bool http_profile_is_put; /* the file has what a client put there */

/* ---- answers ------------------------------------------------------------------------------ */

static enum MHD_Result http_answer(struct MHD_Connection *connection, unsigned status,
                                   const char *type, const char *text, size_t length)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(length, (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    if (response == NULL)
        return MHD_NO;
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (status == 401)
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

/* Takes the value over. */
static enum MHD_Result http_json(struct MHD_Connection *connection, unsigned status, json_t *value)
{
    char *text = value != NULL ? json_dumps(value, JSON_COMPACT) : NULL;
    json_decref(value);
    if (text == NULL)
        return MHD_NO;
    enum MHD_Result result = http_answer(
        connection, status, status < 400 ? "application/json" : "application/problem+json", text,
        strlen(text));
    free(text);
    return result;
}

static enum MHD_Result http_problem(struct MHD_Connection *connection, unsigned status,
                                    const char *title, const char *detail)
{
    json_t *text = json_string(detail); /* NULL where it is no UTF-8 */
    json_t *problem =
        json_pack("{s:s, s:s, s:i}", "type", "about:blank", "title", title, "status", (int)status);
    json_object_set_new(problem, "detail", text != NULL ? text : json_string(title));
    return http_json(connection, status, problem);
}

static enum MHD_Result http_not_found(struct MHD_Connection *connection, const char *what)
{
    return http_problem(connection, 404, "Not Found", what);
}

/* ---- lists -------------------------------------------------------------------------------- */

/* The workers, without what they have. */
static json_t *http_workers(void)
{
    json_t *list = workers_seen(), *out = json_array(), *one;
    size_t i;
    json_array_foreach(list, i, one)
    {
        const json_t *facts = json_object_get(one, "facts");
        json_array_append_new(out, json_pack("{s:O, s:O?, s:O?, s:O?}", "pid",
                                             json_object_get(one, "pid"), "program",
                                             json_object_get(facts, "program"), "version",
                                             json_object_get(facts, "version"), "process_cpu_ns",
                                             json_object_get(facts, "process_cpu_ns")));
    }
    json_decref(list);
    return out;
}

/* A site or tunable with the name by which it is asked for: PID:ID, of tunables PID:NAME; and when it
 * was so, on the worker's monotonic clock. */
static json_t *http_entry(const json_t *facts, const json_t *one, bool tunable)
{
    char id[NAME_MAX_BYTES];
    pid_t pid = (pid_t)json_integer_value(json_object_get(facts, "pid"));
    json_t *copy = json_copy((json_t *)(uintptr_t)one);
    if (tunable)
        snprintf(id, sizeof id, "%d:%s", (int)pid, json_string_value(json_object_get(one, "name")));
    else
        snprintf(id, sizeof id, "%d:%lld", (int)pid,
                 (long long)json_integer_value(json_object_get(one, "id")));
    json_object_set_new(copy, "id", json_string(id));
    json_object_set_new(copy, "worker", json_integer(pid));
    json_object_set(copy, "seen_ns", json_object_get(facts, "time_ns"));
    return copy;
}

static void http_add_entries(json_t *out, const json_t *worker, const char *member)
{
    const json_t *facts = json_object_get(worker, "facts");
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(facts, member), i, one)
        json_array_append_new(out, http_entry(facts, one, member[0] == 't'));
}

static json_t *http_sites(void)
{
    json_t *list = workers_seen(), *out = json_array(), *one;
    size_t i;
    json_array_foreach(list, i, one)
    {
        http_add_entries(out, one, "tunables");
        http_add_entries(out, one, "sites");
    }
    json_decref(list);
    return out;
}

static json_t *http_settings(void)
{
    json_t *list = workers_seen(), *out = json_object(), *one;
    size_t i;
    json_array_foreach(list, i, one)
    {
        char pid[16];
        snprintf(pid, sizeof pid, "%d", (int)json_integer_value(json_object_get(one, "pid")));
        json_object_set(out, pid, json_object_get(json_object_get(one, "facts"), "settings"));
    }
    json_decref(list);
    return out;
}

static enum MHD_Result http_site(struct MHD_Connection *connection, const char *id)
{
    json_t *all = http_sites(), *one, *found = NULL;
    size_t i;
    json_array_foreach(all, i, one)
    {
        const char *name = json_string_value(json_object_get(one, "id"));
        if (found == NULL && name != NULL && strcmp(name, id) == 0)
            found = json_incref(one);
    }
    json_decref(all);
    return found != NULL ? http_json(connection, 200, found)
                         : http_not_found(connection, "no such site");
}

static enum MHD_Result http_metrics(struct MHD_Connection *connection)
{
    char text[1000];
    static const char *const verdicts[] = {"kept", "rolled back", "not undone", "not tried"};
    json_t *list = workers_seen();
    size_t at = (size_t)snprintf(
        text, sizeof text,
        "# TYPE tuner_workers gauge\ntuner_workers %zu\n"
        "# TYPE tuner_running gauge\ntuner_running %d\n# TYPE tuner_changes gauge\n",
        json_array_size(list), tune_running());
    for (int i = 0; i < 4; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "tuner_changes{verdict=\"%s\"} %llu\n",
                               verdicts[i], (unsigned long long)journal_count(verdicts[i]));
    json_decref(list);
    return http_answer(connection, 200, "text/plain; version=0.0.4", text, at);
}

/* Loads what all workers have learned, merged by the library, whose profile is locked. False: they
 * have none. */
static bool http_load_learned(void)
{
    json_t *list = workers_seen(), *one, *request = json_pack("{s:s}", "get", "profile");
    char error[200];
    size_t i;
    bool gone, first = true;
    json_array_foreach(list, i, one)
    {
        json_t *answer = workers_ask((pid_t)json_integer_value(json_object_get(one, "pid")),
                                     request, error, &gone);
        const char *profile = json_string_value(json_object_get(answer, "profile"));
        if (profile != NULL && tide_profile_read(profile, strlen(profile), !first) == TIDE_OK)
            first = false;
        json_decref(answer);
    }
    json_decref(list);
    json_decref(request);
    return !first;
}

bool http_recall_profile(void)
{
    return http_profile_is_put ? tide_profile_load(http_profile) == TIDE_OK : http_load_learned();
}

static enum MHD_Result http_get_profile(struct MHD_Connection *connection)
{
    char *text = NULL;
    size_t length = 0;
    pthread_mutex_lock(&http_profile_lock);
    FILE *out = http_load_learned() ? open_memstream(&text, &length) : NULL;
    bool good = out != NULL && tide_profile_write(out) == TIDE_OK;
    good = out != NULL && fclose(out) == 0 && good;
    pthread_mutex_unlock(&http_profile_lock);
    enum MHD_Result result =
        good ? http_answer(connection, 200, "text/plain; charset=utf-8", text, length)
             : http_not_found(connection, "no worker has a profile");
    free(text);
    return result;
}

/* ---- events ------------------------------------------------------------------------------- */

typedef struct http_follower {
    uint64_t told;
    char *text;
    size_t length, given;
} http_follower;

/* The next piece: entries that are new, else the workers' objectives, which also tells that the
 * connection lives. */
static bool http_follow_next(http_follower *follower)
{
    json_t *list = journal_after(follower->told, 500), *one;
    size_t i;
    FILE *out = open_memstream(&follower->text, &follower->length);
    if (out == NULL)
        return false;
    json_array_foreach(list, i, one)
    {
        follower->told = (uint64_t)json_integer_value(json_object_get(one, "number"));
        char *text = json_dumps(one, JSON_COMPACT);
        fprintf(out, "id: %llu\nevent: change\ndata: %s\n\n", (unsigned long long)follower->told,
                text != NULL ? text : "{}");
        free(text);
    }
    json_t *sites = json_array_size(list) == 0 ? http_sites() : NULL;
    char *text = sites != NULL ? json_dumps(sites, JSON_COMPACT) : NULL;
    if (text != NULL)
        fprintf(out, "event: sites\ndata: %s\n\n", text);
    free(text);
    json_decref(sites);
    json_decref(list);
    follower->given = 0;
    return fclose(out) == 0 && follower->length > 0;
}

static ssize_t http_follow(void *user, uint64_t position, char *to, size_t most)
{
    http_follower *follower = user;
    (void)position;
    if (follower->given == follower->length) {
        free(follower->text);
        *follower = (http_follower){.told = follower->told};
        if (__atomic_load_n(&http_ends, __ATOMIC_RELAXED) || !http_follow_next(follower))
            return MHD_CONTENT_READER_END_OF_STREAM;
    }
    size_t count = follower->length - follower->given;
    count = count < most ? count : most;
    memcpy(to, follower->text + follower->given, count);
    follower->given += count;
    return (ssize_t)count;
}

static void http_follow_end(void *user)
{
    http_follower *follower = user;
    free(follower->text);
    free(follower);
    __atomic_fetch_sub(&http_followers, 1, __ATOMIC_RELAXED);
}

static enum MHD_Result http_events(struct MHD_Connection *connection)
{
    const char *last = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Last-Event-ID");
    http_follower *follower = calloc(1, sizeof *follower);
    if (follower == NULL || __atomic_fetch_add(&http_followers, 1, __ATOMIC_RELAXED) >= FOLLOWERS) {
        __atomic_fetch_sub(&http_followers, follower != NULL, __ATOMIC_RELAXED);
        free(follower);
        return http_problem(connection, 503, "Service Unavailable", "too many follow: 8 at most");
    }
    follower->told = last != NULL ? journal_known(strtoull(last, NULL, 10)) : 0;
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, 1 << 16, http_follow, follower, http_follow_end);
    if (response == NULL) {
        http_follow_end(follower);
        return MHD_NO;
    }
    MHD_add_response_header(response, "Content-Type", "text/event-stream");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    enum MHD_Result result = MHD_queue_response(connection, 200, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result http_get(struct MHD_Connection *connection, const char *url)
{
    if (strcmp(url, "/") == 0)
        return http_answer(connection, 200, "text/html; charset=utf-8", tuner_page,
                           strlen(tuner_page));
    if (strcmp(url, "/workers") == 0)
        return http_json(connection, 200, http_workers());
    if (strcmp(url, "/sites") == 0)
        return http_json(connection, 200, http_sites());
    if (strncmp(url, "/sites/", 7) == 0)
        return http_site(connection, url + 7);
    if (strcmp(url, "/settings") == 0)
        return http_json(connection, 200, http_settings());
    if (strcmp(url, "/journal") == 0)
        return http_json(connection, 200, journal_after(0, 0));
    if (strcmp(url, "/events") == 0)
        return http_events(connection);
    if (strcmp(url, "/metrics") == 0)
        return http_metrics(connection);
    if (strcmp(url, "/profile") == 0)
        return http_get_profile(connection);
    return http_not_found(connection,
                          "there is: / /workers /sites /sites/{id} /settings /journal /events "
                          "/metrics /profile");
}

/* ---- changes ------------------------------------------------------------------------------ */

/* Takes the request over; sends it, notes it, answers. */
static enum MHD_Result http_order(struct MHD_Connection *connection, pid_t pid, json_t *request)
{
    char error[200];
    bool gone;
    if (request == NULL)
        return http_problem(connection, 400, "Bad Request",
                            "a member is missing or of another type");
    json_t *answer = workers_ask(pid, request, error, &gone);
    if (answer != NULL)
        journal_add(json_pack("{s:i, s:O, s:s, s:s}", "worker", (int)pid, "request", request,
                              "verdict", "ordered", "why", "a client asked for it"));
    json_decref(request);
    return answer == NULL
               ? http_problem(connection, gone ? 404 : 422, gone ? "Not Found" : "Refused", error)
               : http_json(connection, 200, answer);
}

/* PUT /sites/PID:NAME/VERB; NAME is a site's number or a tunable's name. */
static enum MHD_Result http_put_site(struct MHD_Connection *connection, const char *id,
                                     json_t *body)
{
    char name[NAME_MAX_BYTES];
    int pid = 0, at = 0;
    const char *verb = strrchr(id, '/');
    if (verb == NULL || sscanf(id, "%d:%n", &pid, &at) != 1 || at == 0 || pid <= 0 ||
        (size_t)(verb - id - at) >= sizeof name || verb - id <= at)
        return http_not_found(connection, "no such site");
    snprintf(name, sizeof name, "%.*s", (int)(verb - id - at), id + at);
    bool is_site = strspn(name, "0123456789") == strlen(name) && strlen(name) < 18;
    json_int_t number = is_site ? strtoll(name, NULL, 10) : 0;
    json_t *value = json_object_get(body, "value");
    if (strcmp(verb, "/knob") == 0 && json_is_number(value))
        return http_order(
            connection, pid,
            json_pack("{s:s, s:s, s:O}", "do", "tell", "tunable", name, "value", value));
    if (strcmp(verb, "/knob") == 0)
        return http_order(connection, pid,
                          json_pack("{s:s, s:s, s:O, s:O*}", "do", "tell", "tunable", name,
                                    "variant", json_object_get(body, "variant"), "row",
                                    json_object_get(body, "key")));
    if (strcmp(verb, "/reset") == 0)
        return http_order(connection, pid,
                          is_site ? json_pack("{s:s, s:I}", "do", "reset", "site", number)
                                  : json_pack("{s:s, s:s}", "do", "forget", "tunable", name));
    if (strcmp(verb, "/pin") == 0 && is_site)
        return http_order(connection, pid,
                          json_pack("{s:s, s:I, s:O}", "do", "pin", "site", number, "tier",
                                    json_object_get(body, "tier")));
    if (strcmp(verb, "/declare") == 0 && is_site)
        return http_order(connection, pid,
                          json_pack("{s:s, s:I, s:O}", "do", "declare", "site", number, "types",
                                    json_object_get(body, "types")));
    return http_not_found(connection, "there is: pin, knob, declare, reset");
}

/* Of one worker, or of all. */
static enum MHD_Result http_put_setting(struct MHD_Connection *connection, const char *name,
                                        json_t *body)
{
    json_t *value = json_object_get(body, "value"), *worker = json_object_get(body, "worker");
    json_t *list = workers_seen(), *one;
    size_t i;
    int done = 0;
    char error[200] = "no worker";
    json_array_foreach(list, i, one)
    {
        bool gone;
        pid_t pid = (pid_t)json_integer_value(json_object_get(one, "pid"));
        json_t *request =
            json_is_number(value) && (worker == NULL || json_integer_value(worker) == pid)
                ? json_pack("{s:s, s:s, s:O}", "do", "set", "key", name, "value", value)
                : NULL;
        json_t *answer = request != NULL ? workers_ask(pid, request, error, &gone) : NULL;
        done += answer != NULL;
        json_decref(answer);
        json_decref(request);
    }
    json_decref(list);
    if (!json_is_number(value))
        return http_problem(connection, 400, "Bad Request", "\"value\" is no number");
    return done > 0 ? http_json(connection, 200, json_pack("{s:i}", "workers", done))
                    : http_problem(connection, 422, "Refused", error);
}

/* The profile with which workers begin when the service is started again. */
static enum MHD_Result http_put_profile(struct MHD_Connection *connection, const http_body *body)
{
    if (http_profile == NULL)
        return http_problem(connection, 409, "Conflict",
                            "the service was started without --profile");
    if (body->count == 0)
        return http_problem(connection, 422, "Refused", "no text");
    pthread_mutex_lock(&http_profile_lock);
    bool good = tide_profile_read(body->bytes, body->count, false) == TIDE_OK;
    bool saved = good && tide_profile_save(http_profile) == TIDE_OK;
    http_profile_is_put = http_profile_is_put || saved;
    pthread_mutex_unlock(&http_profile_lock);
    if (!good)
        return http_problem(connection, 422, "Refused", tide_error_message());
    return saved ? http_json(connection, 200, json_pack("{s:i}", "bytes", (int)body->count))
                 : http_problem(connection, 500, "Internal Server Error", tide_error_message());
}

static enum MHD_Result http_tune(struct MHD_Connection *connection, const json_t *body)
{
    char error[200] = "\"worker\" is no number of a process";
    const json_t *worker = json_object_get(body, "worker");
    if (!json_is_integer(worker))
        return http_problem(connection, 400, "Bad Request", error);
    if (!tune_begin((pid_t)json_integer_value(worker),
                    (pid_t)json_integer_value(json_object_get(body, "control")),
                    json_string_value(json_object_get(body, "only")),
                    json_string_value(json_object_get(body, "objective")), error))
        return http_problem(connection, 409, "Conflict", error);
    return http_json(connection, 202, json_pack("{s:b}", "running", 1));
}

static enum MHD_Result http_change(struct MHD_Connection *connection, const char *method,
                                   const char *url, const http_body *body)
{
    if (strcmp(method, "PUT") == 0 && strcmp(url, "/profile") == 0)
        return http_put_profile(connection, body);
    json_error_t wrong;
    json_t *json = json_loadb(body->bytes != NULL ? body->bytes : "", body->count,
                              JSON_REJECT_DUPLICATES, &wrong);
    enum MHD_Result result;
    if (!json_is_object(json))
        result = http_problem(connection, 400, "Bad Request",
                              json == NULL ? wrong.text : "no JSON object");
    else if (strcmp(method, "POST") == 0 && strcmp(url, "/tune") == 0)
        result = http_tune(connection, json);
    else if (strcmp(method, "PUT") == 0 && strncmp(url, "/sites/", 7) == 0)
        result = http_put_site(connection, url + 7, json);
    else if (strcmp(method, "PUT") == 0 && strncmp(url, "/settings/", 10) == 0)
        result = http_put_setting(connection, url + 10, json);
    else
        result = http_not_found(
            connection, "there is: PUT /sites/{id}/{verb} /settings/{name} /profile, POST /tune");
    json_decref(json);
    return result;
}

/* ---- requests ----------------------------------------------------------------------------- */

/* Compared in a time that does not tell how much of it is right. */
static bool http_has_token(struct MHD_Connection *connection)
{
    const char *given = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");
    size_t length = strlen(http_token);
    unsigned differs = 0;
    if (given == NULL || strncmp(given, "Bearer ", 7) != 0 || strlen(given + 7) != length)
        return false;
    for (size_t i = 0; i < length; i++)
        differs |= (unsigned char)given[7 + i] ^ (unsigned char)http_token[i];
    return differs == 0;
}

static void http_collect(http_body *body, const char *bytes, size_t count, size_t most)
{
    char *grown = body->count + count <= most ? realloc(body->bytes, body->count + count) : NULL;
    if (grown == NULL) {
        body->refused = true;
        return;
    }
    memcpy(grown + body->count, bytes, count);
    body->bytes = grown;
    body->count += count;
}

static enum MHD_Result http_handle(void *unused, struct MHD_Connection *connection, const char *url,
                                   const char *method, const char *version, const char *bytes,
                                   size_t *count, void **state)
{
    (void)unused, (void)version;
    http_body *body = *state;
    bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    bool changes = strcmp(method, "PUT") == 0 || strcmp(method, "POST") == 0;
    if (body == NULL) {
        *state = body = calloc(1, sizeof *body);
        return body != NULL ? MHD_YES : MHD_NO;
    }
    if (*count > 0) {
        http_collect(body, bytes, *count, strcmp(url, "/profile") == 0 ? PROFILE_MAX : BODY_MAX);
        *count = 0;
        return body->count > 0 || body->refused ? MHD_YES : MHD_NO;
    }
    if (body->refused)
        return http_problem(connection, 413, "Content Too Large",
                            "64 KiB at most, of a profile 4 MiB");
    if (reads)
        return http_get(connection, url);
    if (!changes)
        return http_problem(connection, 405, "Method Not Allowed", "GET, PUT and POST are");
    if (!http_has_token(connection))
        return http_problem(connection, 401, "Unauthorized",
                            "what changes something wants the token");
    return http_change(connection, method, url, body);
}

static void http_ended(void *unused, struct MHD_Connection *connection, void **state,
                       enum MHD_RequestTerminationCode code)
{
    (void)unused, (void)connection, (void)code;
    http_body *body = *state;
    if (body != NULL)
        free(body->bytes);
    free(body);
    *state = NULL;
}

bool http_start(const char *address, uint16_t port, const char *token, const char *profile)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    http_token = token;
    http_profile = profile;
    if (inet_pton(AF_INET, address, &at.sin_addr) != 1)
        return false;
    http_daemon = MHD_start_daemon(MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD,
                                   port, NULL, NULL, http_handle, NULL, MHD_OPTION_SOCK_ADDR, &at,
                                   MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
                                   MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)PATIENCE_S,
                                   MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(32 << 10),
                                   MHD_OPTION_NOTIFY_COMPLETED, http_ended, NULL, MHD_OPTION_END);
    return http_daemon != NULL;
}

uint16_t http_port(void)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http_daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info != NULL ? info->port : 0;
}

void http_stop(void)
{
    __atomic_store_n(&http_ends, true, __ATOMIC_RELAXED);
    MHD_stop_daemon(http_daemon);
}

/* SPDX-License-Identifier: MIT */
/* The service's face: HTTP with JSON, one table of routes. Nothing that comes is believed: bodies,
 * connections and times have limits, what changes something wants the token, and every error is a
 * problem document (RFC 9457). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/status.h>

#include "service.h"

enum {
    BODY_MAX = 64 << 10,
    PROFILE_MAX = 4 << 20,
    CONNECTIONS = 32,
    PATIENCE_S = 20,
    NAME_ROOM = 200
};

/* A request, while it comes and when it is there. */
typedef struct http_request {
    struct MHD_Connection *connection;
    const char *path, *rest; /* what is behind the route's path */
    char *bytes;
    size_t count;
    unsigned refused; /* the status with which it will be; what else comes is not kept */
    json_t *body;
} http_request;

static struct MHD_Daemon *http_daemon;
static const char *http_token;
static bool http_has_profile;

/* ---- answers ------------------------------------------------------------------------------ */

/* `type`: the media type. The text is copied. */
static enum MHD_Result http_answer(http_request *request, unsigned status, const char *type,
                                   const char *text)
{
    static const char *const headers[][2] = {
        {"Cache-Control", "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"Content-Security-Policy",
         "default-src 'none'; script-src 'self'; img-src data:; connect-src 'self'; "
         "style-src 'self' 'unsafe-inline'; frame-ancestors 'none'"}};
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    if (response == NULL)
        return MHD_NO;
    MHD_add_response_header(response, "Content-Type", type);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        MHD_add_response_header(response, headers[i][0], headers[i][1]);
    if (status == 401)
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (status == 405)
        MHD_add_response_header(response, "Allow", "GET, HEAD, PUT, POST");
    enum MHD_Result result = MHD_queue_response(request->connection, status, response);
    MHD_destroy_response(response);
    return result;
}

/* Takes the text over. */
static enum MHD_Result http_answer_text(http_request *request, unsigned status, const char *type,
                                        char *text)
{
    enum MHD_Result result = text != NULL ? http_answer(request, status, type, text) : MHD_NO;
    free(text);
    return result;
}

/* Takes the value over. */
static enum MHD_Result http_json(http_request *request, unsigned status, json_t *value)
{
    char *text = value != NULL ? json_dumps(value, JSON_COMPACT) : NULL;
    json_decref(value);
    return http_answer_text(request, status,
                            status < 400 ? "application/json" : "application/problem+json", text);
}

static enum MHD_Result http_problem(http_request *request, unsigned status, const char *detail)
{
    const char *title = MHD_get_reason_phrase_for(status);
    json_t *text = json_string(detail); /* NULL where it is no UTF-8 */
    return http_json(request, status,
                     json_pack("{s:s, s:s, s:i, s:o}", "type", "about:blank", "title", title,
                               "status", (int)status, "detail",
                               text != NULL ? text : json_string(title)));
}

/* ---- what is looked at -------------------------------------------------------------------- */

/* Defines NAME as a file's bytes, and a 0. */
#define HTTP_FILE(name, file)                                                                 \
    extern const char name[];                                                                 \
    __asm__(".section .rodata\n.globl " #name "\n" #name ":\n.incbin \"" file "\"\n.byte 0\n" \
            ".previous\n")

HTTP_FILE(http_page_html, TUNER_FOLDER "/page.html");
HTTP_FILE(http_page_js, TUNER_FOLDER "/page.js");
HTTP_FILE(http_chart_js, TUNER_CHARTS);

/* The charting library is empty where the service was built without it: then the page has figures
 * only. */
static enum MHD_Result http_get_file(http_request *request)
{
    static const struct {
        const char *path, *type, *text;
    } files[] = {{"/", "text/html; charset=utf-8", http_page_html},
                 {"/page.js", "text/javascript; charset=utf-8", http_page_js},
                 {"/chart.js", "text/javascript; charset=utf-8", http_chart_js}};
    size_t i = 0;
    while (strcmp(files[i].path, request->path) != 0)
        i++;
    return http_answer(request, 200, files[i].type, files[i].text);
}

static enum MHD_Result http_get_view(http_request *request)
{
    view which = strcmp(request->path, "/workers") == 0 ? VIEW_WORKERS
                 : strcmp(request->path, "/sites") == 0 ? VIEW_SITES
                                                        : VIEW_SETTINGS;
    return http_answer_text(request, 200, "application/json", workers_text(which));
}

static enum MHD_Result http_get_site(http_request *request)
{
    json_t *site = workers_site(request->rest);
    return site != NULL ? http_json(request, 200, site)
                        : http_problem(request, 404, "no such site");
}

static enum MHD_Result http_get_journal(http_request *request)
{
    return http_json(request, 200, journal_after(0));
}

static enum MHD_Result http_get_events(http_request *request)
{
    int result = events_answer(request->connection);
    return result >= 0 ? (enum MHD_Result)result
                       : http_problem(request, 503, "too many follow the events: 8 at most");
}

static enum MHD_Result http_get_metrics(http_request *request)
{
    char text[1000];
    const char *verdict;
    json_t *list = workers_seen(), *counts = journal_counts(), *count;
    size_t at = (size_t)snprintf(text, sizeof text,
                                 "# TYPE tuner_workers gauge\ntuner_workers %zu\n"
                                 "# TYPE tuner_running gauge\ntuner_running %d\n"
                                 "# TYPE tuner_changes_total counter\n",
                                 json_array_size(list), tune_running());
    json_object_foreach(counts, verdict, count) at +=
        (size_t)snprintf(text + at, sizeof text - at, "tuner_changes_total{verdict=\"%s\"} %lld\n",
                         verdict, (long long)json_integer_value(count));
    json_decref(list);
    json_decref(counts);
    return http_answer(request, 200, "text/plain; version=0.0.4", text);
}

static enum MHD_Result http_get_profile(http_request *request)
{
    char *text = profile_learned();
    return text != NULL ? http_answer_text(request, 200, "text/plain; charset=utf-8", text)
                        : http_problem(request, 404, "no worker has a profile");
}

/* ---- what is changed ---------------------------------------------------------------------- */

/* What a worker is told: the members of the body, which it checks, and what is to be done with what.
 * NULL: sites or tunables have no such verb. */
static json_t *http_order(const json_t *body, const char *verb, const char *name)
{
    bool is_site = strspn(name, "0123456789") == strlen(name) && strlen(name) < 18;
    static const char *const verbs[][2] = {{"knob", "tell"},
                                           {"reset", "forget"},
                                           {"pin", "pin"},
                                           {"declare", "declare"},
                                           {"reset", "reset"}};
    const char *order = NULL;
    for (size_t i = is_site ? 2 : 0; i < (is_site ? 5U : 2U); i++)
        order = strcmp(verbs[i][0], verb) == 0 ? verbs[i][1] : order;
    if (order == NULL)
        return NULL;
    if (is_site && json_is_null(json_object_get(body, "tier")))
        order = "unpin";
    json_t *request = json_copy((json_t *)(uintptr_t)body);
    json_object_set_new(request, "do", json_string(order));
    json_object_set_new(request, is_site ? "site" : "tunable",
                        is_site ? json_integer(strtoll(name, NULL, 10)) : json_string(name));
    json_object_set(request, "row", json_object_get(body, "key"));
    return request;
}

/* Has the worker do it, and notes that. NULL: `error` says why it has not. */
static json_t *http_obey(int pid, json_t *order, char error[200], bool *gone)
{
    json_t *entry = json_pack("{s:i, s:O, s:s, s:s}", "worker", pid, "request", order, "verdict",
                              "ordered", "why", "a client asked for it");
    json_t *answer = workers_ask(pid, order, error, gone);
    if (answer != NULL)
        journal_add(json_incref(entry));
    json_decref(entry);
    return answer;
}

/* PID:NAME/VERB; NAME is a site's number or a tunable's name. */
static enum MHD_Result http_put_site(http_request *request)
{
    char name[NAME_ROOM], error[200];
    int pid = 0, at = 0;
    bool gone;
    const char *id = request->rest, *slash = strrchr(id, '/');
    if (slash == NULL || sscanf(id, "%d:%n", &pid, &at) != 1 || at == 0 || pid <= 0 ||
        slash <= id + at || slash - id - at >= NAME_ROOM)
        return http_problem(request, 404, "no such site");
    snprintf(name, sizeof name, "%.*s", (int)(slash - id - at), id + at);
    json_t *order = http_order(request->body, slash + 1, name);
    if (order == NULL)
        return http_problem(request, 404,
                            "there is: pin, declare, reset of a site; knob, reset of a tunable");
    json_t *answer = http_obey(pid, order, error, &gone);
    return answer != NULL ? http_json(request, 200, answer)
                          : http_problem(request, gone ? 404 : 422, error);
}

/* Of one worker, or of all. */
static enum MHD_Result http_put_setting(http_request *request)
{
    json_t *value = json_object_get(request->body, "value"), *facts;
    json_t *worker = json_object_get(request->body, "worker");
    json_t *list = json_is_number(value) ? workers_seen() : NULL;
    size_t i;
    int done = 0, asked = 0;
    char error[200] = "no worker";
    json_array_foreach(list, i, facts)
    {
        bool gone;
        json_t *pid = json_object_get(facts, "pid");
        if (worker != NULL && !json_equal(worker, pid))
            continue;
        json_t *order =
            json_pack("{s:s, s:s, s:O}", "do", "set", "key", request->rest, "value", value);
        json_t *answer = http_obey((int)json_integer_value(pid), order, error, &gone);
        asked++;
        done += answer != NULL;
        json_decref(answer);
    }
    json_decref(list);
    if (!json_is_number(value))
        return http_problem(request, 400, "\"value\" is no number");
    return done > 0 ? http_json(request, 200, json_pack("{s:i}", "workers", done))
                    : http_problem(request, asked > 0 ? 422 : 404, error);
}

static enum MHD_Result http_put_profile(http_request *request)
{
    if (!http_has_profile)
        return http_problem(request, 409, "the service was started without --profile");
    if (request->count == 0)
        return http_problem(request, 422, "no text");
    if (profile_put(request->bytes, request->count))
        return http_json(request, 200, json_pack("{s:i}", "bytes", (int)request->count));
    return http_problem(request, 422, tide_error_message());
}

static enum MHD_Result http_tune(http_request *request)
{
    char error[200];
    if (!json_is_integer(json_object_get(request->body, "worker")))
        return http_problem(request, 400, "\"worker\" is no number of a process");
    return tune_begin(request->body, error)
               ? http_json(request, 202, json_pack("{s:b}", "running", 1))
               : http_problem(request, 409, error);
}

/* ---- requests ----------------------------------------------------------------------------- */

/* A path that ends in a slash stands for all below it. The profile is text, other bodies are JSON. */
static const struct {
    const char *method, *path;
    enum MHD_Result (*answer)(http_request *request);
} http_routes[] = {{"GET", "/", http_get_file},
                   {"GET", "/page.js", http_get_file},
                   {"GET", "/chart.js", http_get_file},
                   {"GET", "/workers", http_get_view},
                   {"GET", "/sites", http_get_view},
                   {"GET", "/sites/", http_get_site},
                   {"GET", "/settings", http_get_view},
                   {"GET", "/journal", http_get_journal},
                   {"GET", "/events", http_get_events},
                   {"GET", "/metrics", http_get_metrics},
                   {"GET", "/profile", http_get_profile},
                   {"PUT", "/sites/", http_put_site},
                   {"PUT", "/settings/", http_put_setting},
                   {"PUT", "/profile", http_put_profile},
                   {"POST", "/tune", http_tune}};

static enum MHD_Result http_route(http_request *request, const char *method, const char *url)
{
    bool is_path = false;
    for (size_t i = 0; i < sizeof http_routes / sizeof *http_routes; i++) {
        size_t length = strlen(http_routes[i].path);
        bool below = length > 1 && http_routes[i].path[length - 1] == '/';
        if (strncmp(url, http_routes[i].path, length) != 0 || (!below && url[length] != '\0'))
            continue;
        request->path = url;
        request->rest = url + length;
        if (strcmp(method, http_routes[i].method) == 0)
            return http_routes[i].answer(request);
        is_path = true;
    }
    return http_problem(request, is_path ? 405 : 404,
                        is_path ? "this path has no such method"
                                : "there is: / /workers /sites /settings /journal /events /metrics "
                                  "/profile /tune");
}

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

static void http_collect(http_request *request, const char *bytes, size_t count, size_t most)
{
    if (request->refused != 0)
        return;
    char *grown =
        request->count + count <= most ? realloc(request->bytes, request->count + count) : NULL;
    if (grown == NULL) {
        request->refused = 413;
        return;
    }
    memcpy(grown + request->count, bytes, count);
    request->bytes = grown;
    request->count += count;
}

/* A whole request. */
static enum MHD_Result http_serve(http_request *request, const char *method, const char *url)
{
    json_error_t wrong;
    if (request->refused == 401)
        return http_problem(request, 401, "what changes something wants the token");
    if (request->refused == 413)
        return http_problem(request, 413, "64 KiB at most, of a profile 4 MiB");
    if (request->refused == 405)
        return http_problem(request, 405, "GET, PUT and POST are");
    if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)
        return http_route(request, "GET", url);
    if (strcmp(url, "/profile") != 0) {
        request->body = json_loadb(request->bytes != NULL ? request->bytes : "", request->count,
                                   JSON_REJECT_DUPLICATES, &wrong);
        if (!json_is_object(request->body))
            return http_problem(request, 400,
                                request->body == NULL ? wrong.text : "no JSON object");
    }
    return http_route(request, method, url);
}

static enum MHD_Result http_handle(void *unused, struct MHD_Connection *connection, const char *url,
                                   const char *method, const char *version, const char *bytes,
                                   size_t *count, void **state)
{
    (void)unused, (void)version;
    http_request *request = *state;
    if (request == NULL) {
        bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
        bool changes = strcmp(method, "PUT") == 0 || strcmp(method, "POST") == 0;
        *state = request = calloc(1, sizeof *request);
        if (request == NULL)
            return MHD_NO;
        request->connection = connection;
        if (!reads)
            request->refused = !changes ? 405 : http_has_token(connection) ? 0 : 401;
        return MHD_YES;
    }
    if (*count == 0)
        return http_serve(request, method, url);
    http_collect(request, bytes, *count, strcmp(url, "/profile") == 0 ? PROFILE_MAX : BODY_MAX);
    *count = 0;
    return MHD_YES;
}

static void http_ended(void *unused, struct MHD_Connection *connection, void **state,
                       enum MHD_RequestTerminationCode code)
{
    (void)unused, (void)connection, (void)code;
    http_request *request = *state;
    if (request == NULL)
        return;
    json_decref(request->body);
    free(request->bytes);
    free(request);
    *state = NULL;
}

bool http_start(const char *address, uint16_t port, const char *token, bool has_profile)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    http_token = token;
    http_has_profile = has_profile;
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
    events_stop();
    MHD_stop_daemon(http_daemon);
}

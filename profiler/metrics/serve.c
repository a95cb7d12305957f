/* SPDX-License-Identifier: MIT */
/* Answers to GET by HTTP. */
#define _GNU_SOURCE
#include "profiler/metrics/serve.h"

#include "profiler/tool/tool.h"

#ifndef TIDE_HAVE_MICROHTTPD

int tide_serve(const char *where, const char *const *paths, tide_serve_answer *answer, void *user)
{
    (void)where, (void)paths, (void)answer, (void)user;
    return tool_complain(TOOL_NO,
                         "this tidepool was built without libmicrohttpd, so it serves nothing");
}

#else

#include <microhttpd.h>
#include <netdb.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/memory_stream.h"

enum { SERVE_CLIENTS = 32, SERVE_SECONDS = 15, SERVE_ADDRESS = 64 };

typedef struct serve_place {
    struct sockaddr_storage address;
    char text[SERVE_ADDRESS]; /* of the address, in brackets if of IPv6 */
    int port;
    bool loopback;
} serve_place;

typedef struct serve_job {
    const char *const *paths;
    tide_serve_answer *answer;
    void *user;
    bool loopback;
} serve_job;

/* ---- where ---- */

/* "[ADDRESS:]PORT"; an address of IPv6 stands in brackets. */
static bool serve_read_place(const char *where, serve_place *place)
{
    struct addrinfo *found,
        numbers = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    const char *colon = strrchr(where, ':'), *port = colon != NULL ? colon + 1 : where;
    char address[SERVE_ADDRESS] = "127.0.0.1", *bare = address;
    if (colon != NULL && colon != where)
        snprintf(address, sizeof address, "%.*s", (int)(colon - where), where);
    if (strcmp(address, "localhost") == 0)
        snprintf(address, sizeof address, "127.0.0.1");
    snprintf(place->text, sizeof place->text, "%s", address);
    if (address[0] == '[' && address[strlen(address) - 1] == ']') {
        address[strlen(address) - 1] = '\0';
        bare++;
    }
    place->port = (int)strtol(port, NULL, 10);
    if (place->port > 65535 || getaddrinfo(bare, port, &numbers, &found) != 0)
        return false;
    memcpy(&place->address, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    place->loopback = strncmp(bare, "127.", 4) == 0 || strcmp(bare, "::1") == 0;
    return true;
}

/* ---- one request ---- */

/* A browser may have been told by somebody's name server that a name of theirs is 127.0.0.1. */
static bool serve_is_for_us(const serve_job *job, const char *host)
{
    static const char *const ours[] = {"localhost", "127.", "[::1]"};
    for (size_t i = 0; job->loopback && host != NULL && i < sizeof ours / sizeof *ours; i++) {
        size_t length = strlen(ours[i]);
        const char *rest = host + length;
        if (strncasecmp(host, ours[i], length) == 0 &&
            (i == 1 ? strspn(rest, "0123456789.:") == strlen(rest) : *rest == 0 || *rest == ':'))
            return true;
    }
    return !job->loopback || host == NULL;
}

static enum MHD_Result serve_send(struct MHD_Connection *connection, int status, char *bytes,
                                  size_t count, const char *type)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(count, bytes, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(bytes);
        return MHD_NO;
    }
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    (void)MHD_add_response_header(response, "X-Frame-Options", "DENY");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    enum MHD_Result result = MHD_queue_response(connection, (unsigned)status, response);
    MHD_destroy_response(response);
    return result;
}

static bool serve_knows(const serve_job *job, const char *path)
{
    for (const char *const *known = job->paths; *known != NULL; known++) {
        if (strcmp(*known, path) == 0)
            return true;
    }
    return false;
}

static int serve_write(const serve_job *job, struct MHD_Connection *connection, const char *path,
                       const char *method, FILE *out, const char **type)
{
    const char *host =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    int status = MHD_HTTP_OK;
    *type = "text/plain; charset=utf-8";
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        status = MHD_HTTP_METHOD_NOT_ALLOWED;
    else if (!serve_is_for_us(job, host))
        status = MHD_HTTP_FORBIDDEN;
    else if (!serve_knows(job, path))
        status = MHD_HTTP_NOT_FOUND;
    if (status != MHD_HTTP_OK) {
        fprintf(out, "%d: this serves %s\n", status, job->paths[0]);
        return status;
    }
    return job->answer(path, out, type, job->user);
}

static enum MHD_Result serve_request(void *user, struct MHD_Connection *connection,
                                     const char *path, const char *method, const char *version,
                                     const char *upload, size_t *upload_size, void **state)
{
    static int begun;
    char *bytes = NULL;
    const char *type;
    size_t count = 0;
    (void)version, (void)upload;
    if (*state == NULL) { /* headers only: the answer is wanted at the next call */
        *state = &begun;
        return MHD_YES;
    }
    if (*upload_size != 0) {
        *upload_size = 0; /* a body is read and forgotten */
        return MHD_YES;
    }
    FILE *out = tide_memory_stream_open(&bytes, &count);
    if (out == NULL)
        return MHD_NO;
    int status = serve_write(user, connection, path, method, out, &type);
    if (!tide_memory_stream_close(out, &bytes)) {
        free(bytes);
        return MHD_NO;
    }
    return serve_send(connection, status, bytes, count, type);
}

/* ---- until a signal ---- */

int tide_serve(const char *where, const char *const *paths, tide_serve_answer *answer, void *user)
{
    serve_place place = {0};
    serve_job job = {.paths = paths, .answer = answer, .user = user};
    sigset_t ends;
    int got;
    tide_assert(paths[0] != NULL);
    if (!serve_read_place(where, &place))
        return tool_complain(TOOL_USAGE, "'%.60s' is no [ADDRESS:]PORT", where);
    job.loopback = place.loopback;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL); /* before there is a thread, which inherits this */
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO |
                     (place.address.ss_family == AF_INET6 ? MHD_USE_IPv6 : 0);
    struct MHD_Daemon *daemon = MHD_start_daemon(
        flags, (uint16_t)place.port, NULL, NULL, serve_request, &job, MHD_OPTION_SOCK_ADDR,
        (struct sockaddr *)&place.address, MHD_OPTION_CONNECTION_LIMIT, (unsigned)SERVE_CLIENTS,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SERVE_SECONDS, MHD_OPTION_END);
    if (daemon == NULL)
        return tool_complain(TOOL_NO, "%.80s: cannot be served there; is the port taken?", where);
    const union MHD_DaemonInfo *bound = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    printf("http://%s:%u%s\n", place.text, bound != NULL ? bound->port : (unsigned)place.port,
           paths[0]);
    fflush(stdout);
    (void)sigwait(&ends, &got);
    MHD_stop_daemon(daemon);
    return TOOL_OK;
}

#endif

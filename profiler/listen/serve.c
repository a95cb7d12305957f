/* SPDX-License-Identifier: MIT */
/* The thread that serves: it waits for its clients, answers what has come of each, and tells those
 * who follow what has happened. A client is waited for for a moment, and then dropped. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "profiler/listen/server.h"
#include "runtime/base/assert.h"

enum {
    CLIENTS = 16,
    FOLLOW_MS = 50, /* has something happened?                         */
    REST_MS = 200   /* there is no descriptor left, or none is allowed */
};

const tide_listen_host *listen_host;
static listen_client serve_clients[CLIENTS]; /* the thread's own */
static int serve_door;                       /* atomic; 0: none  */
static bool serve_stopped;                   /* atomic           */
static pthread_t serve_thread;

/* A forked child closes what is there: so a number is forgotten before it is closed. */
static void serve_close(int *number)
{
    int closed = __atomic_exchange_n(number, 0, __ATOMIC_RELAXED);
    if (closed != 0)
        close(closed);
}

static void serve_end_client(listen_client *client)
{
    serve_close(&client->number);
    client->length = 0;
    client->follows = false;
}

static bool serve_is_stopped(void)
{
    return __atomic_load_n(&serve_stopped, __ATOMIC_ACQUIRE);
}

bool listen_send(const listen_client *client, const char *bytes, size_t count)
{
    tide_assert(client->number != 0);
    while (count > 0) {
        ssize_t wrote = send(client->number, bytes, count, MSG_NOSIGNAL);
        if (wrote <= 0)
            return false; /* signals are blocked */
        bytes += wrote;
        count -= (size_t)wrote;
    }
    return true;
}

/* Reads what has come and answers its whole lines. False: it goes. */
static bool serve_answer(listen_client *client)
{
    size_t done = 0;
    ssize_t got = recv(client->number, client->line + client->length,
                       LISTEN_LINE_MAX - 1 - client->length, MSG_DONTWAIT);
    if (got <= 0)
        return got < 0 && errno == EAGAIN;
    client->length += (size_t)got;
    for (char *end; !serve_is_stopped(); done = (size_t)(end + 1 - client->line)) {
        end = memchr(client->line + done, '\n', client->length - done);
        if (end == NULL)
            break;
        *end = '\0';
        if (!listen_request_answer(client, client->line + done,
                                   (size_t)(end - client->line) - done))
            return false;
    }
    client->length -= done;
    memmove(client->line, client->line + done, client->length);
    if (client->length < LISTEN_LINE_MAX - 1)
        return true;
    (void)listen_request_refuse(client, "a line of more than 64 KiB");
    return false;
}

/* Who cannot be let in, for there is no descriptor left, goes on waiting; so does the thread. */
static void serve_accept(void)
{
    static const struct timeval patience = {.tv_sec = LISTEN_PATIENCE_S};
    int place = 0, number = accept4(serve_door, NULL, NULL, SOCK_CLOEXEC);
    if (number < 0) {
        (void)poll(NULL, 0, errno == EAGAIN || errno == ECONNABORTED ? 0 : REST_MS);
        return;
    }
    while (place < CLIENTS && serve_clients[place].number != 0)
        place++;
    if (place == CLIENTS) {
        static const char why[] = "{\"error\":\"too many clients: 16 at most\"}\n";
        (void)send(number, why, sizeof why - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        close(number);
        return;
    }
    (void)setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    __atomic_store_n(&serve_clients[place].number, number, __ATOMIC_RELAXED);
}

static void *serve_run(void *unused)
{
    (void)prctl(PR_SET_NAME, "tide-listen");
    /* It takes the processor from no thread that runs. */
    (void)sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
    while (!serve_is_stopped()) {
        struct pollfd look[CLIENTS + 1] = {[CLIENTS] = {serve_door, POLLIN, 0}};
        int wait = -1;
        for (int i = 0; i < CLIENTS; i++) {
            const listen_client *client = &serve_clients[i];
            look[i] = (struct pollfd){client->number != 0 ? client->number : -1, POLLIN, 0};
            wait = client->follows ? FOLLOW_MS : wait;
        }
        if (poll(look, CLIENTS + 1, wait) < 0)
            (void)poll(NULL, 0, REST_MS); /* RLIMIT_NOFILE is lower than so many */
        for (int i = 0; i < CLIENTS; i++) {
            listen_client *client = &serve_clients[i];
            bool stays = look[i].revents == 0 || serve_answer(client);
            if (stays && client->follows)
                stays = listen_ring_tell(client);
            if (!stays)
                serve_end_client(client);
        }
        if (look[CLIENTS].revents != 0 && !serve_is_stopped())
            serve_accept();
    }
    return unused;
}

/* ---- the component's table ---------------------------------------------------------------- */

static void serve_clean_up(void)
{
    for (int i = 0; i < CLIENTS; i++)
        serve_end_client(&serve_clients[i]);
    serve_close(&serve_door);
}

/* Signals are for the program's own threads. */
static bool serve_begin(const tide_listen_host *host, const char *folder, char *error, size_t room)
{
    sigset_t all, before;
    /* An event of the last time may still be being heard. */
    __atomic_store_n(&listen_host, host, __ATOMIC_RELEASE);
    __atomic_store_n(&serve_stopped, false, __ATOMIC_RELEASE);
    int door = listen_socket_open(folder, error, room);
    if (door < 0)
        return false;
    __atomic_store_n(&serve_door, door, __ATOMIC_RELAXED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = host->create_thread(&serve_thread, serve_run);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed == 0)
        return true;
    listen_socket_remove_name();
    serve_clean_up();
    snprintf(error, room, "the system gives no thread");
    return false;
}

/* A process that exits does not wait for the thread, which may wait for a lock of whoever exits. */
static void serve_end(bool waits)
{
    __atomic_store_n(&serve_stopped, true, __ATOMIC_RELEASE);
    listen_socket_remove_name();
    (void)shutdown(serve_door, SHUT_RDWR); /* which wakes the thread */
    if (!waits) {
        (void)pthread_detach(serve_thread);
        return;
    }
    (void)pthread_join(serve_thread, NULL);
    serve_clean_up();
}

/* The thread was somewhere in all this. */
static void serve_forget(void)
{
    listen_socket_forget_name();
    serve_clean_up();
    listen_ring_forget();
}

#ifdef TIDE_LISTEN_ALONE
/* The library's way to die, of which this links nothing. */
void tide_assert_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "tidepool-listen: %s:%d: %s\n", file, line, what);
    abort();
}
#endif

__attribute__((visibility("default")))
const tide_listen_component tide_listen_table = {.interface = TIDE_LISTEN_INTERFACE,
                                                 .begin = serve_begin,
                                                 .end = serve_end,
                                                 .hear = listen_ring_hear,
                                                 .forget = serve_forget};

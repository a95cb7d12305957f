/* SPDX-License-Identifier: MIT */
/* The thread that serves: one look at every client, then it waits. Nothing in it blocks but
 * that. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "profiler/listen/server.h"
#include "profiler/listen/socket.h"
#include "runtime/base/assert.h"

enum {
    LOOK_MS = 1000,  /* has the program closed the socket? */
    FOLLOW_MS = 50,  /* has something happened?            */
    REST_MS = 200,   /* the system lets nobody in, or waits for none: no descriptor is left */
    ACCEPTS_MAX = 16 /* in one look: who calls and hangs up must not keep the others waiting */
};

/* Who calls and hangs up as fast as it can would keep this thread, and itself, always at work, and
 * so cost the program a processor. So no more than these are let in; the others wait in the queue,
 * where they cost nothing, and are let in a moment later. */
enum { ROUND_MS = 32, ROUND_ACCEPTS = 32 };

/* The same of who asks and asks: this thread has a quarter of a processor's time, and rests where
 * it has used more. What it did not use it may use later, up to a bound. */
enum { SHARE = 4, SAVED_US = 100000, REST_MOST_MS = 50 };

/* And of who asks for much at once: a look answers no more of one client than these, and breaks off
 * when it has taken its time. The next one goes on behind it, so each client has its turn. */
enum { TURN_REQUESTS = 4, LOOK_US = 10000 };

typedef struct serve_share {
    int64_t left_us;          /* below 0: it is to rest                */
    int64_t wall_us, used_us; /* when this was looked at last */
} serve_share;

const tide_listen_host *listen_host;
static listen_client serve_clients[LISTEN_CLIENTS]; /* the thread's own */
static int64_t serve_door_rests_ms;                 /* until then nobody is let in */
static int64_t serve_round_ms;                      /* when the round began, and ... */
static int serve_round_accepts;                     /* ... so many came in it        */
static int serve_turn;                              /* who is looked at next         */
static bool serve_stopped;                          /* atomic           */

static int64_t serve_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t serve_clock_us(clockid_t clock)
{
    struct timespec now = {0};
    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* How long to rest now, in ms. */
static int serve_rest(serve_share *share)
{
    int64_t wall = serve_clock_us(CLOCK_MONOTONIC), used = serve_clock_us(CLOCK_THREAD_CPUTIME_ID);
    tide_assert(wall >= share->wall_us && used >= share->used_us);
    share->left_us += (wall - share->wall_us) / SHARE - (used - share->used_us);
    share->left_us = share->left_us < SAVED_US ? share->left_us : SAVED_US;
    share->wall_us = wall;
    share->used_us = used;
    int64_t ms = share->left_us < 0 ? -share->left_us * SHARE / 1000 + 1 : 0;
    return ms < REST_MOST_MS ? (int)ms : REST_MOST_MS;
}

static bool serve_is_to_stop(void)
{
    return __atomic_load_n(&serve_stopped, __ATOMIC_ACQUIRE);
}

/* `until`: of this thread's own processor time. */
static bool serve_look_is_over(int64_t until)
{
    return serve_is_to_stop() || serve_clock_us(CLOCK_THREAD_CPUTIME_ID) >= until;
}

static void serve_end_client(int place)
{
    listen_client *client = &serve_clients[place];
    tide_assert(client->connected);
    listen_output_free(&client->output);
    client->connected = client->follows = client->silent = client->ends = false;
    client->length = 0;
    listen_socket_close(place);
}

/* ---- reading ------------------------------------------------------------------------------ */

static bool serve_hears(const listen_client *client)
{
    return !client->ends && client->output.count < LISTEN_BACKLOG;
}

/* Is there more of it to be read? */
static bool serve_listens(const listen_client *client)
{
    return serve_hears(client) && !client->silent;
}

static bool serve_has_line(const listen_client *client)
{
    return memchr(client->line, '\n', client->length) != NULL;
}

/* Answers whole lines that have come, as many as a turn has and the client takes the answers of.
 * The others wait. False: it goes. */
static bool serve_answer_lines(listen_client *client, int64_t until)
{
    size_t done = 0;
    bool good = true, over = false;
    for (int i = 0; i < TURN_REQUESTS && good && !over && serve_hears(client); i++) {
        char *start = client->line + done;
        char *end = memchr(start, '\n', client->length - done);
        if (end == NULL)
            break;
        *end = '\0';
        good = listen_request_answer(client, start, (size_t)(end - start));
        done = (size_t)(end + 1 - client->line);
        over = serve_look_is_over(until);
    }
    tide_assert(done <= client->length);
    memmove(client->line, client->line + done, client->length - done);
    client->length -= done;
    if (good && !client->ends && client->length == LISTEN_LINE_MAX - 1 && !serve_has_line(client)) {
        good = listen_request_refuse(client, "a line of more than 64 KiB", NULL);
        client->ends = true;
    }
    if (client->silent && !client->follows && !serve_has_line(client))
        client->ends = true; /* who follows is still told, until it hangs up */
    return good;
}

/* Whoever has said all may still want the answers to it. False: the connection is broken. */
static bool serve_read(int number, listen_client *client)
{
    size_t room = LISTEN_LINE_MAX - 1 - client->length;
    tide_assert(!client->silent);
    if (room == 0)
        return true;
    ssize_t got = recv(number, client->line + client->length, room, MSG_DONTWAIT);
    client->length += got > 0 ? (size_t)got : 0;
    client->silent = got == 0;
    return got >= 0 || errno == EAGAIN || errno == EINTR;
}

/* ---- writing ------------------------------------------------------------------------------ */

/* False: it is gone, or takes nothing for too long. */
static bool serve_write(int number, listen_client *client)
{
    int64_t now = serve_now_ms();
    while (client->output.count > 0) {
        ssize_t wrote = send(number, client->output.bytes + client->output.first,
                             client->output.count, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0 && errno != EAGAIN)
            return false;
        if (wrote < 0)
            return now - client->taken_ms < LISTEN_PATIENCE_MS;
        listen_output_drop(&client->output, (size_t)wrote);
        client->taken_ms = now;
    }
    client->taken_ms = now;
    return !client->ends;
}

/* ---- one look ----------------------------------------------------------------------------- */

/* Events that came before a client followed from now on are not missed by it, though their numbers
 * are lower than the next: nobody may have listened then. */
static bool serve_tell(listen_client *client)
{
    if (client->fresh)
        client->fresh = !listen_ring_pass_gap(&client->told);
    return listen_ring_tell(&client->output, &client->told, true);
}

/* `ready`: what poll said of it. It is answered once at least. */
static void serve_look_at_client(int place, short ready, int64_t until)
{
    listen_client *client = &serve_clients[place];
    int number = listen_socket_get(place);
    bool stays = number >= 0 && !(client->silent && client->follows && (ready & POLLHUP) != 0);
    if (stays && (ready & (POLLIN | POLLHUP | POLLERR)) != 0 && serve_listens(client))
        stays = serve_read(number, client);
    stays = stays && serve_answer_lines(client, until);
    if (stays && client->follows)
        stays = serve_tell(client);
    stays = stays && serve_write(number, client);
    if (!stays)
        serve_end_client(place);
}

/* Whom it does not come to is looked at first the next time: what poll said of it poll says again,
 * and a line that waits makes that time come at once. */
static void serve_look_at_clients(const struct pollfd look[LISTEN_SOCKETS], bool any)
{
    int64_t until = serve_clock_us(CLOCK_THREAD_CPUTIME_ID) + LOOK_US;
    bool over = false;
    for (int i = 0; i < LISTEN_CLIENTS && !over; i++) {
        int place = serve_turn;
        tide_assert(place >= 0 && place < LISTEN_CLIENTS);
        serve_turn = (place + 1) % LISTEN_CLIENTS;
        if (!serve_clients[place].connected)
            continue;
        serve_look_at_client(place, any ? look[place].revents : 0, until);
        over = serve_look_is_over(until);
    }
}

/* Returns how many more may come in this round. */
static int serve_begin_round(int64_t now)
{
    if (now - serve_round_ms >= ROUND_MS) {
        serve_round_ms = now;
        serve_round_accepts = 0;
    }
    tide_assert(serve_round_accepts <= ROUND_ACCEPTS);
    return ROUND_ACCEPTS - serve_round_accepts;
}

/* Who cannot be let in goes on waiting, and poll would say so at once, again and again. */
static void serve_accept_clients(void)
{
    listen_arrival arrival = LISTEN_SENT_OFF;
    int64_t now = serve_now_ms();
    int left = serve_begin_round(now), most = left < ACCEPTS_MAX ? left : ACCEPTS_MAX;
    for (int i = 0; i < most && arrival != LISTEN_NOBODY && arrival != LISTEN_CANNOT; i++) {
        int place = -1;
        arrival = listen_socket_accept(&place);
        serve_round_accepts += arrival == LISTEN_CAME || arrival == LISTEN_SENT_OFF;
        if (arrival != LISTEN_CAME)
            continue;
        tide_assert(place >= 0 && !serve_clients[place].connected);
        serve_clients[place].connected = true;
        serve_clients[place].taken_ms = now;
    }
    if (arrival == LISTEN_CANNOT)
        serve_door_rests_ms = now + REST_MS;
    else if (serve_round_accepts == ROUND_ACCEPTS)
        serve_door_rests_ms = serve_round_ms + ROUND_MS;
}

/* Whom to wait for. Returns how long. */
static int serve_prepare_look(struct pollfd look[LISTEN_SOCKETS])
{
    int64_t left = serve_door_rests_ms - serve_now_ms();
    bool rests = left > 0;
    int wait = rests ? (int)left : LOOK_MS;
    tide_assert(left <= REST_MS);
    look[LISTEN_DOOR] = (struct pollfd){rests ? -1 : listen_socket_get(LISTEN_DOOR), POLLIN, 0};
    for (int i = 0; i < LISTEN_CLIENTS; i++) {
        const listen_client *client = &serve_clients[i];
        look[i] = (struct pollfd){-1, 0, 0};
        if (!client->connected)
            continue;
        look[i].fd = listen_socket_get(i);
        look[i].events = (short)((serve_listens(client) ? POLLIN : 0) |
                                 (client->output.count > 0 ? POLLOUT : 0));
        if (serve_hears(client) && serve_has_line(client))
            wait = 0; /* asked already: poll does not know of it */
        else if (client->follows && wait > FOLLOW_MS)
            wait = FOLLOW_MS;
    }
    return wait;
}

/* A program may have let itself have fewer descriptors than these are (RLIMIT_NOFILE): then the
 * system refuses to wait for them. So they are looked at as if each had something, now and then. */
static int serve_poll(struct pollfd look[LISTEN_SOCKETS], int wait)
{
    int ready = poll(look, LISTEN_SOCKETS, wait);
    if (ready >= 0 || errno == EINTR)
        return ready;
    (void)poll(NULL, 0, wait < REST_MS ? wait : REST_MS);
    for (int i = 0; i < LISTEN_SOCKETS; i++)
        look[i].revents = look[i].fd >= 0 ? look[i].events : 0;
    return LISTEN_SOCKETS;
}

static void serve_clients_until_stopped(void)
{
    serve_share share = {.left_us = SAVED_US,
                         .wall_us = serve_clock_us(CLOCK_MONOTONIC),
                         .used_us = serve_clock_us(CLOCK_THREAD_CPUTIME_ID)};
    while (!serve_is_to_stop()) {
        struct pollfd look[LISTEN_SOCKETS];
        int rest = serve_rest(&share);
        if (rest > 0) {
            (void)poll(NULL, 0, rest);
            continue;
        }
        int wait = serve_prepare_look(look), ready = serve_poll(look, wait);
        if (serve_is_to_stop())
            return;
        serve_look_at_clients(look, ready > 0);
        if (ready > 0 && (look[LISTEN_DOOR].revents & POLLIN) != 0)
            serve_accept_clients();
    }
}

/* ---- the component's table ---------------------------------------------------------------- */

static bool serve_open(const tide_listen_host *host, const char *folder, char *error, size_t room)
{
    __atomic_store_n(&listen_host, host, __ATOMIC_RELEASE); /* the process may end just now */
    __atomic_store_n(&serve_stopped, false, __ATOMIC_RELEASE);
    return listen_socket_open(folder, error, room);
}

static void serve_stop(void)
{
    __atomic_store_n(&serve_stopped, true, __ATOMIC_RELEASE);
    if (__atomic_load_n(&listen_host, __ATOMIC_ACQUIRE) != NULL)
        listen_socket_shut();
}

/* A door that was made anew while `stop` took the name away has a name again. */
static void serve_close(void)
{
    listen_socket_shut();
    for (int i = 0; i < LISTEN_CLIENTS; i++)
        if (serve_clients[i].connected)
            serve_end_client(i);
    listen_socket_close(LISTEN_DOOR);
}

/* The thread was somewhere in all this: what it had allocated stays where it is. */
static void serve_forget(void)
{
    listen_socket_forget();
    listen_ring_forget();
    memset(serve_clients, 0, sizeof serve_clients);
    serve_door_rests_ms = serve_round_ms = serve_round_accepts = serve_turn = 0;
}

__attribute__((visibility("default")))
const tide_listen_component tide_listen_table = {.interface = TIDE_LISTEN_INTERFACE,
                                                 .open = serve_open,
                                                 .serve = serve_clients_until_stopped,
                                                 .stop = serve_stop,
                                                 .close = serve_close,
                                                 .hear = listen_ring_hear,
                                                 .forget = serve_forget};

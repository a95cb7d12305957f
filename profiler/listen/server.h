/* SPDX-License-Identifier: MIT */
/* What the parts of the component share. Only its own thread is in them, unless they say so. */
#ifndef TIDEPOOL_PROFILER_LISTEN_SERVER_H
#define TIDEPOOL_PROFILER_LISTEN_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jit/listen/component.h"

enum {
    LISTEN_LINE_MAX = 64 << 10, /* bytes of a request                                           */
    LISTEN_PATIENCE_S = 2,      /* a client takes nothing for so long: then it is dropped       */
    LISTEN_EVENTS = 4096        /* kept                                                         */
};

/* The library; set by beginning, before there is a thread that serves. Atomic for who hears. */
extern const tide_listen_host *listen_host;

typedef struct listen_client {
    int number; /* its descriptor; 0: there is no such client. Atomic: a forked child closes it */
    bool follows;
    uint64_t told; /* serial of the last event that it was told */
    size_t length; /* of what came of a line                           */
    char line[LISTEN_LINE_MAX];
} listen_client;

/* Sends all of that, waiting for the client. False: it is gone, or takes nothing for too long. No
 * lock is held. */
bool listen_send(const listen_client *client, const char *bytes, size_t count);

/* Answers one line (a 0 behind it). False: the answer cannot be made or sent; the client goes. */
bool listen_request_answer(listen_client *client, const char *line, size_t length);

/* {"error":…}. */
bool listen_request_refuse(const listen_client *client, const char *what);

/* Makes the folder and a socket with the process's name that listens. -1 with a line in `error`. */
int listen_socket_open(const char *folder, char *error, size_t room);

/* Takes the name away; in a forked child it is the parent's, and only forgotten. */
void listen_socket_remove_name(void);
void listen_socket_forget_name(void);

/* Keeps an event as a line. Any thread, one at a time. */
void listen_ring_hear(const tide_event *event);

/* Sends the events after client->told and moves that on; a line of how many are missing comes
 * before each that does not follow the one before. False: as above. */
bool listen_ring_tell(listen_client *client);

/* In a forked child, whose thread may have been in here: the events are the parent's. */
void listen_ring_forget(void);

#endif

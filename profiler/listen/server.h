/* SPDX-License-Identifier: MIT */
/* What the parts of the component share. */
#ifndef TIDEPOOL_PROFILER_LISTEN_SERVER_H
#define TIDEPOOL_PROFILER_LISTEN_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jit/listen/component.h"

enum {
    LISTEN_LINE_MAX = 64 << 10,   /* bytes of a request                                         */
    LISTEN_BACKLOG = 64 << 10,    /* bytes not taken yet, from which on a client is not heard   */
    LISTEN_ANSWER_MAX = 64 << 20, /* bytes of one answer                                        */
    LISTEN_PATIENCE_MS = 10000,   /* without taking any of them: then it is dropped             */
    LISTEN_EVENTS = 4096          /* kept                                                       */
};

/* The library; set by opening, before there is a thread. */
extern const tide_listen_host *listen_host;

/* ---- answers: lines on their way to one client ---- */

typedef struct listen_output {
    char *bytes;
    size_t first, count, room; /* from bytes + first, so many wait */
} listen_output;

/* False: no memory, or too much; nothing is added. */
bool listen_output_add(listen_output *output, const char *bytes, size_t count);
void listen_output_drop(listen_output *output, size_t count);
void listen_output_free(listen_output *output);

/* ---- requests ---- */

typedef struct listen_client {
    char line[LISTEN_LINE_MAX];
    size_t length; /* of what came of a line */
    listen_output output;
    int64_t taken_ms; /* when it last took something, or nothing waited */
    uint64_t told;    /* a follower: serial of the last event it was told */
    bool fresh;       /* it follows from now on, and was told none yet    */
    bool connected, follows;
    bool silent; /* it says no more; what it said is still answered     */
    bool ends;   /* nothing is answered any more; it goes when it has taken what waits */
} listen_client;

/* Answers one line (a 0 behind it). False: without memory for the answer; the client goes. */
bool listen_request_answer(listen_client *client, const char *line, size_t length);

/* {"error":…}. */
bool listen_request_refuse(listen_client *client, const char *what, const char *code);

/* ---- events ---- */

/* Keeps it as a line. Any thread, one at a time. */
void listen_ring_hear(const tide_event *event);

/* Adds the events after `*told`, until the backlog is full if `bounded`; moves *told on; a line of
 * how many are missing comes before each that does not follow the one before. False: no memory. */
bool listen_ring_tell(listen_output *output, uint64_t *told, bool bounded);

/* Passes over what is missing between `*told` and the next kept event. False: there is none. */
bool listen_ring_pass_gap(uint64_t *told);

/* Serial of the last event; 0: none was heard. */
uint64_t listen_ring_last(void);

/* In a child: the events are the parent's. The lock is held. */
void listen_ring_forget(void);

#endif

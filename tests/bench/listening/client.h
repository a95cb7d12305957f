/* SPDX-License-Identifier: MIT */
/* A client of the socket, in a process of its own. */
#ifndef TIDEPOOL_BENCH_LISTENING_CLIENT_H
#define TIDEPOOL_BENCH_LISTENING_CLIENT_H

#include <stdint.h>
#include <sys/types.h>

typedef enum client_mode {
    CLIENT_NONE,   /* does nothing                                      */
    CLIENT_SCRAPE, /* asks for the facts, and again a second later      */
    CLIENT_ATTACH, /* connects and hangs up, as fast as it can          */
    CLIENT_ASK     /* connects, reads the facts, hangs up, as fast also */
} client_mode;

typedef struct client_tally {
    uint64_t attaches, bytes; /* connections that were made; bytes of answers */
} client_tally;

/* Begins on the socket of this path. */
void client_start(client_mode mode, const char *path);

/* What it did so far. */
client_tally client_look(void);

/* Ends it. What it did. A client that failed ends the program with its words. */
client_tally client_stop(void);

#endif

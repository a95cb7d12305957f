/* SPDX-License-Identifier: MIT */
/* Descriptors of the component: each known by device and inode, for a program may close what it
 * does not know (runtime/base/descriptor.h), and all in one table, for a child closes them. They
 * are made and closed with the host's lock held, so that a fork sees all there are. */
#ifndef TIDEPOOL_PROFILER_LISTEN_SOCKET_H
#define TIDEPOOL_PROFILER_LISTEN_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

enum { LISTEN_CLIENTS = 16, LISTEN_DOOR = LISTEN_CLIENTS, LISTEN_SOCKETS };

/* Makes the folder and a socket with the process's name that listens, removing what the dead have
 * left there. False with a line in `error`. */
bool listen_socket_open(const char *folder, char *error, size_t room);

/* The number behind a place of the table, -1: nothing, or not ours any more. Serving thread
 * only. */
int listen_socket_get(int place);

typedef enum listen_arrival {
    LISTEN_NOBODY,   /* nobody waits                                                  */
    LISTEN_CAME,     /* in the lowest free place                                      */
    LISTEN_SENT_OFF, /* somebody came who may not, or for whom there is no place      */
    LISTEN_CANNOT    /* somebody waits whom the system lets nobody take: no descriptor */
} listen_arrival;

/* Takes a connection; its place if it came. */
listen_arrival listen_socket_accept(int *place);

void listen_socket_close(int place);

/* Takes the socket's name away and shuts it: who waits for it wakes up. Any thread. */
void listen_socket_shut(void);

/* In a child: closes all there are; the lock is held. The names are the parent's. */
void listen_socket_forget(void);

#endif

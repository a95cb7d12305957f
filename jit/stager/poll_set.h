/* SPDX-License-Identifier: MIT */
/* What the service sleeps on: the sockets and processes of all workers, behind one descriptor. */
#ifndef TIDEPOOL_JIT_STAGER_POLL_SET_H
#define TIDEPOOL_JIT_STAGER_POLL_SET_H

#include <stdint.h>

#include "jit/stager/process.h"

/* The descriptor, readable when something happened; -1: none now. */
int tide_poll_set_descriptor(void);

/* False: one line in `error`. */
bool tide_poll_set_add(const tide_process *process, char *error, size_t room);

/* `wanted`: wakes, too, when the worker takes bytes again. */
void tide_poll_set_for_room(const tide_process *process, bool wanted);

/* Takes a descriptor of a worker out, before it is closed; -1 is passed over. */
void tide_poll_set_drop(int descriptor);

/* Sleeps until something happens, at most so long; false: it cannot, and did not. */
bool tide_poll_set_wait(int64_t most_ms);

/* Forgets all. */
void tide_poll_set_close(void);

#endif

/* SPDX-License-Identifier: MIT */
/* What the service sleeps on: the sockets and processes of all helpers, behind one descriptor. */
#ifndef TIDEPOOL_JIT_STAGER_WATCHED_H
#define TIDEPOOL_JIT_STAGER_WATCHED_H

#include <stdint.h>

#include "jit/stager/process.h"

/* The descriptor, readable when something happened; -1: none now. */
int tide_watched_descriptor(void);

/* False: one line in `error`. */
bool tide_watched_add(const tide_helper *process, char *error, size_t room);

/* Whether it is also of interest that a helper takes bytes again. */
void tide_watched_for_room(const tide_helper *process, bool wanted);

/* A descriptor of a helper, before it is closed; -1 is passed over. */
void tide_watched_drop(int descriptor);

/* Sleeps until something happens, at most so long; false: it cannot, and did not. */
bool tide_watched_wait(int64_t most_ms);

/* Forgets all. */
void tide_watched_close(void);

#endif

/* SPDX-License-Identifier: MIT */
/* One look at a process that listens: its events since the last one, then its facts. */
#ifndef TIDEPOOL_PROFILER_RECORD_LOOK_H
#define TIDEPOOL_PROFILER_RECORD_LOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "profiler/record/read.h"
#include "profiler/tool/client.h"

/* What code was asked for: once for each plan of a site. */
enum { TIDE_CODES_MAX = 256 }; /* sites; of more, the first ones */

typedef struct tide_codes {
    struct {
        uint64_t site, generation;
    } asked[TIDE_CODES_MAX];
    size_t count;
} tide_codes;

typedef struct tide_look {
    pid_t pid;
    const char *folder; /* of sockets; NULL: where they always are */
    int timeout_ms;     /* for each answer                         */
    tool_client client;
    int code;          /* of the last look that failed; client.error says why */
    bool open;         /* there is a connection           */
    json_int_t serial; /* of the last event that was seen */
    uint64_t since_ns; /* of the last facts               */
    tide_codes codes;
} tide_look;

/* Calls `visit` with facts where a connection was made, then with events, gaps, facts and code as a
 * record has them. False where the process gives no good answer, or `visit` says so: `client.error`
 * says why, `code` is what a command ends with, the connection is closed, and the next look tries
 * anew, for the process may have executed another program. That one's facts, which have another
 * "since_ns", come before its events, and those from the first on. */
bool tide_look_once(tide_look *look, tide_record_visit *visit, void *user);

void tide_look_end(tide_look *look);

#endif

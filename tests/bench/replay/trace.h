/* SPDX-License-Identifier: MIT */
/* A recorded trace of buffers (tide_buffer_trace), read into memory and checked: `time thread
 * stream acquire|release slot bytes flags`, a line each, lines that begin with # ignored. */
#ifndef TIDEPOOL_REPLAY_TRACE_H
#define TIDEPOOL_REPLAY_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct trace_line {
    bool acquires;
    uint32_t thread;
    uint32_t flags;
    uint32_t slot; /* renumbered from 0, without gaps */
    size_t bytes;
    uint64_t time, stream;
} trace_line;

typedef struct trace {
    trace_line *lines;
    size_t count;
    uint32_t slots;   /* that are used  */
    uint32_t threads; /* the largest number */
    size_t acquires;
    size_t peak; /* most bytes asked for at a time */
} trace;

/* False with a complaint on stderr that names the line. */
bool trace_read(const char *path, trace *out);
void trace_free(trace *t);

#endif

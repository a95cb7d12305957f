/* SPDX-License-Identifier: MIT */
/* The last events, as lines. Who writes one makes its text first, and then has the lock for a
 * moment. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/listen/server.h"
#include "runtime/base/assert.h"
#include "runtime/base/memory_stream.h"

typedef struct ring_line {
    uint64_t serial;
    char *text; /* with its line feed; NULL: none */
    size_t length;
} ring_line;

static ring_line ring_lines[LISTEN_EVENTS]; /* guarded by the host's lock, as is all here */
static uint64_t ring_heard;                 /* events so far: the next goes to this place  */
static uint64_t ring_last;                  /* serial of the last                          */

void listen_ring_hear(const tide_event *event)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = tide_memory_stream_open(&text, &length);
    bool good = out != NULL && listen_host->write_event(out, event) == TIDE_OK;
    good = tide_memory_stream_close(out, &text) && good && length > 0;
    if (!good) {
        free(text); /* those who follow find a gap in the serials */
        return;
    }
    tide_assert(text[length - 1] == '\n');
    listen_host->lock();
    ring_line *line = &ring_lines[ring_heard++ % LISTEN_EVENTS];
    char *old = line->text;
    *line = (ring_line){.serial = event->serial, .text = text, .length = length};
    ring_last = event->serial > ring_last ? event->serial : ring_last;
    listen_host->unlock();
    free(old);
}

uint64_t listen_ring_last(void)
{
    listen_host->lock();
    uint64_t last = ring_last;
    listen_host->unlock();
    return last;
}

/* Locked. The first kept event after `told`; NULL: none. They lie in the order of their serials. */
static const ring_line *ring_find(uint64_t told)
{
    uint64_t low = ring_heard > LISTEN_EVENTS ? ring_heard - LISTEN_EVENTS : 0, high = ring_heard;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (ring_lines[middle % LISTEN_EVENTS].serial > told)
            high = middle;
        else
            low = middle + 1;
    }
    return low < ring_heard ? &ring_lines[low % LISTEN_EVENTS] : NULL;
}

/* The first event after `told`, the text NULL if there is none; a copy, for it may be overwritten
 * as soon as the lock is let go. False: no memory. */
static bool ring_copy_next(uint64_t told, ring_line *out)
{
    *out = (ring_line){0};
    listen_host->lock();
    const ring_line *line = ring_find(told);
    char *copy = line != NULL ? malloc(line->length) : NULL;
    bool good = line == NULL || copy != NULL;
    if (copy != NULL) {
        *out = (ring_line){.serial = line->serial, .text = copy, .length = line->length};
        memcpy(copy, line->text, line->length);
    }
    listen_host->unlock();
    tide_assert(!good || out->text != NULL || out->serial == 0);
    return good;
}

bool listen_ring_pass_gap(uint64_t *told)
{
    listen_host->lock();
    const ring_line *line = ring_find(*told);
    if (line != NULL)
        *told = line->serial - 1;
    listen_host->unlock();
    return line != NULL;
}

static bool ring_tell_one(listen_output *output, uint64_t *told, const ring_line *line)
{
    char gap[64];
    uint64_t missing = line->serial - *told - 1;
    tide_assert(line->serial > *told);
    int bytes = missing > 0 ? snprintf(gap, sizeof gap, "{\"gap\":%" PRIu64 "}\n", missing) : 0;
    if (!listen_output_add(output, gap, (size_t)bytes) ||
        !listen_output_add(output, line->text, line->length))
        return false;
    *told = line->serial;
    return true;
}

bool listen_ring_tell(listen_output *output, uint64_t *told, bool bounded)
{
    bool good = true;
    while (good && (!bounded || output->count < LISTEN_BACKLOG)) {
        ring_line next;
        good = ring_copy_next(*told, &next);
        if (good && next.text == NULL)
            return true;
        good = good && ring_tell_one(output, told, &next);
        free(next.text);
    }
    return good;
}

void listen_ring_forget(void)
{
    memset(ring_lines, 0,
           sizeof ring_lines); /* whose heap the texts are in, as the parent left it */
    ring_heard = ring_last = 0;
}

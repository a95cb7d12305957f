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
    char *text; /* with its line feed */
    size_t length;
} ring_line;

static pthread_mutex_t ring_lock = PTHREAD_MUTEX_INITIALIZER; /* for all here, and for moments */
static ring_line ring_lines[LISTEN_EVENTS];                   /* by serial */
static uint64_t ring_last;                                    /* serial; 0: none */

/* Without memory it is not kept: who follows finds a gap in the serials. */
void listen_ring_hear(const tide_event *event)
{
    const tide_listen_host *host = __atomic_load_n(&listen_host, __ATOMIC_ACQUIRE);
    ring_line line = {.serial = event->serial}, old;
    FILE *out = tide_memory_stream_open(&line.text, &line.length);
    bool good = out != NULL && host->write_event(out, event) == TIDE_OK;
    good = tide_memory_stream_close(out, &line.text) && good;
    if (!good) {
        free(line.text);
        return;
    }
    tide_assert(line.length > 0 && line.text[line.length - 1] == '\n');
    pthread_mutex_lock(&ring_lock);
    old = ring_lines[line.serial % LISTEN_EVENTS];
    ring_lines[line.serial % LISTEN_EVENTS] = line;
    ring_last = line.serial > ring_last ? line.serial : ring_last;
    pthread_mutex_unlock(&ring_lock);
    free(old.text);
}

/* A copy of the first kept event after `told`, its text NULL if there is none; false: no memory. */
static bool ring_copy_next(uint64_t told, ring_line *out)
{
    *out = (ring_line){0};
    pthread_mutex_lock(&ring_lock);
    uint64_t serial = told + 1;
    if (ring_last >= LISTEN_EVENTS && serial <= ring_last - LISTEN_EVENTS)
        serial = ring_last - LISTEN_EVENTS + 1;
    while (serial <= ring_last && ring_lines[serial % LISTEN_EVENTS].serial != serial)
        serial++;
    if (serial <= ring_last) {
        *out = ring_lines[serial % LISTEN_EVENTS];
        out->text = strndup(out->text, out->length);
    }
    pthread_mutex_unlock(&ring_lock);
    return out->serial == 0 || out->text != NULL;
}

bool listen_ring_tell(listen_client *client)
{
    ring_line next;
    char gap[64] = "";
    bool good = ring_copy_next(client->told, &next);
    while (good && next.text != NULL) {
        tide_assert(next.serial > client->told);
        int bytes = next.serial == client->told + 1
                        ? 0
                        : snprintf(gap, sizeof gap, "{\"gap\":%" PRIu64 "}\n",
                                   next.serial - client->told - 1);
        good =
            listen_send(client, gap, (size_t)bytes) && listen_send(client, next.text, next.length);
        free(next.text);
        client->told = next.serial;
        good = good && ring_copy_next(client->told, &next);
    }
    return good;
}

void listen_ring_forget(void)
{
    (void)pthread_mutex_init(&ring_lock, NULL);
    memset(ring_lines, 0, sizeof ring_lines);
    ring_last = 0;
}

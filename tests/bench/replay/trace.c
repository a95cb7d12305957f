/* SPDX-License-Identifier: MIT */
#include "trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/buffers.h>

enum {
    SLOTS_MAX = 1 << 20,   /* that are used                                              */
    PLACES = 2 * SLOTS_MAX /* a power of two: at least half are empty, so a search ends */
};

#define BYTES_MAX ((uint64_t)1 << 46) /* no buffer is larger */
#define LIVE_MAX  ((uint64_t)1 << 47) /* nor has a process so much address space */

/* What is known of the slots of the file while it is read. */
typedef struct reader {
    const char *path;
    size_t line;
    uint64_t *slots;  /* of the file, each at a place of its own: any numbers */
    uint32_t *number; /* by place, 0: none yet                                */
    size_t *live;     /* bytes by place, plus 1; 0: not live                  */
    size_t bytes;     /* live */
    size_t room;
} reader;

static bool complain(const reader *r, const char *what)
{
    fprintf(stderr, "tidepool-replay: %s:%zu: %s\n", r->path, r->line, what);
    return false;
}

static bool room_for_one(trace *t, reader *r)
{
    if (t->count < r->room)
        return true;
    size_t room = r->room == 0 ? 1024 : r->room * 2;
    trace_line *lines = realloc(t->lines, room * sizeof *lines);
    if (lines == NULL)
        return complain(r, "no memory for so many lines");
    t->lines = lines;
    r->room = room;
    return true;
}

/* Where what is known of the slot stands: linear probing. */
static size_t place_of(const reader *r, uint64_t slot)
{
    size_t place = (size_t)(slot * UINT64_C(0x9E3779B97F4A7C15) >> 32) % PLACES;
    while (r->number[place] != 0 && r->slots[place] != slot)
        place = (place + 1) % PLACES;
    return place;
}

/* Acquires and releases of a slot take turns. */
static bool follow(trace *t, reader *r, trace_line *line, uint64_t named)
{
    size_t slot = place_of(r, named);
    if (line->bytes > BYTES_MAX)
        return complain(r, "no buffer has so many bytes");
    if (r->number[slot] == 0 && t->slots == SLOTS_MAX)
        return complain(r, "more than 1048576 slots");
    if (line->acquires && line->bytes > LIVE_MAX - r->bytes)
        return complain(r, "no process has room for so many bytes at a time");
    if (line->acquires == (r->live[slot] != 0))
        return complain(r, line->acquires ? "the slot is acquired twice" : "the slot is not live");
    if (line->acquires) {
        if (r->number[slot] == 0) {
            r->slots[slot] = named;
            r->number[slot] = ++t->slots;
        }
        r->live[slot] = line->bytes + 1;
        r->bytes += line->bytes;
        t->acquires++;
        t->peak = r->bytes > t->peak ? r->bytes : t->peak;
    } else {
        r->bytes -= r->live[slot] - 1;
        r->live[slot] = 0;
    }
    line->slot = r->number[slot] - 1;
    t->threads = line->thread > t->threads ? line->thread : t->threads;
    return true;
}

static bool read_line(trace *t, reader *r, const char *text)
{
    trace_line line = {0};
    char what[8], rest;
    uint64_t slot = 0;
    if (text[0] == '#' || text[0] == '\n')
        return true;
    if (sscanf(text, "%" SCNu64 " %" SCNu32 " %" SCNu64 " %7s %" SCNu64 " %zu %" SCNu32 " %c",
               &line.time, &line.thread, &line.stream, what, &slot, &line.bytes, &line.flags,
               &rest) != 7)
        return complain(r, "not of the form: time thread stream acquire|release slot bytes flags");
    unsigned kind = line.flags & 0xFF, tag = line.flags >> 8 & 0xFF;
    if (kind > TIDE_BUFFER_IPC || tag >= TIDE_BUFFER_TAGS || line.flags >> 16 > 2)
        return complain(r, "no buffers have such flags");
    if (kind > TIDE_BUFFER_HOST) /* replayed on the host, which has none of these */
        line.flags = tag << 8 | TIDE_BUFFER_DEVICE;
    line.acquires = strcmp(what, "acquire") == 0;
    if (!line.acquires && strcmp(what, "release") != 0)
        return complain(r, "neither acquire nor release");
    if (!room_for_one(t, r) || !follow(t, r, &line, slot))
        return false;
    t->lines[t->count++] = line;
    return true;
}

static bool read_all(trace *t, reader *r, FILE *in)
{
    char text[256];
    bool good = r->slots != NULL && r->number != NULL && r->live != NULL;
    while (good && fgets(text, sizeof text, in) != NULL) {
        r->line++;
        good = read_line(t, r, text);
    }
    if (good && ferror(in))
        good = complain(r, "it cannot be read");
    return good && (t->acquires > 0 || complain(r, "there is nothing in it"));
}

bool trace_read(const char *path, trace *out)
{
    reader r = {.path = path,
                .slots = calloc(PLACES, sizeof *r.slots),
                .number = calloc(PLACES, sizeof *r.number),
                .live = calloc(PLACES, sizeof *r.live)};
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    *out = (trace){0};
    bool good = in != NULL ? read_all(out, &r, in) : complain(&r, "cannot be opened");
    if (in != NULL && in != stdin)
        fclose(in);
    free(r.slots);
    free(r.number);
    free(r.live);
    if (!good)
        trace_free(out);
    return good;
}

void trace_free(trace *t)
{
    free(t->lines);
    *t = (trace){0};
}

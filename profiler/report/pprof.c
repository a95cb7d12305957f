/* SPDX-License-Identifier: MIT */
/* The profile of pprof, written by hand: a message is fields, a field is a number that says which
 * and how, then a number, or a length and bytes. Numbers have seven bits to a byte, the lowest
 * first. */
#include "profiler/report/pprof.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/record/need.h"
#include "profiler/record/value.h"
#include "runtime/base/assert.h"

enum { PPROF_TEXT_MAX = 200, PPROF_VALUES = 7 };

/* Fields by message, as profile.proto numbers them. */
enum { PROFILE_TYPE = 1, PROFILE_SAMPLE, PROFILE_LOCATION = 4, PROFILE_FUNCTION, PROFILE_TEXT };
enum { PROFILE_TIME = 9, PROFILE_DURATION, PROFILE_COMMENT = 13 };
enum { TYPE_NAME = 1, TYPE_UNIT };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT };
enum { LOCATION_ID = 1, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_NUMBER };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE };

/* ---- messages ---- */

typedef struct pprof_message {
    char *bytes;
    size_t count, room;
} pprof_message;

static void pprof_put(pprof_message *message, const void *bytes, size_t count)
{
    if (message->room - message->count < count) {
        message->room = (message->count + count) * 2;
        message->bytes = tide_need(realloc(message->bytes, message->room));
    }
    if (count != 0)
        memcpy(message->bytes + message->count, bytes, count);
    message->count += count;
    tide_assert(message->count <= message->room);
}

static void pprof_put_number(pprof_message *message, uint64_t number)
{
    unsigned char bytes[10];
    size_t count = 0;
    do {
        bytes[count++] = (unsigned char)((number & 0x7F) | (number > 0x7F ? 0x80 : 0));
        number >>= 7;
    } while (number != 0);
    tide_assert(count <= sizeof bytes);
    pprof_put(message, bytes, count);
}

static void pprof_put_count(pprof_message *message, unsigned field, uint64_t value)
{
    pprof_put_number(message, field << 3 | 0);
    pprof_put_number(message, value);
}

static void pprof_put_bytes(pprof_message *message, unsigned field, const void *bytes, size_t count)
{
    pprof_put_number(message, field << 3 | 2);
    pprof_put_number(message, count);
    pprof_put(message, bytes, count);
}

/* The inner message becomes a field of the outer one, and is over. */
static void pprof_put_message(pprof_message *outer, unsigned field, pprof_message *inner)
{
    pprof_put_bytes(outer, field, inner->bytes, inner->count);
    free(inner->bytes);
    *inner = (pprof_message){0};
}

/* ---- parts of a profile ---- */

typedef struct pprof_writer {
    pprof_message profile;
    uint64_t texts, frames; /* so far; a text's number counts from 0, a frame's from 1 */
    uint64_t root;          /* the program's frame */
} pprof_writer;

/* The text's number. */
static uint64_t pprof_text(pprof_writer *writer, const char *text)
{
    json_t *clipped = tide_need(tide_value_clipped(text, PPROF_TEXT_MAX));
    const char *kept = json_string_value(clipped);
    pprof_put_bytes(&writer->profile, PROFILE_TEXT, kept, strlen(kept));
    json_decref(clipped);
    return writer->texts++;
}

static void pprof_type(pprof_writer *writer, const char *name, const char *unit)
{
    pprof_message type = {0};
    pprof_put_count(&type, TYPE_NAME, pprof_text(writer, name));
    pprof_put_count(&type, TYPE_UNIT, pprof_text(writer, unit));
    pprof_put_message(&writer->profile, PROFILE_TYPE, &type);
}

/* A function that stands at one place only, and that place; both have the number that it
 * returns. */
static uint64_t pprof_frame(pprof_writer *writer, const char *name, const char *file, uint64_t at)
{
    pprof_message function = {0}, location = {0}, line = {0};
    uint64_t id = ++writer->frames, text = pprof_text(writer, name);
    pprof_put_count(&function, FUNCTION_ID, id);
    pprof_put_count(&function, FUNCTION_NAME, text);
    pprof_put_count(&function, FUNCTION_SYSTEM_NAME, text);
    pprof_put_count(&function, FUNCTION_FILE, pprof_text(writer, file));
    pprof_put_message(&writer->profile, PROFILE_FUNCTION, &function);
    pprof_put_count(&line, LINE_FUNCTION, id);
    pprof_put_count(&line, LINE_NUMBER, at);
    pprof_put_count(&location, LOCATION_ID, id);
    pprof_put_message(&location, LOCATION_LINE, &line);
    pprof_put_message(&writer->profile, PROFILE_LOCATION, &location);
    return id;
}

/* As the thing says of itself; nothing, if it says nothing. */
static void pprof_label(pprof_writer *writer, pprof_message *sample, const json_t *thing,
                        const char *key)
{
    pprof_message label = {0};
    const char *text = tide_value_text(thing, key);
    if (text[0] == '\0')
        return;
    pprof_put_count(&label, LABEL_KEY, pprof_text(writer, key));
    pprof_put_count(&label, LABEL_TEXT, pprof_text(writer, text));
    pprof_put_message(sample, SAMPLE_LABEL, &label);
}

/* The thing's own frame: its noun, name and number, which are its alone. */
static uint64_t pprof_thing_frame(pprof_writer *writer, const json_t *thing, const char *noun)
{
    json_t *name = tide_value_clipped(tide_value_text(thing, "name"), PPROF_TEXT_MAX / 2);
    json_t *label = tide_need(json_sprintf("%s %s #%lld", noun, json_string_value(name),
                                           (long long)tide_value_count(thing, "id")));
    uint64_t frame = pprof_frame(writer, json_string_value(label), tide_value_text(thing, "file"),
                                 tide_value_count(thing, "line"));
    json_decref(label);
    json_decref(name);
    return frame;
}

/* A count that came from somewhere: not below zero, and no more than pprof's numbers hold. */
static uint64_t pprof_whole(double value)
{
    return value > 0 ? (uint64_t)(value < 9e18 ? value : 9e18) : 0;
}

/* ---- sites, pools, buffers ---- */

static void pprof_sample(pprof_writer *writer, const json_t *thing, const char *noun,
                         const double values[PPROF_VALUES])
{
    static const char *const labels[] = {"kind", "tier", "reason_code", "device", "thread_name"};
    pprof_message sample = {0};
    const char *function = tide_value_text(thing, "function");
    pprof_put_count(&sample, SAMPLE_LOCATION, pprof_thing_frame(writer, thing, noun));
    if (function[0] != '\0')
        pprof_put_count(&sample, SAMPLE_LOCATION,
                        pprof_frame(writer, function, tide_value_text(thing, "file"),
                                    tide_value_count(thing, "line")));
    pprof_put_count(&sample, SAMPLE_LOCATION, writer->root);
    for (size_t i = 0; i < PPROF_VALUES; i++)
        pprof_put_count(&sample, SAMPLE_VALUE, pprof_whole(values[i]));
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        pprof_label(writer, &sample, thing, labels[i]);
    pprof_put_message(&writer->profile, PROFILE_SAMPLE, &sample);
}

static void pprof_sites(pprof_writer *writer, const tide_history *history)
{
    for (size_t i = 0; i < history->sites.count; i++) {
        const tide_thing *site = history->sites.each[i];
        double uses = tide_history_grown(history, site, "uses");
        double ns = uses * tide_value_number(site->last, "use_ns");
        double bytes = uses * tide_value_number(site->last, "use_bytes");
        pprof_sample(
            writer, site->last, "site",
            (double[]){uses, ns, tide_history_grown(history, site, "misses"), bytes, 0, 0, 0});
    }
}

static void pprof_bytes(pprof_writer *writer, const tide_things *things, const char *noun,
                        const char *key)
{
    for (size_t i = 0; i < things->count; i++) {
        const json_t *last = things->each[i]->last;
        pprof_sample(writer, last, noun,
                     (double[]){0, 0, 0, 0, tide_value_number(last, key), 0, 0});
    }
}

/* Who took memory that is held: the place, then the stack. */
static void pprof_samples(pprof_writer *writer, const tide_history *history)
{
    size_t index, level;
    json_t *place, *code;
    json_array_foreach(json_object_get(json_object_get(history->last, "samples"), "places"), index,
                       place)
    {
        pprof_message sample = {0};
        const char *name = tide_value_text(place, "place");
        if (name[0] != '\0')
            pprof_put_count(&sample, SAMPLE_LOCATION, pprof_frame(writer, name, "", 0));
        json_array_foreach(json_object_get(place, "stack"), level, code)
        {
            const char *at = json_string_value(code);
            pprof_put_count(&sample, SAMPLE_LOCATION,
                            pprof_frame(writer, at != NULL ? at : "?", "", 0));
        }
        pprof_put_count(&sample, SAMPLE_LOCATION, writer->root);
        for (size_t i = 0; i < PPROF_VALUES - 2; i++)
            pprof_put_count(&sample, SAMPLE_VALUE, 0);
        pprof_put_count(&sample, SAMPLE_VALUE,
                        pprof_whole(tide_value_number(place, "taken_bytes")));
        pprof_put_count(&sample, SAMPLE_VALUE, pprof_whole(tide_value_number(place, "held_bytes")));
        pprof_label(writer, &sample, place, "type");
        pprof_put_message(&writer->profile, PROFILE_SAMPLE, &sample);
    }
}

static void pprof_head(pprof_writer *writer, const tide_history *history)
{
    (void)pprof_text(writer, ""); /* the first one has to be */
    pprof_type(writer, "uses", "count");
    pprof_type(writer, "time", "nanoseconds");
    pprof_type(writer, "misses", "count");
    pprof_type(writer, "acquired", "bytes");
    pprof_type(writer, "peak", "bytes");
    pprof_type(writer, "taken", "bytes");
    pprof_type(writer, "held", "bytes");
    writer->root = pprof_frame(writer, tide_value_text(history->last, "program"), "", 0);
    pprof_put_count(&writer->profile, PROFILE_TIME, tide_value_count(history->last, "wall_ns"));
    pprof_put_count(&writer->profile, PROFILE_DURATION,
                    pprof_whole(tide_history_duration(history)));
    if (history->sites.left_out + history->pools.left_out + history->buffers.left_out != 0)
        pprof_put_count(&writer->profile, PROFILE_COMMENT,
                        pprof_text(writer, "There were more sites, pools or buffers than these."));
}

void tide_pprof_write(FILE *out, const tide_history *history)
{
    pprof_writer writer = {0};
    tide_assert(history->last != NULL);
    pprof_head(&writer, history);
    pprof_sites(&writer, history);
    pprof_bytes(&writer, &history->pools, "pool", "peak_bytes");
    pprof_bytes(&writer, &history->buffers, "buffers", "high_bytes");
    pprof_samples(&writer, history);
    (void)fwrite(writer.profile.bytes, 1, writer.profile.count, out);
    free(writer.profile.bytes);
}

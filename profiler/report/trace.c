/* SPDX-License-Identifier: MIT */
/* A record as a trace in the JSON format of Chrome's tracing. Times are microseconds. */
#include "profiler/report/trace.h"

#include <stdlib.h>

#include "profiler/record/need.h"
#include "profiler/record/value.h"
#include "runtime/base/assert.h"

enum { TRACE_TEXT_MAX = 200 };

/* A site has the track of its number, so no other row of the process may be such a track. */
typedef struct trace_writer {
    FILE *out;
    json_int_t pid;
    double last_us;
    bool begun; /* a comma is due */
} trace_writer;

static void trace_put(trace_writer *trace, json_t *event)
{
    (void)fputs(trace->begun ? ",\n" : "\n", trace->out);
    (void)json_dumpf(tide_need(event), trace->out, JSON_COMPACT);
    json_decref(event);
    trace->begun = true;
}

static json_t *trace_text(const json_t *from, const char *key)
{
    return tide_value_clipped(tide_value_text(from, key), TRACE_TEXT_MAX);
}

/* "pool results #3". */
static json_t *trace_label(const char *noun, const json_t *thing, const char *unit)
{
    json_t *name = tide_need(trace_text(thing, "name"));
    json_t *label = json_sprintf("%s %s #%lld%s", noun, json_string_value(name),
                                 (long long)tide_value_count(thing, "id"), unit);
    json_decref(name);
    return label;
}

/* The slices of the tiers that were in force, each until the next or the last document. */
static void trace_site(trace_writer *trace, const tide_thing *site)
{
    static const char *const tiers[] = {"full", "table", "compiled"};
    trace_put(trace, json_pack("{s:s,s:s,s:I,s:I,s:{s:o}}", "ph", "M", "name", "thread_name", "pid",
                               trace->pid, "tid", (json_int_t)site->id, "args", "name",
                               trace_label("site", site->last, "")));
    for (size_t i = 0, next; i < site->count; i = next) {
        int tier = site->points[i].tier;
        double since = (double)site->points[i].time_ns / 1e3;
        for (next = i + 1; next < site->count && site->points[next].tier == tier;)
            next++;
        double until =
            next < site->count ? (double)site->points[next].time_ns / 1e3 : trace->last_us;
        tide_assert(next > i && until >= since);
        if (tier >= 0)
            trace_put(trace, json_pack("{s:s,s:s,s:s,s:I,s:I,s:f,s:f}", "ph", "X", "cat", "tier",
                                       "name", tiers[tier], "pid", trace->pid, "tid",
                                       (json_int_t)site->id, "ts", since, "dur", until - since));
    }
}

/* A counter stays where it is until it is told otherwise. */
static void trace_counter(trace_writer *trace, const tide_thing *thing, bool pool)
{
    for (size_t i = 0; i < thing->count; i++) {
        const tide_point *point = &thing->points[i];
        trace_put(trace,
                  json_pack("{s:s,s:o,s:I,s:f,s:{s:f,s:f}}", "ph", "C", "name",
                            trace_label(pool ? "pool" : "buffers", thing->last, " bytes"), "pid",
                            trace->pid, "ts", (double)point->time_ns / 1e3, "args", "live_bytes",
                            point->second, pool ? "held_bytes" : "cached_bytes",
                            pool ? point->value : point->value - point->second));
    }
}

static void trace_event(trace_writer *trace, const json_t *event)
{
    trace_put(trace,
              json_pack("{s:s,s:s,s:o,s:s,s:I,s:I,s:f,s:{s:o,s:o,s:o,s:o,s:I}}", "ph", "i", "cat",
                        "event", "name", trace_text(event, "kind"), "s", "t", "pid", trace->pid,
                        "tid", (json_int_t)tide_value_count(event, "site"), "ts",
                        (double)tide_value_count(event, "time_ns") / 1e3, "args", "site",
                        trace_text(event, "name"), "tier", trace_text(event, "tier"), "reason",
                        trace_text(event, "reason"), "detail", trace_text(event, "detail"),
                        "serial", (json_int_t)tide_value_count(event, "serial")));
}

void tide_trace_write(FILE *out, const tide_history *history)
{
    trace_writer trace = {.out = out,
                          .pid = (json_int_t)tide_value_count(history->last, "pid"),
                          .last_us = (double)history->last_ns / 1e3};
    (void)fputs("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"clock\":\"CLOCK_MONOTONIC\"},"
                "\"traceEvents\":[",
                out);
    trace_put(&trace, json_pack("{s:s,s:s,s:I,s:{s:o}}", "ph", "M", "name", "process_name", "pid",
                                trace.pid, "args", "name", trace_text(history->last, "program")));
    for (size_t i = 0; i < history->sites.count; i++)
        trace_site(&trace, history->sites.each[i]);
    for (size_t i = 0; i < history->pools.count; i++)
        trace_counter(&trace, history->pools.each[i], true);
    for (size_t i = 0; i < history->buffers.count; i++)
        trace_counter(&trace, history->buffers.each[i], false);
    for (size_t i = 0; i < history->event_count; i++)
        trace_event(&trace, history->events[i]);
    (void)fputs("\n]}\n", out);
}

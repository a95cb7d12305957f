/* SPDX-License-Identifier: MIT */
/* A record as a trace in the JSON format of Chrome's tracing. Times are microseconds. */
#include "profiler/report/trace.h"

#include <stdlib.h>
#include <string.h>

#include "profiler/record/value.h"
#include "profiler/report/history.h"
#include "runtime/base/assert.h"

/* Sites have a track each in this row of tracks; pools' counters belong to the process. */
enum { TRACE_SITES_MAX = 4096, TRACE_TEXT_MAX = 200 };

/* A process that executes another program stays the same, but its sites and pools are others.
 * Tracks are told apart by the number of their process, so each program after the first gets one
 * that no process has: numbers of processes are below PROGRAM_STEP. The last one stands for all
 * beyond. */
enum { TRACE_PROGRAM_STEP = 1 << 22, TRACE_PROGRAMS_MAX = 256 };

typedef struct trace_site {
    uint64_t id;
    double since_us; /* its tier is in force since then  */
    double seen_us;  /* the last document that told it   */
    char tier[16];
} trace_site;

typedef struct trace_writer {
    FILE *out;
    long long pid, process; /* as the trace has it, and as the system knew it */
    int program;            /* so many were executed before                   */
    uint64_t since_ns;      /* of the program, as it told                     */
    bool begun;             /* a comma is due */
    bool named;             /* the process has its name */
    double last_us;
    json_t *last; /* the program's last document, or NULL */
    trace_site *sites;
    size_t count, cursor;
} trace_writer;

static bool trace_put(trace_writer *trace, json_t *event)
{
    char *text = json_dumps(event, JSON_COMPACT);
    json_decref(event);
    if (text == NULL)
        return false;
    fprintf(trace->out, "%s\n%s", trace->begun ? "," : "", text);
    trace->begun = true;
    free(text);
    return true;
}

static json_t *trace_text(const json_t *from, const char *key)
{
    return tide_value_clipped(tide_value_text(from, key), TRACE_TEXT_MAX);
}

static double trace_us(const json_t *document)
{
    return (double)tide_value_count(document, "time_ns") / 1e3;
}

/* ---- sites ---- */

static json_t *trace_label(const json_t *site)
{
    json_t *name = trace_text(site, "name");
    json_t *label = json_sprintf("site %s #%lld", json_string_value(name),
                                 (long long)tide_value_count(site, "id"));
    json_decref(name);
    return label;
}

static trace_site *trace_find(trace_writer *trace, uint64_t id)
{
    for (size_t i = 0; i < trace->count; i++) {
        size_t at = (trace->cursor + i) % trace->count;
        if (trace->sites[at].id == id) {
            trace->cursor = at + 1;
            return &trace->sites[at];
        }
    }
    return NULL;
}

/* The track of a site that is seen for the first time. NULL without memory or room. */
static trace_site *trace_add(trace_writer *trace, const json_t *site)
{
    if (trace->count == TRACE_SITES_MAX)
        return NULL;
    if (trace->sites == NULL)
        trace->sites = calloc(TRACE_SITES_MAX, sizeof *trace->sites);
    if (trace->sites == NULL)
        return NULL;
    trace_site *added = &trace->sites[trace->count++];
    trace->cursor = trace->count;
    added->id = tide_value_count(site, "id");
    (void)trace_put(trace, json_pack("{s:s,s:s,s:I,s:I,s:{s:o}}", "ph", "M", "name", "thread_name",
                                     "pid", (json_int_t)trace->pid, "tid", (json_int_t)added->id,
                                     "args", "name", trace_label(site)));
    return added;
}

/* The slice of the tier that was in force until now. */
static bool trace_end_tier(trace_writer *trace, const trace_site *site, double now_us)
{
    if (site->tier[0] == 0)
        return true;
    tide_assert(now_us >= site->since_us);
    return trace_put(trace, json_pack("{s:s,s:s,s:s,s:I,s:I,s:f,s:f}", "ph", "X", "cat", "tier",
                                      "name", site->tier, "pid", (json_int_t)trace->pid, "tid",
                                      (json_int_t)site->id, "ts", site->since_us, "dur",
                                      now_us - site->since_us));
}

static bool trace_site_seen(trace_writer *trace, const json_t *object, double now_us)
{
    char tier[16];
    trace_site *site = trace_find(trace, tide_value_count(object, "id"));
    if (site == NULL && (site = trace_add(trace, object)) == NULL)
        return true;
    site->seen_us = now_us;
    tide_value_plain(tier, sizeof tier, tide_value_text(object, "tier"));
    if (strcmp(tier, site->tier) == 0)
        return true;
    bool good = trace_end_tier(trace, site, now_us);
    memcpy(site->tier, tier, sizeof tier);
    site->since_us = now_us;
    return good;
}

/* A site goes with its module. */
static bool trace_end_gone_sites(trace_writer *trace, double now_us)
{
    bool good = true;
    for (size_t i = 0; i < trace->count && good; i++) {
        trace_site *site = &trace->sites[i];
        if (site->seen_us == now_us)
            continue;
        good = trace_end_tier(trace, site, now_us);
        site->tier[0] = 0;
    }
    return good;
}

/* ---- counters ---- */

typedef struct trace_counted {
    const char *list, *noun, *first, *second; /* the values are members */
} trace_counted;

static const trace_counted trace_counters[] = {
    {"pools", "pool", "held_bytes", "live_bytes"},
    {"buffers", "buffers", "live_bytes", "cached_bytes"}};

/* `gone`: it is no more, and holds nothing. */
static bool trace_counter(trace_writer *trace, const json_t *thing, const trace_counted *how,
                          double now_us, bool gone)
{
    json_int_t first = gone ? 0 : (json_int_t)tide_value_count(thing, how->first);
    json_int_t second = gone ? 0 : (json_int_t)tide_value_count(thing, how->second);
    json_t *name = trace_text(thing, "name");
    json_t *label = json_sprintf("%s %s #%lld bytes", how->noun, json_string_value(name),
                                 (long long)tide_value_count(thing, "id"));
    json_decref(name);
    return trace_put(trace, json_pack("{s:s,s:o,s:I,s:f,s:{s:I,s:I}}", "ph", "C", "name", label,
                                      "pid", (json_int_t)trace->pid, "ts", now_us, "args",
                                      how->first, first, how->second, second));
}

/* A counter stays where it is until it is told otherwise. */
static bool trace_count_gone(trace_writer *trace, const json_t *now, const trace_counted *how,
                             double now_us)
{
    tide_value_ids ids = tide_value_ids_of(now);
    bool good = ids.each != NULL;
    json_t *thing;
    size_t i;
    json_array_foreach(json_object_get(trace->last, how->list), i, thing)
    {
        if (good && !tide_value_ids_have(&ids, tide_value_count(thing, "id")))
            good = trace_counter(trace, thing, how, now_us, true);
    }
    free(ids.each);
    return good;
}

static bool trace_count(trace_writer *trace, const json_t *facts, const trace_counted *how,
                        double now_us)
{
    const json_t *now = json_object_get(facts, how->list), *thing;
    size_t i;
    bool good = true;
    json_array_foreach(now, i, thing) good =
        good && trace_counter(trace, thing, how, now_us, false);
    return good && trace_count_gone(trace, now, how, now_us);
}

/* ---- programs ---- */

static bool trace_name_process(trace_writer *trace, const json_t *facts)
{
    json_t *name = trace_text(facts, "program");
    if (trace->program > 0) {
        json_t *numbered = json_sprintf("%s (process %lld, program %d)", json_string_value(name),
                                        trace->process, trace->program + 1);
        json_decref(name);
        name = numbered;
    }
    trace->named = true;
    return trace_put(trace, json_pack("{s:s,s:s,s:I,s:{s:o}}", "ph", "M", "name", "process_name",
                                      "pid", (json_int_t)trace->pid, "args", "name", name)) &&
           trace_put(trace, json_pack("{s:s,s:s,s:I,s:{s:i}}", "ph", "M", "name",
                                      "process_sort_index", "pid", (json_int_t)trace->pid, "args",
                                      "sort_index", trace->program));
}

/* What the program before had in force ends with what it told last. */
static void trace_end_program(trace_writer *trace)
{
    for (size_t i = 0; i < trace->count; i++)
        (void)trace_end_tier(trace, &trace->sites[i], trace->last_us);
    if (trace->count > 0)
        memset(trace->sites, 0, trace->count * sizeof *trace->sites);
    trace->count = trace->cursor = 0;
    json_decref(trace->last);
    trace->last = NULL;
}

static void trace_begin_program(trace_writer *trace, const json_t *facts)
{
    uint64_t since_ns = tide_value_count(facts, "since_ns"), pid = tide_value_count(facts, "pid");
    bool other = trace->named && since_ns != trace->since_ns;
    trace->since_ns = since_ns;
    trace->process = pid < TRACE_PROGRAM_STEP ? (long long)pid : 0; /* else it lies */
    if (other) {
        trace_end_program(trace);
        trace->program += trace->program < TRACE_PROGRAMS_MAX - 1;
        trace->named = false;
    }
    trace->pid = trace->process + (long long)trace->program * TRACE_PROGRAM_STEP;
}

static bool trace_facts(trace_writer *trace, json_t *facts)
{
    double now_us = trace_us(facts);
    json_t *thing;
    size_t i;
    trace_begin_program(trace, facts);
    bool good = trace->named || trace_name_process(trace, facts);
    trace->last_us = now_us;
    for (i = 0; i < sizeof trace_counters / sizeof *trace_counters; i++)
        good = good && trace_count(trace, facts, &trace_counters[i], now_us);
    trace->cursor = 0;
    json_array_foreach(json_object_get(facts, "sites"), i, thing) good =
        good && trace_site_seen(trace, thing, now_us);
    json_decref(trace->last);
    trace->last = json_incref(facts);
    return good && trace_end_gone_sites(trace, now_us);
}

/* ---- the whole ---- */

static bool trace_event(trace_writer *trace, const json_t *event)
{
    return trace_put(
        trace, json_pack("{s:s,s:s,s:o,s:s,s:I,s:I,s:f,s:{s:o,s:o,s:o,s:o,s:I}}", "ph", "i", "cat",
                         "event", "name", trace_text(event, "kind"), "s", "t", "pid",
                         (json_int_t)trace->pid, "tid", (json_int_t)tide_value_count(event, "site"),
                         "ts", trace_us(event), "args", "site", trace_text(event, "name"), "tier",
                         trace_text(event, "tier"), "reason", trace_text(event, "reason"), "detail",
                         trace_text(event, "detail"), "serial",
                         (json_int_t)tide_value_count(event, "serial")));
}

/* Not before there is a record. */
static void trace_begin(trace_writer *trace, const json_t *head)
{
    trace->pid = (long long)tide_value_count(head, "pid");
    fputs("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"clock\":\"CLOCK_MONOTONIC\"},"
          "\"traceEvents\":[",
          trace->out);
}

static bool trace_line(tide_record_line what, json_t *line, void *user)
{
    trace_writer *trace = user;
    switch (what) {
    case TIDE_RECORD_FACTS: return trace_facts(trace, line);
    case TIDE_RECORD_EVENT: return trace_event(trace, line);
    case TIDE_RECORD_HEAD: trace_begin(trace, line); return true;
    case TIDE_RECORD_CODE:
    case TIDE_RECORD_GAP:
    case TIDE_RECORD_END: return true;
    }
    return false;
}

bool tide_trace_write(FILE *out, const char *path, tide_record_outcome *outcome)
{
    trace_writer trace = {.out = out};
    bool good = tide_record_read(path, trace_line, &trace, outcome);
    trace_end_program(&trace);
    if (good)
        fputs("\n]}\n", out);
    free(trace.sites);
    return good;
}

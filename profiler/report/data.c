/* SPDX-License-Identifier: MIT */
/* A history as the JSON document that the page draws. */
#include "profiler/report/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/record/need.h"
#include "profiler/record/value.h"
#include "profiler/report/advice.h"
#include "runtime/base/assert.h"

enum { DATA_TEXT_MAX = 400, DATA_TYPES_MAX = 16, DATA_EXTENTS_MAX = 8, DATA_SPEC_MAX = 2000 };

static void data_put(json_t *object, const char *key, json_t *value)
{
    (void)json_object_set_new(object, key, value);
}

/* A number that is whole is written without a dot. */
static json_t *data_number(double number)
{
    if (number == floor(number) && fabs(number) < 1e15)
        return json_integer((json_int_t)number);
    return json_real(number);
}

static void data_put_number(json_t *object, const char *key, double number)
{
    data_put(object, key, data_number(number));
}

/* A new object with these members of another one. */
static json_t *data_copy(const json_t *from, const char *const *texts, const char *const *numbers)
{
    json_t *object = json_object();
    for (; *texts != NULL; texts++)
        data_put(object, *texts, tide_value_clipped(tide_value_text(from, *texts), DATA_TEXT_MAX));
    for (; *numbers != NULL; numbers++)
        data_put_number(object, *numbers, tide_value_number(from, *numbers));
    return object;
}

/* ---- points ---- */

static double data_ms(const tide_history *history, uint64_t time_ns)
{
    double ms = ((double)time_ns - (double)history->first_ns) / 1e6;
    return round(ms * 10) / 10;
}

static void data_add_point(json_t *list, const tide_history *history, const tide_point *point,
                           bool tiers)
{
    json_t *one = json_array();
    (void)json_array_append_new(one, data_number(data_ms(history, point->time_ns)));
    if (tiers)
        (void)json_array_append_new(one, json_integer(point->tier));
    (void)json_array_append_new(one, data_number(point->value));
    if (!tiers)
        (void)json_array_append_new(one, data_number(point->second));
    (void)json_array_append_new(list, one);
}

/* At most about `limit` points: of each run of neighbours with one tier the one of the greatest
 * value. */
static json_t *data_points(const tide_history *history, const tide_thing *thing, size_t limit,
                           bool tiers)
{
    json_t *list = json_array();
    size_t step = (thing->count + limit - 1) / (limit != 0 ? limit : 1), written = 0;
    for (size_t i = 0, next; i < thing->count && written < 2 * limit; i = next, written++) {
        const tide_point *most = &thing->points[i];
        for (next = i + 1; next < thing->count && next < i + step; next++) {
            if (thing->points[next].tier != thing->points[i].tier)
                break;
            if (thing->points[next].value > most->value)
                most = &thing->points[next];
        }
        tide_point point = *most;
        point.time_ns = thing->points[i].time_ns;
        data_add_point(list, history, &point, tiers);
    }
    return list;
}

/* ---- sites ---- */

static json_t *data_strings(const json_t *list)
{
    json_t *out = json_array();
    const json_t *text;
    size_t i;
    json_array_foreach(list, i, text)
    {
        if (i < DATA_TYPES_MAX && json_is_string(text))
            (void)json_array_append_new(out,
                                        tide_value_clipped(json_string_value(text), DATA_TEXT_MAX));
    }
    return out;
}

/* Of each type the extents; of a list that is no list of such, nothing. */
static json_t *data_shapes(const json_t *list)
{
    json_t *out = json_array();
    const json_t *shape, *extent;
    size_t i, d;
    json_array_foreach(list, i, shape)
    {
        if (i == DATA_TYPES_MAX)
            break;
        json_t *one = json_array();
        json_array_foreach(shape, d, extent)
        {
            if (json_is_integer(extent) && d < DATA_EXTENTS_MAX)
                (void)json_array_append_new(one, json_integer(json_integer_value(extent)));
        }
        (void)json_array_append_new(out, one);
    }
    return out;
}

/* As machine code if that was made, else the spec that it was compiled from. */
static void data_put_code(json_t *site, const tide_thing *thing)
{
    bool machine = json_is_string(thing->machine);
    if (thing->code == NULL)
        return;
    data_put(site, "code_is", json_string(machine ? "assembler" : "spec"));
    data_put(site, "code",
             machine ? json_incref(thing->machine)
                     : tide_value_clipped(tide_value_text(thing->code, "spec"), DATA_SPEC_MAX));
}

static json_t *data_site(const tide_history *history, const tide_thing *thing,
                         const tide_data_limits *limits, size_t rank)
{
    static const char *const texts[] = {"name", "file", "kind", "tier", "reason", NULL};
    static const char *const now[] = {"id", "line", "use_ns", NULL};
    static const char *const grown[] = {"uses", "misses"};
    json_t *site = data_copy(thing->last, texts, now);
    for (size_t i = 0; i < sizeof grown / sizeof *grown; i++)
        data_put_number(site, grown[i], tide_history_grown(history, thing, grown[i]));
    data_put(site, "pinned", json_boolean(tide_value_flag(thing->last, "pinned")));
    data_put(site, "measured", json_boolean(tide_value_flag(thing->last, "use_measured")));
    data_put(site, "counted",
             json_boolean(!json_is_false(json_object_get(thing->last, "uses_counted"))));
    data_put(site, "types", data_strings(json_object_get(thing->last, "types")));
    data_put(site, "shapes", data_shapes(json_object_get(thing->last, "shapes")));
    data_put(site, "points", data_points(history, thing, limits->points, true));
    if (rank < limits->codes)
        data_put_code(site, thing);
    return site;
}

/* Pools and buffers. */
static json_t *data_memory(const tide_history *history, const tide_thing *thing,
                           const tide_data_limits *limits, size_t rank)
{
    static const char *const texts[] = {"name", "thread_name", "device", NULL};
    static const char *const now[] = {
        "id",    "thread",      "held_bytes", "live_bytes", "peak_bytes",   "limit_bytes", "slots",
        "types", "allocations", "exchanges",  "hits",       "misses",       "refused",     "failed",
        "live",  "cached",      "high_bytes", "max_bytes",  "cached_bytes", NULL};
    (void)rank; /* only sites have code, which the first ones tell */
    json_t *memory = data_copy(thing->last, texts, now);
    data_put(memory, "gone", json_boolean(thing->last_ns != history->last_ns));
    data_put(memory, "points", data_points(history, thing, limits->points, false));
    return memory;
}

typedef json_t *data_thing(const tide_history *history, const tide_thing *thing,
                           const tide_data_limits *limits, size_t rank);

static json_t *data_list(const tide_history *history, const tide_things *things, size_t limit,
                         const tide_data_limits *limits, data_thing *describe)
{
    json_t *list = json_array();
    for (size_t i = 0; i < things->count && i < limit; i++)
        (void)json_array_append_new(list, describe(history, things->each[i], limits, i));
    return list;
}

/* ---- events and advice ---- */

static json_t *data_events(const tide_history *history, size_t limit)
{
    static const char *const texts[] = {"kind", "name", "tier", "reason", "detail", NULL};
    static const char *const numbers[] = {"site", NULL};
    json_t *list = json_array();
    size_t skip = history->event_count > limit ? history->event_count - limit : 0;
    for (size_t i = skip; i < history->event_count; i++) {
        json_t *event = data_copy(history->events[i], texts, numbers);
        data_put_number(event, "t",
                        data_ms(history, tide_value_count(history->events[i], "time_ns")));
        (void)json_array_append_new(list, event);
    }
    return list;
}

/* Advice that is worth a line each, then the rest, of which `small` says what it is worth. */
static void data_put_advice(json_t *data, const tide_history *history)
{
    static const char *const grades[TIDE_GRADE_COUNT] = {"note", "slow", "wrong"};
    tide_advice_list *found = tide_need(calloc(1, sizeof *found));
    json_t *list = json_array();
    tide_verdict verdict;
    char small[200];
    tide_advice_of(history, found);
    tide_advice_judge(history, found, &verdict);
    for (size_t i = 0; i < found->count; i++) {
        const tide_advice *one = &found->each[i];
        json_t *out = json_pack("{s:s,s:s,s:s,s:s,s:s,s:s}", "grade", grades[one->grade], "subject",
                                one->subject, "what", one->what, "why", one->why, "instead",
                                one->instead, "code", one->code);
        data_put_number(out, "use_ns", one->use_ns);
        data_put_number(out, "share", one->share);
        data_put_number(out, "site", (double)one->site);
        data_put_number(out, "others", (double)one->others);
        (void)json_array_append_new(list, out);
    }
    data_put(data, "advice", list);
    data_put_number(data, "worth", (double)found->worth);
    data_put(data, "small", json_string(tide_advice_of_small(found, small, sizeof small)));
    data_put(data, "verdict", json_string(verdict.words));
    data_put_number(data, "taken_ns", round(verdict.taken_ns));
    data_put_number(data, "measured_ns", round(verdict.measured_ns));
    data_put_number(data, "malloc_ns", round(verdict.malloc_ns));
    free(found);
}

/* ---- the whole ---- */

static json_t *data_end(const tide_history *history)
{
    const json_t *end = json_object_get(history->end, "end");
    const json_t *signal = json_object_get(end, "signal");
    if (json_is_integer(signal))
        return json_sprintf("killed by signal %d", (int)json_integer_value(signal));
    if (json_is_integer(json_object_get(end, "exit_status")))
        return json_sprintf("ended with status %d", (int)tide_value_number(end, "exit_status"));
    return json_string("");
}

static double data_cpu_ms(const tide_history *history)
{
    double before =
        history->documents > 1 ? tide_value_number(history->first, "process_cpu_ns") : 0;
    double cpu = tide_value_number(history->last, "process_cpu_ns") - before;
    return cpu > 0 ? cpu / 1e6 : 0;
}

static void data_put_left_out(json_t *left, const char *key, const tide_things *things,
                              size_t limit)
{
    size_t beyond = things->count > limit ? things->count - limit : 0;
    data_put_number(left, key, (double)(beyond + things->left_out));
}

json_t *tide_data_of(tide_history *history, const char *damage, const tide_data_limits *limits)
{
    static const char *const texts[] = {"program", "version", NULL}, *const pid[] = {"pid", NULL};
    static const char *const none[] = {NULL}, *const learning[] = {"compiled", "won", "spent_us",
                                                                   NULL};
    size_t events = history->event_count;
    tide_assert(limits->points > 0);
    tide_history_sort(history);
    json_t *data = data_copy(history->last, texts, pid), *left = json_object();
    data_put_number(data, "wall_ms", floor(tide_value_number(history->first, "wall_ns") / 1e6));
    data_put_number(data, "duration_ms", data_ms(history, history->last_ns));
    data_put_number(data, "cpu_ms", round(data_cpu_ms(history)));
    data_put_number(data, "documents", (double)history->documents);
    data_put(data, "end", data_end(history));
    data_put(data, "damage", tide_value_clipped(damage, 256));
    data_put(data, "sites", data_list(history, &history->sites, limits->sites, limits, data_site));
    data_put(data, "pools",
             data_list(history, &history->pools, limits->pools, limits, data_memory));
    data_put(data, "buffers",
             data_list(history, &history->buffers, limits->buffers, limits, data_memory));
    data_put(data, "events", data_events(history, limits->events));
    data_put_advice(data, history);
    data_put(data, "learning",
             data_copy(json_object_get(history->last, "learning"), none, learning));
    data_put_left_out(left, "sites", &history->sites, limits->sites);
    data_put_left_out(left, "pools", &history->pools, limits->pools);
    data_put_left_out(left, "buffers", &history->buffers, limits->buffers);
    data_put_number(left, "events",
                    (double)history->events_left_out +
                        (double)(events > limits->events ? events - limits->events : 0));
    data_put(data, "left_out", left);
    return data;
}

char *tide_data_text(const json_t *data)
{
    static const char escape[] = "\\u00";
    static const char digits[] = "0123456789abcdef";
    char *plain = tide_need(json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(7)));
    char *out = tide_need(malloc(strlen(plain) * 6 + 1)), *to = out;
    for (const char *from = plain; *from != 0; from++) {
        if (strchr("<>&", *from) == NULL) {
            *to++ = *from;
            continue;
        }
        memcpy(to, escape, 4);
        to[4] = digits[*from >> 4];
        to[5] = digits[*from & 15];
        to += 6;
    }
    *to = 0;
    free(plain);
    tide_assert(strchr(out, '<') == NULL);
    return out;
}

/* SPDX-License-Identifier: MIT */
/* A history as the JSON document that the page draws. */
#include "profiler/report/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/record/value.h"
#include "profiler/report/advice.h"
#include "runtime/base/assert.h"

enum {
    DATA_TEXT_MAX = 120,
    DATA_TYPES_MAX = 16,
    DATA_EXTENTS_MAX = 8,
    DATA_RIVALS_MAX = 4,
    DATA_SPEC_MAX = 2000
};

static void data_put(json_t *object, const char *key, json_t *value)
{
    (void)json_object_set_new(object, key, value); /* what has no memory is not there */
}

static void data_put_text(json_t *object, const char *key, const json_t *from, const char *member)
{
    data_put(object, key, tide_value_clipped(tide_value_text(from, member), DATA_TEXT_MAX));
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

static void data_copy_numbers(json_t *object, const json_t *from, const char *const *keys)
{
    for (; *keys != NULL; keys++)
        data_put_number(object, *keys, tide_value_number(from, *keys));
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

static json_t *data_rivals(const json_t *list)
{
    json_t *out = json_array();
    const json_t *rival;
    size_t i;
    json_array_foreach(list, i, rival)
    {
        if (i == DATA_RIVALS_MAX)
            break;
        json_t *one = json_object();
        data_put_text(one, "tier", rival, "tier");
        data_put_number(one, "ns", tide_value_number(rival, "ns"));
        data_put(one, "measured", json_boolean(tide_value_flag(rival, "measured")));
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
    static const char *const grown[] = {"uses",       "misses",   "compiles",
                                        "compile_ns", "saved_ns", NULL};
    static const char *const now[] = {"id",         "line", "use_ns", "uses_per_second",
                                      "generation", NULL};
    json_t *site = json_object();
    data_copy_numbers(site, thing->last, now);
    for (const char *const *key = grown; *key != NULL; key++)
        data_put_number(site, *key, tide_history_grown(history, thing, *key));
    data_put_text(site, "name", thing->last, "name");
    data_put_text(site, "file", thing->last, "file");
    data_put_text(site, "kind", thing->last, "kind");
    data_put_text(site, "tier", thing->last, "tier");
    data_put_text(site, "reason", thing->last, "reason");
    data_put(site, "pinned", json_boolean(tide_value_flag(thing->last, "pinned")));
    data_put(site, "measured", json_boolean(tide_value_flag(thing->last, "use_measured")));
    data_put(site, "types", data_strings(json_object_get(thing->last, "types")));
    data_put(site, "shapes", data_shapes(json_object_get(thing->last, "shapes")));
    data_put(site, "rivals", data_rivals(json_object_get(thing->last, "rivals")));
    data_put_number(site, "from", data_ms(history, thing->first_ns));
    data_put(site, "points", data_points(history, thing, limits->points, true));
    if (rank < limits->codes)
        data_put_code(site, thing);
    return site;
}

/* ---- pools and buffers ---- */

static json_t *data_pool(const tide_history *history, const tide_thing *thing,
                         const tide_data_limits *limits, size_t rank)
{
    (void)rank; /* only sites have code, which the first ones tell */
    static const char *const now[] = {
        "id",    "thread", "held_bytes",  "live_bytes", "peak_bytes", "limit_bytes", "slots",
        "types", "depth",  "allocations", "releases",   "exchanges",  NULL};
    json_t *pool = json_object();
    data_copy_numbers(pool, thing->last, now);
    data_put_text(pool, "name", thing->last, "name");
    data_put_text(pool, "thread_name", thing->last, "thread_name");
    data_put_text(pool, "device", thing->last, "device");
    data_put(pool, "gone", json_boolean(thing->last_ns != history->last_ns));
    data_put(pool, "points", data_points(history, thing, limits->points, false));
    return pool;
}

static json_t *data_buffers(const tide_history *history, const tide_thing *thing,
                            const tide_data_limits *limits, size_t rank)
{
    (void)rank; /* only sites have code, which the first ones tell */
    static const char *const now[] = {
        "id",         "hits",      "misses",  "live",   "cached",  "live_bytes", "cached_bytes",
        "high_bytes", "max_bytes", "refused", "failed", "pressed", NULL};
    json_t *buffers = json_object();
    data_copy_numbers(buffers, thing->last, now);
    data_put_text(buffers, "name", thing->last, "name");
    data_put_text(buffers, "device", thing->last, "device");
    data_put(buffers, "gone", json_boolean(thing->last_ns != history->last_ns));
    data_put(buffers, "points", data_points(history, thing, limits->points, false));
    return buffers;
}

/* ---- the most important ones ---- */

typedef json_t *data_thing(const tide_history *history, const tide_thing *thing,
                           const tide_data_limits *limits, size_t rank);
typedef struct data_ranked {
    const tide_thing *thing;
    double weight;
} data_ranked;

/* A site weighs the time that it took, or its uses where no use was measured; the rest what it held
 * at most. */
static double data_weight(const tide_history *history, const tide_thing *thing, bool site)
{
    if (site) {
        double use_ns = tide_value_number(thing->last, "use_ns");
        return tide_history_grown(history, thing, "uses") * (use_ns > 0 ? use_ns : 1);
    }
    double most = 0;
    for (size_t i = 0; i < thing->count; i++)
        most = thing->points[i].value > most ? thing->points[i].value : most;
    return most;
}

static int data_compare(const void *a, const void *b)
{
    const data_ranked *left = a, *right = b;
    if (left->weight != right->weight)
        return left->weight < right->weight ? 1 : -1;
    return left->thing->id > right->thing->id ? 1 : -1; /* ids differ: the same each time */
}

/* The heaviest first; the caller frees it. NULL: no memory. */
static data_ranked *data_rank(const tide_history *history, const tide_things *things)
{
    data_ranked *ranked = calloc(things->count + 1, sizeof *ranked);
    for (size_t i = 0; ranked != NULL && i < things->count; i++)
        ranked[i] = (data_ranked){things->each[i],
                                  data_weight(history, things->each[i], things == &history->sites)};
    if (ranked != NULL)
        qsort(ranked, things->count, sizeof *ranked, data_compare);
    return ranked;
}

size_t tide_data_first_sites(const tide_history *history, uint64_t *ids, size_t most)
{
    data_ranked *ranked = data_rank(history, &history->sites);
    size_t count = 0;
    for (; ranked != NULL && count < most && count < history->sites.count; count++)
        ids[count] = ranked[count].thing->id;
    free(ranked);
    return count;
}

static json_t *data_list(const tide_history *history, const tide_things *things, size_t limit,
                         const tide_data_limits *limits, data_thing *describe)
{
    json_t *list = json_array();
    data_ranked *ranked = data_rank(history, things);
    for (size_t i = 0; ranked != NULL && i < things->count && i < limit; i++)
        (void)json_array_append_new(list, describe(history, ranked[i].thing, limits, i));
    free(ranked);
    return list;
}

/* ---- events and advice ---- */

static json_t *data_events(const tide_history *history, size_t limit)
{
    json_t *list = json_array();
    size_t skip = history->event_count > limit ? history->event_count - limit : 0;
    for (size_t i = skip; i < history->event_count; i++) {
        const json_t *from = history->events[i];
        json_t *event = json_object();
        uint64_t time = tide_value_count(from, "time_ns");
        data_put_number(event, "t", data_ms(history, time));
        data_put_number(event, "site", tide_value_number(from, "site"));
        data_put_text(event, "kind", from, "kind");
        data_put_text(event, "name", from, "name");
        data_put_text(event, "tier", from, "tier");
        data_put_text(event, "reason", from, "reason");
        if (tide_value_text(from, "detail")[0] != 0)
            data_put_text(event, "detail", from, "detail");
        (void)json_array_append_new(list, event);
    }
    return list;
}

static json_t *data_advice(const tide_history *history)
{
    static const char *const grades[TIDE_GRADE_COUNT] = {"note", "slow", "wrong"};
    tide_advice_list *found = calloc(1, sizeof *found);
    json_t *list = json_array();
    if (found == NULL)
        return list;
    tide_advice_of(history, found);
    for (size_t i = 0; i < found->count; i++) {
        const tide_advice *one = &found->each[i];
        json_t *out = json_object();
        data_put(out, "grade", json_string(grades[one->grade]));
        data_put(out, "subject", json_string(one->subject));
        data_put(out, "what", json_string(one->what));
        data_put(out, "why", json_string(one->why));
        data_put(out, "instead", json_string(one->instead));
        data_put(out, "code", json_string(one->code));
        data_put_number(out, "use_ns", one->use_ns);
        data_put_number(out, "share", one->share);
        data_put_number(out, "site", (double)one->site);
        (void)json_array_append_new(list, out);
    }
    free(found);
    return list;
}

/* What the library tells of learning, and nothing else that may stand there. */
static json_t *data_learning(const json_t *from)
{
    static const char *const counts[] = {"rounds",   "windows", "decisions",    "ordered",
                                         "compiled", "failed",  "shared",       "reused",
                                         "won",      "lost",    "code_objects", "code_bytes",
                                         "stagers",  "untold",  "spent_us",     NULL};
    json_t *learning = json_object();
    data_copy_numbers(learning, from, counts);
    data_put(learning, "enabled", json_boolean(tide_value_flag(from, "enabled")));
    data_put(learning, "background", json_boolean(tide_value_flag(from, "background")));
    return learning;
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

static void data_put_left_out(json_t *data, const tide_history *history,
                              const tide_data_limits *limits)
{
    const tide_things *things[] = {&history->sites, &history->pools, &history->buffers};
    const char *const keys[] = {"sites", "pools", "buffers"};
    const size_t most[] = {limits->sites, limits->pools, limits->buffers};
    json_t *left = json_object();
    for (int i = 0; i < 3; i++) {
        size_t beyond = things[i]->count > most[i] ? things[i]->count - most[i] : 0;
        data_put_number(left, keys[i], (double)beyond);
        data_put(left,
                 i == 0   ? "sites_more"
                 : i == 1 ? "pools_more"
                          : "buffers_more",
                 json_boolean(things[i]->left_out != 0));
    }
    size_t beyond =
        history->event_count > limits->events ? history->event_count - limits->events : 0;
    data_put_number(left, "events", (double)beyond + (double)history->events_left_out);
    data_put(data, "left_out", left);
}

json_t *tide_data_of(const tide_history *history, const char *damage,
                     const tide_data_limits *limits)
{
    json_t *data = json_object();
    tide_assert(limits->points > 0);
    data_put_text(data, "program", history->last, "program");
    data_put_text(data, "version", history->last, "version");
    data_put_number(data, "pid", tide_value_number(history->last, "pid"));
    data_put_number(data, "wall_ms", floor(tide_value_number(history->first, "wall_ns") / 1e6));
    data_put_number(data, "duration_ms", data_ms(history, history->last_ns));
    data_put_number(data, "cpu_ms", round(data_cpu_ms(history)));
    data_put_number(data, "documents", (double)history->documents);
    data_put(data, "end", data_end(history));
    data_put(data, "damage", tide_value_clipped(damage, 256));
    data_put(data, "sites", data_list(history, &history->sites, limits->sites, limits, data_site));
    data_put(data, "pools", data_list(history, &history->pools, limits->pools, limits, data_pool));
    data_put(data, "buffers",
             data_list(history, &history->buffers, limits->buffers, limits, data_buffers));
    data_put(data, "events", data_events(history, limits->events));
    data_put(data, "advice", data_advice(history));
    data_put(data, "learning", data_learning(json_object_get(history->last, "learning")));
    data_put_left_out(data, history, limits);
    return data;
}

char *tide_data_text(const json_t *data)
{
    static const char escape[] = "\\u00";
    static const char digits[] = "0123456789abcdef";
    char *plain = json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(7)), *out, *to;
    if (plain == NULL)
        return NULL;
    out = to = malloc(strlen(plain) * 6 + 1);
    for (const char *from = plain; out != NULL && *from != 0; from++) {
        if (strchr("<>&", *from) == NULL) {
            *to++ = *from;
            continue;
        }
        memcpy(to, escape, 4);
        to[4] = digits[*from >> 4];
        to[5] = digits[*from & 15];
        to += 6;
    }
    if (out != NULL)
        *to = 0;
    free(plain);
    tide_assert(out == NULL || strchr(out, '<') == NULL);
    return out;
}

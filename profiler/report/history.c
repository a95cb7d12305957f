/* SPDX-License-Identifier: MIT */
/* What a record tells of each thing over time. */
#define _GNU_SOURCE
#include "profiler/report/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/record/need.h"
#include "profiler/record/value.h"
#include "runtime/base/assert.h"

typedef tide_point history_state(const json_t *object);

static int history_tier(const char *name)
{
    static const char *const names[] = {"full", "table", "compiled"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, names[i]) == 0)
            return i;
    }
    return -1;
}

static tide_point history_of_site(const json_t *site)
{
    return (tide_point){.tier = history_tier(tide_value_text(site, "tier")),
                        .value = tide_value_number(site, "use_ns")};
}

static tide_point history_of_pool(const json_t *pool)
{
    return (tide_point){.value = tide_value_number(pool, "held_bytes"),
                        .second = tide_value_number(pool, "live_bytes")};
}

static tide_point history_of_buffers(const json_t *buffers)
{
    double live = tide_value_number(buffers, "live_bytes");
    return (tide_point){.value = live + tide_value_number(buffers, "cached_bytes"), .second = live};
}

/* The thing of this id. The lists of documents have one order, so it mostly stands at the
 * cursor. */
static tide_thing *history_find(tide_things *things, uint64_t id)
{
    for (size_t i = 0; i < things->count; i++) {
        size_t at = (things->cursor + i) % things->count;
        if (things->each[at]->id == id) {
            things->cursor = at + 1;
            return things->each[at];
        }
    }
    return NULL;
}

static tide_thing *history_new(tide_things *things, uint64_t id)
{
    tide_thing *thing = tide_need(calloc(1, sizeof *thing));
    things->each = tide_need(realloc(things->each, (things->count + 1) * sizeof *things->each));
    thing->id = id;
    things->each[things->count++] = thing;
    things->cursor = things->count;
    return thing;
}

/* Every other point goes whose tier is that of the one before. */
static void history_thin(tide_thing *thing)
{
    size_t kept = 1;
    for (size_t i = 1; i < thing->count; i++) {
        bool stays = i % 2 == 0 || thing->points[i].tier != thing->points[i - 1].tier;
        if (stays)
            thing->points[kept++] = thing->points[i];
    }
    tide_assert(kept <= thing->count);
    thing->count = kept == TIDE_HISTORY_POINTS ? kept / 2 : kept; /* a tier that never stays */
}

static bool history_is_same(const tide_point *a, const tide_point *b)
{
    return a->tier == b->tier && fabs(a->value - b->value) <= 0.005 * fabs(a->value) &&
           fabs(a->second - b->second) <= 0.02 * fabs(a->second);
}

static void history_append(tide_thing *thing, tide_point point)
{
    if (thing->count != 0 && history_is_same(&thing->points[thing->count - 1], &point))
        return;
    if (thing->count == TIDE_HISTORY_POINTS)
        history_thin(thing);
    if (thing->count == thing->room) {
        thing->room = thing->room != 0 ? thing->room * 2 : 16;
        thing->points = tide_need(realloc(thing->points, thing->room * sizeof *thing->points));
    }
    thing->points[thing->count++] = point;
}

static void history_keep(json_t **place, json_t *value)
{
    json_decref(*place);
    *place = json_incref(value);
}

/* A plan for no types knows none. */
static bool history_varies(const json_t *before, const json_t *now)
{
    const json_t *old = json_object_get(before, "types"), *types = json_object_get(now, "types");
    return json_array_size(old) != 0 && json_array_size(types) != 0 && !json_equal(old, types);
}

static void history_add_object(tide_things *things, json_t *object, uint64_t now,
                               history_state *state, size_t *beyond)
{
    uint64_t id = tide_value_count(object, "id");
    tide_thing *thing = history_find(things, id);
    if (thing == NULL && things->count == TIDE_HISTORY_THINGS) {
        *beyond += 1;
        return;
    }
    thing = thing != NULL ? thing : history_new(things, id);
    if (thing->first == NULL) {
        thing->first = json_incref(object);
        thing->first_ns = now;
    }
    thing->varied = thing->varied || history_varies(thing->last, object);
    history_keep(&thing->last, object);
    thing->last_ns = now;
    tide_point point = state(object);
    point.time_ns = now;
    history_append(thing, point);
}

static void history_add_list(tide_things *things, const json_t *list, uint64_t now,
                             history_state *state)
{
    json_t *object;
    size_t i, beyond = 0;
    things->cursor = 0;
    json_array_foreach(list, i, object) history_add_object(things, object, now, state, &beyond);
    things->left_out = beyond > things->left_out ? beyond : things->left_out;
    for (i = 0; i < things->count; i++) /* what is gone runs and holds nothing from now on */
        if (things->each[i]->last_ns != now)
            history_append(things->each[i], (tide_point){.time_ns = now, .tier = -1});
}

static void history_begin_anew(tide_history *history)
{
    json_t *head = json_incref(history->head);
    tide_history_free(history);
    history->head = head;
}

static void history_add_facts(tide_history *history, json_t *facts)
{
    uint64_t now = tide_value_count(facts, "time_ns");
    if (history->last != NULL &&
        tide_value_count(history->last, "since_ns") != tide_value_count(facts, "since_ns"))
        history_begin_anew(history);
    if (history->first == NULL) {
        history->first = json_incref(facts);
        history->first_ns = now;
    }
    history_keep(&history->last, facts);
    history->last_ns = now;
    history->documents++;
    history_add_list(&history->sites, json_object_get(facts, "sites"), now, history_of_site);
    history_add_list(&history->pools, json_object_get(facts, "pools"), now, history_of_pool);
    history_add_list(&history->buffers, json_object_get(facts, "buffers"), now, history_of_buffers);
}

static void history_add_event(tide_history *history, json_t *event)
{
    size_t count = history->event_count;
    if (count == TIDE_HISTORY_EVENTS) {
        history->events_left_out++;
        return;
    }
    if ((count & (count - 1)) == 0) /* a power of two: that many have room */
        history->events =
            tide_need(realloc(history->events, (count + !count) * 2 * sizeof *history->events));
    history->events[history->event_count++] = json_incref(event);
}

/* Of a site that is not kept there is no code, either. */
static void history_add_code(tide_history *history, json_t *line)
{
    tide_thing *site = history_find(&history->sites, tide_value_count(line, "site"));
    if (site == NULL)
        return;
    history_keep(&site->code, line);
    json_decref(site->machine);
    site->machine = NULL;
}

bool tide_history_add(tide_record_line what, json_t *line, void *user)
{
    tide_history *history = user;
    tide_assert(json_is_object(line));
    switch (what) {
    case TIDE_RECORD_HEAD: history_keep(&history->head, line); return true;
    case TIDE_RECORD_FACTS: history_add_facts(history, line); return true;
    case TIDE_RECORD_EVENT: history_add_event(history, line); return true;
    case TIDE_RECORD_CODE: history_add_code(history, line); return true;
    case TIDE_RECORD_GAP: history->events_left_out += tide_value_count(line, "gap"); return true;
    case TIDE_RECORD_END: history_keep(&history->end, line); return true;
    }
    return false;
}

void tide_history_begin_with_events(tide_history *history)
{
    tide_assert(history->documents == 1);
    for (size_t i = 0; i < history->event_count; i++) {
        uint64_t time_ns = tide_value_count(history->events[i], "time_ns");
        if (time_ns < history->first_ns)
            history->first_ns = time_ns;
    }
    for (size_t i = 0; i < history->sites.count; i++)
        history->sites.each[i]->points[0].time_ns = history->first_ns;
    for (size_t i = 0; i < history->event_count; i++) {
        uint64_t time_ns = tide_value_count(history->events[i], "time_ns");
        tide_thing *site =
            history_find(&history->sites, tide_value_count(history->events[i], "site"));
        if (site != NULL && time_ns <= history->last_ns)
            site->points[0].time_ns = time_ns;
    }
}

static void history_free_things(tide_things *things)
{
    for (size_t i = 0; i < things->count; i++) {
        json_decref(things->each[i]->first);
        json_decref(things->each[i]->last);
        json_decref(things->each[i]->code);
        json_decref(things->each[i]->machine);
        free(things->each[i]->points);
        free(things->each[i]);
    }
    free(things->each);
}

void tide_history_free(tide_history *history)
{
    history_free_things(&history->sites);
    history_free_things(&history->pools);
    history_free_things(&history->buffers);
    for (size_t i = 0; i < history->event_count; i++)
        json_decref(history->events[i]);
    free(history->events);
    json_decref(history->head);
    json_decref(history->end);
    json_decref(history->first);
    json_decref(history->last);
    *history = (tide_history){0};
}

/* A site weighs the time that it took, or its uses where no use was measured; the rest what it held
 * at most. */
static double history_weight(const tide_history *history, const tide_thing *thing)
{
    double most = 0, use_ns = tide_value_number(thing->last, "use_ns");
    if (json_object_get(thing->last, "tier") != NULL)
        return tide_history_grown(history, thing, "uses") * (use_ns > 0 ? use_ns : 1);
    for (size_t i = 0; i < thing->count; i++)
        most = fmax(most, thing->points[i].value);
    return most;
}

static int history_compare(const void *a, const void *b, void *history)
{
    const tide_thing *left = *(tide_thing *const *)a, *right = *(tide_thing *const *)b;
    double l = history_weight(history, left), r = history_weight(history, right);
    if (l != r)
        return l < r ? 1 : -1;
    return left->id > right->id ? 1 : -1; /* ids differ: the same each time */
}

void tide_history_sort(tide_history *history)
{
    tide_things *const all[] = {&history->sites, &history->pools, &history->buffers};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->count > 1)
            qsort_r(all[i]->each, all[i]->count, sizeof *all[i]->each, history_compare, history);
}

double tide_history_use_ns(const json_t *site, const char *tier)
{
    const json_t *rival;
    size_t i;
    json_array_foreach(json_object_get(site, "rivals"), i, rival)
    {
        if (strcmp(tide_value_text(rival, "tier"), tier) == 0)
            return tide_value_number(rival, "ns");
    }
    return strcmp(tide_value_text(site, "tier"), tier) == 0 ? tide_value_number(site, "use_ns") : 0;
}

double tide_history_duration(const tide_history *history)
{
    tide_assert(history->last_ns >= history->first_ns);
    return history->last_ns > history->first_ns ? (double)(history->last_ns - history->first_ns)
                                                : 1;
}

double tide_history_grown(const tide_history *history, const tide_thing *thing, const char *key)
{
    double before = thing->first_ns > history->first_ns ? 0 : tide_value_number(thing->first, key);
    double grown = tide_value_number(thing->last, key) - before;
    if (history->documents == 1 || thing->first == thing->last)
        return tide_value_number(thing->last, key); /* all that is known of it */
    return grown > 0 && isfinite(grown) ? grown : 0;
}

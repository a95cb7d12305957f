/* SPDX-License-Identifier: MIT */
/* What a record tells of each site, pool and buffer cache over time, in bounded memory. */
#ifndef TIDEPOOL_PROFILER_REPORT_HISTORY_H
#define TIDEPOOL_PROFILER_REPORT_HISTORY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/record/read.h"

/* Most of each that is kept; the rest is counted. */
enum { TIDE_HISTORY_THINGS = 4096, TIDE_HISTORY_POINTS = 1024, TIDE_HISTORY_EVENTS = 65536 };

/* A state, from this moment on. */
typedef struct tide_point {
    uint64_t time_ns;
    int tier;      /* sites: as tide_tier; others: 0                                     */
    double value;  /* sites: ns of a use; pools: bytes held; buffers: bytes live and cached */
    double second; /* pools and buffers: bytes live                                      */
} tide_point;

/* The states of one thing, in order of time. Of more than TIDE_HISTORY_POINTS every other one that
 * changed no tier is forgotten. */
typedef struct tide_thing {
    uint64_t id;
    json_t *first, *last; /* as the first and the last document that had it told it */
    json_t *code;         /* sites: the record's last line about its code, or NULL   */
    json_t *machine;      /* that code as text, null if it cannot be had, or NULL    */
    uint64_t first_ns, last_ns;
    bool varied; /* two documents told different types of it */
    tide_point *points;
    size_t count, room;
} tide_thing;

typedef struct tide_things {
    tide_thing **each;
    size_t count, cursor;
    size_t left_out; /* most that one document told of beyond TIDE_HISTORY_THINGS */
} tide_things;

typedef struct tide_history {
    json_t *head;         /* of the record, or NULL */
    json_t *end;          /* or NULL                */
    json_t *first, *last; /* facts documents, or NULL */
    uint64_t first_ns, last_ns;
    uint64_t documents, events_left_out;
    tide_things sites, pools, buffers;
    json_t **events;
    size_t event_count;
} tide_history;

/* A tide_record_visit; `user` is the history, all zero at first. Facts of another program that the
 * process has executed end what was before: its things are other ones, whatever their ids. */
bool tide_history_add(tide_record_line what, json_t *line, void *user);

/* For a history of one document, which alone tells nothing of the time before it: that begins with the
 * first event, and a site has had its plan since its last one. */
void tide_history_begin_with_events(tide_history *history);

void tide_history_free(tide_history *history);

/* From the first document to the last, in ns; at least 1. */
double tide_history_duration(const tide_history *history);

/* What a count grew by in the record: a thing that came later began with 0. */
double tide_history_grown(const tide_history *history, const tide_thing *thing, const char *key);

/* Puts the weightiest first: sites by the time that they took, the rest by the most that it held. */
void tide_history_sort(tide_history *history);

/* What a use of the site takes by that tier, as it says; 0: not known. */
double tide_history_use_ns(const json_t *site, const char *tier);

#endif

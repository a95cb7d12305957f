/* SPDX-License-Identifier: MIT */
/* Reads a record: JSON lines, first what was recorded, then facts and events in order of time, last
 * how the program ended. The file may come from anywhere. */
#ifndef TIDEPOOL_PROFILER_RECORD_READ_H
#define TIDEPOOL_PROFILER_RECORD_READ_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { TIDE_RECORD_VERSION = 1, TIDE_FACTS_VERSION = 1 };

/* Longest line that is read, in bytes: what a process answered, written anew. */
enum { TIDE_RECORD_LINE_MAX = 96 << 20 };

typedef enum tide_record_line {
    TIDE_RECORD_HEAD,  /* the record's first line       */
    TIDE_RECORD_FACTS, /* a facts document              */
    TIDE_RECORD_EVENT, /* an event                      */
    TIDE_RECORD_CODE,  /* what a site's code is made of */
    TIDE_RECORD_GAP,   /* so many events were not kept  */
    TIDE_RECORD_END    /* the record's last line        */
} tide_record_line;

/* Called for each line in order. `line` is an object, and is given back afterwards: take a
 * reference to what is to stay. False ends the reading, as memory that is short does. */
typedef bool tide_record_visit(tide_record_line what, json_t *line, void *user);

typedef struct tide_record_outcome {
    size_t lines; /* good ones                                                                */
    bool whole;   /* it has its last line, and nothing but good ones                          */
    char problem[256]; /* if not: one line that names the file and its line; else ""          */
} tide_record_outcome;

/* False if the file cannot be read or is no record: then `visit` was not called. True also for one
 * that is damaged: all lines before the damage were visited, and `outcome` says where it is. */
bool tide_record_read(const char *path, tide_record_visit *visit, void *user,
                      tide_record_outcome *outcome);

/* Is it a facts document of a version that is understood? Else *why says what it is, if not
 * NULL. */
bool tide_record_is_facts(const json_t *document, const char **why);

#endif

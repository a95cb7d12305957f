/* SPDX-License-Identifier: MIT */
/* Reads a record, line by line. */
#define _GNU_SOURCE
#include "profiler/record/read.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "profiler/record/value.h"
#include "runtime/base/assert.h"

typedef struct record_reader {
    FILE *file;
    const char *path;
    char *text; /* the line */
    size_t room;
    uint64_t time_ns; /* of the last document */
    tide_record_visit *visit;
    void *user;
    tide_record_outcome *outcome;
} record_reader;

/* Keeps what is wrong, with the file and the line behind the last good one. False. */
__attribute__((format(printf, 2, 3))) static bool read_refuse(record_reader *reader,
                                                              const char *format, ...)
{
    char path[128], what[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    tide_value_plain(path, sizeof path, reader->path);
    for (char *c = what; *c != 0; c++)
        *c = (unsigned char)*c < ' ' || *c == 127 ? '?' : *c;
    snprintf(reader->outcome->problem, sizeof reader->outcome->problem, "%s:%zu: %.*s", path,
             reader->outcome->lines + 1, (int)(sizeof reader->outcome->problem - 150), what);
    reader->outcome->whole = false;
    return false;
}

/* The next line. NULL, refused, where there is none: a record's last line is read before. */
static json_t *read_line(record_reader *reader)
{
    json_error_t error;
    json_t *line = NULL;
    ssize_t got = getline(&reader->text, &reader->room, reader->file);
    size_t length = got > 0 ? (size_t)got : 0;
    if (ferror(reader->file))
        read_refuse(reader, "%s", strerror(errno));
    else if (length == 0)
        read_refuse(reader, "the record ends without its last line");
    else if (length > TIDE_RECORD_LINE_MAX)
        read_refuse(reader, "the line is longer than %d MiB", TIDE_RECORD_LINE_MAX >> 20);
    else if (reader->text[length - 1] != '\n')
        read_refuse(reader, "the record ends within this line");
    else if ((line = json_loadb(reader->text, length, JSON_REJECT_DUPLICATES, &error)) == NULL)
        read_refuse(reader, "no JSON: %s", error.text);
    if (json_is_object(line) || line == NULL)
        return line;
    read_refuse(reader, "no JSON object");
    json_decref(line);
    return NULL;
}

static bool read_is_list(const json_t *document, const char *key)
{
    const json_t *list = json_object_get(document, key), *item;
    size_t i;
    if (list == NULL)
        return true;
    if (!json_is_array(list))
        return false;
    json_array_foreach(list, i, item)
    {
        if (!json_is_object(item) || tide_value_count(item, "id") == 0)
            return false;
    }
    return true;
}

bool tide_record_is_facts(const json_t *document, const char **why)
{
    const char *wrong = NULL;
    if (strcmp(tide_value_text(document, "format"), "tidepool-facts") != 0)
        wrong = "no facts document";
    else if (tide_value_count(document, "format_version") != TIDE_FACTS_VERSION)
        wrong = "a facts document of another version";
    else if (tide_value_count(document, "time_ns") == 0)
        wrong = "a facts document without a time";
    else if (!read_is_list(document, "pools") || !read_is_list(document, "sites") ||
             !read_is_list(document, "buffers"))
        wrong = "a facts document whose pools, sites or buffers are no list of objects with an id";
    if (why != NULL)
        *why = wrong;
    return wrong == NULL;
}

/* Which line is it? False, refused, where it is none of a record. */
static bool read_kind(record_reader *reader, const json_t *line, tide_record_line *kind)
{
    const char *format = tide_value_text(line, "format"), *why = NULL;
    if (json_object_get(line, "end") != NULL || json_object_get(line, "gap") != NULL) {
        *kind = json_object_get(line, "end") != NULL ? TIDE_RECORD_END : TIDE_RECORD_GAP;
        return true;
    }
    if (strcmp(format, "tidepool-event") == 0) {
        *kind = TIDE_RECORD_EVENT;
        return tide_value_count(line, "time_ns") != 0 ||
               read_refuse(reader, "an event without a time");
    }
    if (strcmp(format, "tidepool-code") == 0) {
        *kind = TIDE_RECORD_CODE;
        return tide_value_count(line, "site") != 0 || read_refuse(reader, "code of no site");
    }
    *kind = TIDE_RECORD_FACTS;
    if (!tide_record_is_facts(line, &why))
        return read_refuse(reader, "%s", why);
    uint64_t time_ns = tide_value_count(line, "time_ns");
    if (time_ns < reader->time_ns)
        return read_refuse(reader, "time goes back here");
    reader->time_ns = time_ns;
    return true;
}

static bool read_head(record_reader *reader)
{
    json_t *line = read_line(reader);
    bool good = line != NULL;
    if (good && strcmp(tide_value_text(line, "format"), "tidepool-record") != 0)
        good = read_refuse(reader, "no record of tidepool");
    if (good && tide_value_count(line, "format_version") != TIDE_RECORD_VERSION)
        good = read_refuse(reader, "a record of version %llu; version %d is understood",
                           (unsigned long long)tide_value_count(line, "format_version"),
                           TIDE_RECORD_VERSION);
    if (good && !reader->visit(TIDE_RECORD_HEAD, line, reader->user))
        good = read_refuse(reader, "memory is short");
    json_decref(line);
    reader->outcome->lines += good;
    return good;
}

/* Reads one line of the rest. False at the end, whichever. */
static bool read_next(record_reader *reader)
{
    tide_record_line kind = TIDE_RECORD_END;
    json_t *line = read_line(reader);
    bool good = line != NULL && read_kind(reader, line, &kind);
    if (good && !reader->visit(kind, line, reader->user))
        good = read_refuse(reader, "memory is short");
    json_decref(line);
    reader->outcome->lines += good;
    reader->outcome->whole = good && kind == TIDE_RECORD_END;
    return good && kind != TIDE_RECORD_END;
}

bool tide_record_read(const char *path, tide_record_visit *visit, void *user,
                      tide_record_outcome *outcome)
{
    record_reader reader = {.path = path, .visit = visit, .user = user, .outcome = outcome};
    struct stat what;
    tide_assert(path != NULL && visit != NULL);
    *outcome = (tide_record_outcome){0};
    reader.file = fopen(path, "re");
    if (reader.file == NULL || fstat(fileno(reader.file), &what) != 0 || S_ISDIR(what.st_mode)) {
        char plain[128];
        tide_value_plain(plain, sizeof plain, path);
        snprintf(outcome->problem, sizeof outcome->problem, "%s: %s", plain,
                 strerror(reader.file == NULL ? errno : EISDIR));
        if (reader.file != NULL)
            fclose(reader.file);
        return false;
    }
    bool good = read_head(&reader);
    while (good && read_next(&reader))
        continue;
    if (outcome->whole && getc(reader.file) != EOF)
        read_refuse(&reader, "more lines behind the last one");
    tide_assert(outcome->whole == (outcome->problem[0] == 0));
    free(reader.text);
    fclose(reader.file);
    return good;
}

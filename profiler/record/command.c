/* SPDX-License-Identifier: MIT */
/* tidepool record: runs a program, looks at its facts and events now and then, and keeps them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "profiler/record/child.h"
#include "profiler/record/look.h"
#include "profiler/record/output.h"
#include "profiler/record/read.h"
#include "profiler/tool/tool.h"
#include "runtime/base/assert.h"

enum { RECORD_SOON_MS = 5 };      /* between tries, until it listens              */
enum { RECORD_ANSWER_MS = 2000 }; /* for an answer; signals wait for so long, too */
enum { RECORD_BYTES_MS = 400 };   /* written in a millisecond at most, on the average */

_Static_assert((int)TIDE_RECORD_LINE_MAX > (int)TOOL_LINE_MAX, "what is kept can be read");

typedef struct record_job {
    const char *path, *folder;
    int period_ms;
    char **args;
    tide_child child;
    tide_output output;
    tide_look look;
    size_t documents;
    long written;        /* bytes of the record, when it was looked last */
    json_int_t time_ns;  /* of the last facts that are kept */
    char last[PATH_MAX]; /* a file for what it writes when it ends; "": none */
} record_job;

static void record_put(record_job *job, const json_t *line)
{
    (void)json_dumpf(line, job->output.file, JSON_COMPACT);
    fputc('\n', job->output.file);
}

/* Until the next look: documents of many pools and sites come more rarely, so that a record has less
 * than half a megabyte for each second. */
static int record_pause(record_job *job)
{
    long written = ftell(job->output.file);
    int least = (int)((written - job->written) / RECORD_BYTES_MS);
    tide_assert(written >= job->written);
    job->written = written;
    return least > job->period_ms ? least : job->period_ms;
}

static void record_put_new(record_job *job, json_t *line)
{
    record_put(job, line);
    json_decref(line);
}

static void record_begin(record_job *job)
{
    struct timespec now;
    json_t *program = json_array();
    clock_gettime(CLOCK_REALTIME, &now);
    for (char **word = job->args; *word != NULL; word++) {
        json_t *text = json_string(*word); /* NULL unless it is UTF-8 */
        json_array_append_new(program, text != NULL ? text : json_string("?"));
    }
    record_put_new(job, json_pack("{s:s,s:i,s:o,s:I,s:I,s:i}", "format", "tidepool-record",
                                  "format_version", TIDE_RECORD_VERSION, "program", program, "pid",
                                  (json_int_t)job->child.pid, "started_wall_ns",
                                  (json_int_t)now.tv_sec * 1000000000 + now.tv_nsec, "period_ms",
                                  job->period_ms));
}

static void record_end(record_job *job)
{
    int status = job->child.status;
    json_t *end = WIFSIGNALED(status) ? json_pack("{s:i}", "signal", WTERMSIG(status))
                                      : json_pack("{s:i}", "exit_status", WEXITSTATUS(status));
    record_put_new(job, json_pack("{s:o}", "end", end));
}

/* A tide_record_visit. */
static bool record_keep(tide_record_line what, json_t *line, void *user)
{
    record_job *job = user;
    job->documents += what == TIDE_RECORD_FACTS;
    if (what == TIDE_RECORD_FACTS)
        job->time_ns = json_integer_value(json_object_get(line, "time_ns"));
    record_put(job, line);
    return !ferror(job->output.file);
}

/* ---- what it writes when it ends ---- */

/* Beside the record, from the root, for the program may change its folder. False: the name is too
 * long. */
static bool record_name_last(record_job *job)
{
    char here[PATH_MAX] = "";
    if (job->path[0] != '/' && getcwd(here, sizeof here) == NULL)
        return false;
    int length = snprintf(job->last, sizeof job->last, "%s%s%s.last-XXXXXX", here,
                          here[0] != 0 ? "/" : "", job->path);
    return length > 0 && (size_t)length < sizeof job->last;
}

/* A program may end before anybody looks at it, and always ends after the last look. So it writes
 * its facts to a file of ours (the setting `stats`), unless its user wants them elsewhere. */
static int record_start(record_job *job)
{
    int made = getenv("TIDEPOOL_STATS") == NULL && record_name_last(job)
                   ? mkostemp(job->last, O_CLOEXEC)
                   : -1;
    if (made >= 0) {
        close(made);
        (void)setenv("TIDEPOOL_STATS", "json", 1);
        (void)setenv("TIDEPOOL_STATS_FILE", job->last, 1);
    } else {
        job->last[0] = 0;
    }
    (void)setenv("TIDEPOOL_LISTEN", "1", 1);
    return tide_child_start(&job->child, job->args);
}

static void record_drop_last(record_job *job)
{
    if (job->last[0] != 0)
        (void)unlink(job->last);
    job->last[0] = 0;
}

/* Its own: those that it started may have written there, too. While it ends it may still be looked
 * at; then that was the last. */
static void record_take_last(record_job *job)
{
    FILE *in = job->last[0] != 0 ? fopen(job->last, "re") : NULL;
    char *text = NULL;
    size_t room = 0;
    for (ssize_t length; in != NULL && (length = getline(&text, &room, in)) > 0;) {
        json_t *line = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, NULL);
        if (json_integer_value(json_object_get(line, "pid")) == job->child.pid &&
            tide_record_is_facts(line, NULL) &&
            json_integer_value(json_object_get(line, "time_ns")) >= job->time_ns)
            (void)record_keep(TIDE_RECORD_FACTS, line, job);
        json_decref(line);
    }
    free(text);
    if (in != NULL)
        fclose(in);
    record_drop_last(job);
}

/* ---- the command ---- */

static int record_run(record_job *job)
{
    int error = record_start(job);
    if (error != 0) {
        record_drop_last(job);
        tide_output_drop(&job->output);
        return tool_complain(error == ENOENT ? 127 : 126, "%.200s: %s", job->args[0],
                             strerror(error));
    }
    job->look =
        (tide_look){.pid = job->child.pid, .folder = job->folder, .timeout_ms = RECORD_ANSWER_MS};
    record_begin(job);
    for (int wait = 1; !tide_child_wait(&job->child, wait);) {
        bool answered = tide_look_once(&job->look, record_keep, job);
        int pause = record_pause(job);
        wait = answered || pause < RECORD_SOON_MS ? pause : RECORD_SOON_MS;
    }
    tide_look_end(&job->look);
    record_take_last(job);
    record_end(job);
    int code = tide_child_code(&job->child);
    if (job->documents == 0) {
        tide_output_drop(&job->output);
        tool_complain(TOOL_NOBODY,
                      "%.200s told nothing: is it linked to Tidepool, with "
                      "libtidepool-listen beside the library?",
                      job->args[0]);
        return code != 0 ? code : TOOL_NOBODY;
    }
    bool written = tide_output_end(&job->output);
    return code != 0 || written ? code : TOOL_NO;
}

int tool_record(int count, char **args)
{
    tool_options options;
    int code = tool_options_read(&count, args, "+opd", 1, -1, &options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    if (options.output == NULL || strcmp(options.output, "-") == 0)
        return tool_complain(TOOL_USAGE, "record: name a file for it: -o FILE; the standard output "
                                         "is the program's");
    record_job job = {.path = options.output,
                      .folder = options.folder,
                      .period_ms = options.period_ms,
                      .args = args + 1};
    args[count] = NULL;
    return tide_output_open(&job.output, job.path) ? record_run(&job) : TOOL_NO;
}

/* SPDX-License-Identifier: MIT */
/* tidepool web: the page of a process that runs, served while it runs. The process is looked at only
 * while somebody looks at the page, at most five times a second; what was seen is kept. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profiler/metrics/serve.h"
#include "profiler/record/look.h"
#include "profiler/report/code.h"
#include "profiler/report/history.h"
#include "profiler/report/page.h"
#include "profiler/tool/tool.h"
#include "runtime/base/assert.h"

enum { LIVE_LOOK_MS = 200 };

typedef struct live_job {
    tide_look look;
    tide_history history;
    long long looked_ms; /* when it was looked at last; 0: never */
} live_job;

static long long live_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A document of an earlier moment is of another process: the history begins anew. */
static bool live_keep(tide_record_line what, json_t *line, void *user)
{
    live_job *job = user;
    json_int_t time_ns = json_integer_value(json_object_get(line, "time_ns"));
    if (what == TIDE_RECORD_FACTS && (uint64_t)time_ns < job->history.last_ns)
        tide_history_free(&job->history);
    return tide_history_add(what, line, &job->history);
}

/* Looks, unless that was done just now. False if the process gives no answer. */
static bool live_look(live_job *job)
{
    long long now = live_now_ms();
    if (now - job->looked_ms < LIVE_LOOK_MS)
        return true;
    if (!tide_look_once(&job->look, live_keep, job))
        return false;
    job->looked_ms = now;
    return true;
}

/* Of a process that has ended the page shows what was seen, but there are no newer data. */
static int live_answer(const char *path, FILE *out, const char **type, void *user)
{
    live_job *job = user;
    bool page = strcmp(path, "/") == 0;
    if (!live_look(job) && (!page || job->history.last == NULL)) {
        fprintf(out, "%s\n", job->look.client.error);
        return 503;
    }
    tide_code_make(&job->history);
    char *data = tide_page_data(&job->history, "");
    *type = page ? "text/html; charset=utf-8" : "application/json; charset=utf-8";
    if (page)
        tide_page_write(out, data, true);
    else
        fputs(data, out);
    free(data);
    return 200;
}

int tool_web(int count, char **args)
{
    static const char *const paths[] = {"/", "/data.json", NULL};
    tool_options options;
    int code = tool_options_read(&count, args, "ltd", 1, 1, &options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    pid_t pid;
    code = tool_process_of(args[1], &options, &pid);
    if (code != TOOL_OK)
        return code;
    if (!tide_page_is_built())
        return tool_complain(TOOL_NO,
                             "this tidepool was built without libjs-chart.js, so it makes no page");
    live_job job = {
        .look = {.pid = pid, .folder = options.folder, .timeout_ms = options.timeout_ms}};
    if (!tide_look_once(&job.look, live_keep, &job)) /* before a port is taken for nothing */
        code = tool_client_complain(&job.look.client, job.look.code);
    else
        code = tide_serve(options.listen != NULL ? options.listen : "0", paths, live_answer, &job);
    tide_look_end(&job.look);
    tide_history_free(&job.history);
    return code;
}

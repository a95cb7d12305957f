/* SPDX-License-Identifier: MIT */
/* The page of a process that runs. */
#define _GNU_SOURCE
#include "profiler/report/live.h"

#include <getopt.h>
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

enum { LIVE_ANSWER_MS = 2000, LIVE_LOOK_MS = 200 };

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
static int live_answer(const char *path, const char *accept, FILE *out, const char **type,
                       void *user)
{
    live_job *job = user;
    bool page = strcmp(path, "/") == 0;
    (void)accept;
    if (!live_look(job) && (!page || job->history.last == NULL)) {
        fprintf(out, "%s\n", job->look.client.error);
        return 503;
    }
    tide_code_make(&job->history);
    char *data = tide_page_data(&job->history, "");
    if (data == NULL)
        return 500;
    *type = page ? "text/html; charset=utf-8" : "application/json; charset=utf-8";
    if (page)
        tide_page_write(out, data, true);
    else
        fputs(data, out);
    free(data);
    return 200;
}

int tide_live_serve(const char *where, pid_t pid, const char *folder)
{
    static const char *const paths[] = {"/", "/data.json", NULL};
    live_job job = {.look = {.pid = pid, .folder = folder, .timeout_ms = LIVE_ANSWER_MS}};
    tide_assert(pid > 0);
    if (!tide_page_is_built())
        return tool_complain(TOOL_NO,
                             "this tidepool was built without libjs-chart.js, so it makes no page");
    int code = TOOL_OK;
    if (!tide_look_once(&job.look, live_keep, &job)) /* before a port is taken for nothing */
        code = tool_client_complain(&job.look.client, job.look.code);
    else
        code = tide_serve(where, paths, live_answer, &job);
    tide_look_end(&job.look);
    tide_history_free(&job.history);
    return code;
}

int tide_live_run(const char *where, int count, char **args, const char *folder)
{
    if (count != 2)
        return tool_complain(TOOL_USAGE, "%s: name one process", args[0]);
    pid_t pid = tool_read_pid(args[1]);
    return pid > 0 ? tide_live_serve(where, pid, folder) : TOOL_USAGE;
}

static int live_usage(void)
{
    puts("usage: tidepool web [OPTION]... PID\n\n"
         "Serves the report of a process while it runs.\n\n"
         "  -l, --listen [ADDRESS:]PORT  serve there; without an address at 127.0.0.1 (port 0: a "
         "free one)\n"
         "  -d, --folder FOLDER          look for the socket there\n"
         "  -h, --help                   print this");
    return TOOL_OK;
}

int tool_web(int count, char **args)
{
    static const struct option words[] = {{"listen", required_argument, NULL, 'l'},
                                          {"folder", required_argument, NULL, 'd'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    const char *where = "127.0.0.1:0", *folder = NULL;
    optind = 0;
    opterr = 0;
    for (int letter; (letter = getopt_long(count, args, "l:d:h", words, NULL)) != -1;) {
        switch (letter) {
        case 'l': where = optarg; break;
        case 'd': folder = optarg; break;
        case 'h': return live_usage();
        default: return tool_complain(TOOL_USAGE, "web: see tidepool web --help");
        }
    }
    args[optind - 1] = args[0];
    return tide_live_run(where, count - optind + 1, args + optind - 1, folder);
}

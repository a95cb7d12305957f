/* SPDX-License-Identifier: MIT */
/* tidepool metrics: the figures of a process once, or for whoever scrapes them. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/metrics/metrics.h"
#include "profiler/metrics/serve.h"
#include "profiler/record/need.h"
#include "profiler/tool/clean.h"
#include "profiler/tool/client.h"
#include "profiler/tool/tool.h"
#include "runtime/base/assert.h"
#include "runtime/base/memory_stream.h"

typedef struct metrics_job {
    tool_options options;
    pid_t pid;
    tide_metrics_memory *memory;
} metrics_job;

/* Asks the process. The caller gives the document back; NULL after `client` got its error. */
static json_t *metrics_ask(const metrics_job *job, tool_client *client, int *code)
{
    json_t *facts = NULL;
    *code = tool_client_open(client, job->pid, job->options.folder, job->options.timeout_ms);
    if (*code == TOOL_OK)
        *code = tool_client_facts(client, &facts);
    tide_assert((facts != NULL) == (*code == TOOL_OK));
    return facts;
}

/* Names are the process's: on a terminal they are made harmless, and for a program they stay as
 * they are. */
static void metrics_show(char *text)
{
    char *rest = text;
    if (!isatty(STDOUT_FILENO)) {
        (void)fputs(text, stdout);
        return;
    }
    for (char *line; (line = strsep(&rest, "\n")) != NULL && rest != NULL;)
        tool_say("%s", line);
}

static int metrics_print(const metrics_job *job)
{
    tool_client client;
    int code;
    char *text = NULL;
    size_t length = 0;
    json_t *facts = metrics_ask(job, &client, &code);
    tool_client_close(&client); /* its error stays */
    if (facts == NULL)
        return tool_client_complain(&client, code);
    FILE *out = tide_memory_stream_open(&text, &length);
    bool good = out != NULL && tide_metrics_of(out, facts, NULL,
                                               job->options.open_metrics ? TIDE_METRICS_OPEN
                                                                         : TIDE_METRICS_PROMETHEUS);
    good = tide_memory_stream_close(out, &text) && good;
    if (good)
        metrics_show(text);
    free(text);
    json_decref(facts);
    return good ? TOOL_OK : tool_complain(TOOL_NO, "memory is short");
}

/* One scrape. A process that is gone is no server's error of ours: 503 tells the scraper so. */
static int metrics_answer(const char *path, const char *accept, FILE *out, const char **type,
                          void *user)
{
    metrics_job *job = user;
    tool_client client;
    int code;
    (void)path;
    json_t *facts = metrics_ask(job, &client, &code);
    tool_client_close(&client); /* its error stays */
    *type = "text/plain; charset=utf-8";
    if (facts == NULL) {
        fprintf(out, "%s\n", client.error);
        return 503;
    }
    tide_metrics_format format = tide_metrics_accepted(accept);
    bool good = tide_metrics_remember(job->memory, facts) &&
                tide_metrics_of(out, facts, job->memory, format);
    json_decref(facts);
    *type = tide_metrics_type(format);
    return good ? 200 : 500;
}

int tool_metrics(int count, char **args)
{
    static const char *const paths[] = {"/metrics", NULL};
    metrics_job job = {0};
    int code = tool_options_read(&count, args, "lOtd", 1, 1, &job.options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    job.pid = tool_read_pid(args[1]);
    if (job.pid < 0)
        return TOOL_USAGE;
    if (job.options.listen == NULL)
        return metrics_print(&job);
    job.memory = tide_need(tide_metrics_memory_new());
    code = tide_serve(job.options.listen, paths, metrics_answer, &job);
    tide_metrics_memory_free(job.memory);
    return code;
}

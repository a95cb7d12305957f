/* SPDX-License-Identifier: MIT */
/* tidepool metrics: the figures of a process once, or for whoever scrapes them. A program that is
 * named is found again when it was started anew. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/metrics/metrics.h"
#include "profiler/metrics/serve.h"
#include "profiler/record/need.h"
#include "profiler/record/value.h"
#include "profiler/tool/clean.h"
#include "profiler/tool/client.h"
#include "profiler/tool/tool.h"
#include "runtime/base/assert.h"
#include "runtime/base/memory_stream.h"

typedef struct metrics_job {
    tool_options options;
    const char *program; /* its name; NULL: the process alone is meant */
    pid_t pid;           /* 0: of that name none was found yet         */
    tide_metrics_memory *memory;
} metrics_job;

/* Asks a process. The caller gives the document back; NULL after `client` got its error. */
static json_t *metrics_ask_process(const metrics_job *job, pid_t pid, tool_client *client,
                                   int *code)
{
    json_t *facts = NULL;
    *code = tool_client_open(client, pid, job->options.folder, job->options.timeout_ms);
    if (*code == TOOL_OK)
        *code = tool_client_facts(client, &facts);
    tool_client_close(client); /* its error stays */
    tide_assert((facts != NULL) == (*code == TOOL_OK));
    return facts;
}

/* The youngest process whose program has the name, in place of the one that was asked before. */
static json_t *metrics_find(metrics_job *job, tool_client *client, int *code)
{
    json_t *facts;
    *code = tool_client_find(client, job->program, &job->options, &facts);
    job->pid = facts != NULL ? client->pid : 0;
    tool_client_close(client);
    return facts;
}

static json_t *metrics_ask(metrics_job *job, tool_client *client, int *code)
{
    json_t *facts = job->pid != 0 ? metrics_ask_process(job, job->pid, client, code) : NULL;
    return facts != NULL || job->program == NULL ? facts : metrics_find(job, client, code);
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

static int metrics_print(metrics_job *job)
{
    tool_client client;
    int code;
    char *text = NULL;
    size_t length = 0;
    json_t *facts = metrics_ask(job, &client, &code);
    if (facts == NULL)
        return tool_client_complain(&client, code);
    FILE *out = tide_memory_stream_open(&text, &length);
    bool good = out != NULL && tide_metrics_of(out, facts, NULL);
    good = tide_memory_stream_close(out, &text) && good;
    if (good)
        metrics_show(text);
    free(text);
    json_decref(facts);
    return good ? TOOL_OK : tool_complain(TOOL_NO, "memory is short");
}

/* One scrape. A process that is gone is no server's error of ours: 503 tells the scraper so. */
static int metrics_answer(const char *path, FILE *out, const char **type, void *user)
{
    metrics_job *job = user;
    tool_client client;
    int code;
    (void)path;
    json_t *facts = metrics_ask(job, &client, &code);
    *type = "text/plain; charset=utf-8";
    if (facts == NULL) {
        fprintf(out, "%s\n", client.error);
        return 503;
    }
    bool good =
        tide_metrics_remember(job->memory, facts) && tide_metrics_of(out, facts, job->memory);
    json_decref(facts);
    *type = TIDE_METRICS_TYPE;
    return good ? 200 : 500;
}

int tool_metrics(int count, char **args)
{
    static const char *const paths[] = {"/metrics", NULL};
    metrics_job job = {0};
    int code = tool_options_read(&count, args, "ltd", 1, 1, &job.options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    if (args[1][strspn(args[1], "0123456789")] != '\0')
        job.program = args[1];
    else
        code = tool_process_of(args[1], &job.options, &job.pid);
    if (code != TOOL_OK)
        return code;
    if (job.options.listen == NULL)
        return metrics_print(&job);
    job.memory = tide_need(tide_metrics_memory_new());
    code = tide_serve(job.options.listen, paths, metrics_answer, &job);
    tide_metrics_memory_free(job.memory);
    return code;
}

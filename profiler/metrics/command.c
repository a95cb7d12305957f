/* SPDX-License-Identifier: MIT */
/* tidepool metrics: the figures of a process once, or for whoever scrapes them. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/metrics/metrics.h"
#include "profiler/metrics/serve.h"
#include "profiler/tool/clean.h"
#include "profiler/tool/client.h"
#include "profiler/tool/tool.h"
#include "runtime/base/assert.h"
#include "runtime/base/memory_stream.h"

typedef struct metrics_job {
    const char *folder, *listen, *pid_text;
    bool open_metrics;
    pid_t pid;
    tide_metrics_memory *memory;
} metrics_job;

enum { METRICS_TIMEOUT_MS = 5000 };

static int metrics_usage(void)
{
    puts("usage: tidepool metrics [--openmetrics] PID\n"
         "       tidepool metrics --listen [ADDRESS:]PORT PID\n\n"
         "Prints the figures of a process in Prometheus's text format, or answers to scrapes of\n"
         "http://ADDRESS:PORT/metrics, in OpenMetrics where that is asked for.\n\n"
         "  -l, --listen [ADDRESS:]PORT  answer there; without an address at 127.0.0.1\n"
         "  -O, --openmetrics            print OpenMetrics\n"
         "  -d, --folder FOLDER          look for the socket there\n"
         "  -h, --help                   print this");
    return TOOL_OK;
}

/* -1: go on. */
static int metrics_options(metrics_job *job, int count, char **args)
{
    static const struct option words[] = {{"listen", required_argument, NULL, 'l'},
                                          {"openmetrics", no_argument, NULL, 'O'},
                                          {"folder", required_argument, NULL, 'd'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    optind = 0;
    opterr = 0;
    for (int letter; (letter = getopt_long(count, args, "l:Od:h", words, NULL)) != -1;) {
        switch (letter) {
        case 'l': job->listen = optarg; break;
        case 'd': job->folder = optarg; break;
        case 'O': job->open_metrics = true; break;
        case 'h': return metrics_usage();
        default: return tool_complain(TOOL_USAGE, "metrics: see tidepool metrics --help");
        }
    }
    if (count - optind != 1)
        return tool_complain(TOOL_USAGE, "metrics: name one process");
    job->pid = tool_read_pid(args[optind]);
    return job->pid > 0 ? -1 : TOOL_USAGE;
}

/* Asks the process. The caller gives the document back; NULL after `client` got its error. */
static json_t *metrics_ask(const metrics_job *job, tool_client *client, int *code)
{
    json_t *facts = NULL;
    *code = tool_client_open(client, job->pid, job->folder, METRICS_TIMEOUT_MS);
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
    bool good = out != NULL &&
                tide_metrics_of(out, facts, NULL,
                                job->open_metrics ? TIDE_METRICS_OPEN : TIDE_METRICS_PROMETHEUS);
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
    metrics_job job = {0};
    int code = metrics_options(&job, count, args);
    if (code >= 0)
        return code;
    if (job.listen == NULL)
        return metrics_print(&job);
    static const char *const paths[] = {"/metrics", NULL};
    job.memory = tide_metrics_memory_new();
    if (job.memory == NULL)
        return tool_complain(TOOL_NO, "memory is short");
    code = tide_serve(job.listen, paths, metrics_answer, &job);
    tide_metrics_memory_free(job.memory);
    return code;
}

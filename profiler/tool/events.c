/* SPDX-License-Identifier: MIT */
/* tidepool events: what learning has done, and does. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/tool/client.h"
#include "profiler/tool/print.h"
#include "profiler/tool/tool.h"

enum { EVENTS_MAX = 65536 }; /* lines of one answer: a process keeps far less */

/* Also the beginning of a request: a serial is a number and nothing else. */
static int events_ask(tool_client *client, const tool_options *options)
{
    char request[96];
    const char *since = options->since != NULL ? options->since : "0";
    if (strspn(since, "0123456789") != strlen(since) || strlen(since) > 18 || since[0] == '\0') {
        snprintf(client->error, sizeof client->error, "'%.40s' is no number of an event", since);
        return TOOL_USAGE;
    }
    snprintf(request, sizeof request, "{\"%s\":\"events\",\"since\":%" PRIu64 "}",
             options->follow ? "follow" : "get", (uint64_t)strtoull(since, NULL, 10));
    return tool_client_send(client, request);
}

static void events_print(const json_t *event)
{
    char name[40], reason[120], detail[160];
    const char *more = tool_clean(tide_value_text(event, "detail"), detail, sizeof detail);
    tool_say("%8.0f %12.3f s  %-9s %-20s %-8s  %s%s%s", tide_value_number(event, "serial"),
             tide_value_number(event, "time_ns") * 1e-9, tide_value_text(event, "kind"),
             tool_clean(tide_value_text(event, "name"), name, sizeof name),
             tide_value_text(event, "tier"),
             tool_clean(tide_value_text(event, "reason"), reason, sizeof reason),
             more[0] != '\0' ? ": " : "", more);
}

/* TOOL_NO: that was the last. */
static int events_take(tool_client *client, const json_t *event, bool as_json)
{
    if (json_object_get(event, "end") != NULL)
        return TOOL_NO;
    if (json_object_get(event, "error") != NULL) {
        snprintf(client->error, sizeof client->error, "process %d: %.150s", (int)client->pid,
                 tide_value_text(event, "error"));
        return TOOL_BROKEN;
    }
    if (as_json)
        tool_print_json(event);
    else if (json_object_get(event, "gap") != NULL)
        tool_say("     ... %.0f events are missing", tide_value_number(event, "gap"));
    else
        events_print(event);
    return TOOL_OK;
}

/* While it follows, silence is no failure; the end of the process is an end. */
static int events_copy(tool_client *client, const tool_options *options)
{
    int code = TOOL_OK;
    for (int lines = 0; code == TOOL_OK && (lines < EVENTS_MAX || options->follow); lines++) {
        json_t *event;
        int wait = options->follow ? 1000 : options->timeout_ms;
        while ((code = tool_client_object(client, wait, &event)) == TOOL_NO && options->follow)
            if (fflush(stdout) != 0)
                return TOOL_OK;
        if (code != TOOL_OK)
            return TOOL_BROKEN;
        code = events_take(client, event, options->json);
        json_decref(event);
        if (options->follow && fflush(stdout) != 0)
            return TOOL_OK;
    }
    if (code == TOOL_OK)
        snprintf(client->error, sizeof client->error, "process %d: its answer has no end",
                 (int)client->pid);
    return code == TOOL_NO ? TOOL_OK : TOOL_BROKEN;
}

int tool_events(int count, char **args)
{
    tool_options options;
    tool_client client;
    int code = tool_options_read(&count, args, "jtdfs", 1, 1, &options);
    if (code == TOOL_OK)
        code = tool_client_open_named(&client, args[1], &options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    code = events_ask(&client, &options);
    if (code == TOOL_OK)
        code = events_copy(&client, &options);
    if (code != TOOL_OK)
        (void)tool_client_complain(&client, code);
    tool_client_close(&client);
    return code;
}

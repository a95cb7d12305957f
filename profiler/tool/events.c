/* SPDX-License-Identifier: MIT */
/* tidepool events: what learning has done, and does. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/tool/client.h"
#include "profiler/tool/print.h"
#include "profiler/tool/tool.h"
#include "runtime/base/assert.h"

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
static int events_take_line(tool_client *client, const char *line, size_t length, bool as_json)
{
    json_t *event = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
    int code = TOOL_OK;
    tide_assert(line[length] == '\0');
    if (json_object_get(event, "end") != NULL) {
        code = TOOL_NO;
    } else if (json_object_get(event, "error") != NULL) {
        snprintf(client->error, sizeof client->error, "process %d: %.150s", (int)client->pid,
                 tide_value_text(event, "error"));
        code = TOOL_BROKEN;
    } else if (!json_is_object(event)) {
        snprintf(client->error, sizeof client->error, "process %d: its answer is no JSON object",
                 (int)client->pid);
        code = TOOL_BROKEN;
    } else if (as_json) {
        tool_print_json(event);
    } else if (json_object_get(event, "gap") != NULL) {
        tool_say("     ... %.0f events are missing", tide_value_number(event, "gap"));
    } else {
        events_print(event);
    }
    json_decref(event);
    return code;
}

/* While it follows, silence is no failure; the end of the process is an end. */
static int events_copy(tool_client *client, const tool_options *options)
{
    for (int lines = 0;; lines++) {
        const char *line;
        size_t length;
        if (lines >= EVENTS_MAX && !options->follow) {
            snprintf(client->error, sizeof client->error, "process %d: its answer has no end",
                     (int)client->pid);
            return TOOL_BROKEN;
        }
        int code =
            tool_client_read(client, options->follow ? 1000 : options->timeout_ms, &line, &length);
        if (code == TOOL_NO && options->follow && fflush(stdout) == 0)
            continue;
        if (code == TOOL_OK)
            code = events_take_line(client, line, length, options->json);
        else if (code == TOOL_NO && !options->follow)
            return TOOL_BROKEN;
        if (options->follow && fflush(stdout) != 0)
            return TOOL_OK;
        if (code != TOOL_OK)
            return code == TOOL_NO ? TOOL_OK : code;
    }
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

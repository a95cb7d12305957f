/* SPDX-License-Identifier: MIT */
/* tidepool profile push, pull, watch: profiles to and from the fleet's store, by hand. */
#define _GNU_SOURCE
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tidepool/profile.h>
#include <tidepool/version.h>

#include "jit/tune/fleet.h"
#include "profiler/fleet/store.h"
#include "profiler/record/output.h"
#include "profiler/tool/client.h"
#include "profiler/tool/print.h"
#include "profiler/tool/tool.h"
#include "runtime/base/assert.h"

enum { WATCH_MS = 2000 };

typedef struct fleet_pulled {
    int texts, refused;
} fleet_pulled;

static void fleet_add(void *user, const char *text, size_t length, double weight)
{
    fleet_pulled *pulled = user;
    bool good = length <= FLEET_TEXT_MAX &&
                tide_fleet_read(text, length, pulled->texts > 0, weight) == TIDE_OK;
    pulled->texts += good;
    pulled->refused += !good;
}

/* What it has seen itself, by its socket. */
static int fleet_push_process(const char *pid, const fleet_url *url, const tool_options *options)
{
    char path[40], id[FLEET_ID_MAX], error[FLEET_ERROR_MAX], host[65] = "", member[128];
    tool_client client;
    json_t *answer = NULL;
    int code = tool_client_open_named(&client, pid, options);
    if (code != TOOL_OK)
        return code;
    code = tool_client_ask(&client, json_pack("{s:s, s:b}", "get", "profile", "own", 1), &answer);
    const char *text = json_string_value(json_object_get(answer, "profile"));
    snprintf(path, sizeof path, "/proc/%d/exe", (int)client.pid);
    (void)gethostname(host, sizeof host - 1); /* containers have the same numbers */
    snprintf(member, sizeof member, "process %d of %s", (int)client.pid, host);
    if (code != TOOL_OK)
        (void)tool_client_complain(&client, code);
    else if (text == NULL || tide_profile_read(text, strlen(text), false) != TIDE_OK)
        code = tool_complain(TOOL_BROKEN, "process %s: its answer is no profile", pid);
    else if (!fleet_identity(path, tide_version(), url, id, error) ||
             !fleet_push(url, id, member, text, strlen(text), options->timeout_ms, error))
        code = tool_complain(TOOL_NO, "%s", error);
    json_decref(answer);
    tool_client_close(&client);
    return code;
}

static int fleet_pull_program(const char *program, const fleet_url *url,
                              const tool_options *options, fleet_pulled *pulled)
{
    char id[FLEET_ID_MAX], error[FLEET_ERROR_MAX];
    *pulled = (fleet_pulled){0, 0};
    if (!fleet_identity(program, tide_version(), url, id, error) ||
        !fleet_pull(url, id, options->timeout_ms, fleet_add, pulled, error))
        return tool_complain(TOOL_NO, "%s", error);
    return TOOL_OK;
}

static int fleet_pull_to_file(const char *program, const fleet_url *url,
                              const tool_options *options)
{
    fleet_pulled pulled;
    tide_output output;
    int code = fleet_pull_program(program, url, options, &pulled);
    if (code != TOOL_OK)
        return code;
    if (pulled.texts == 0)
        return tool_complain(TOOL_NO, "the store has no profile of '%s'", program);
    if (!tide_output_open(&output, options->output != NULL ? options->output : "-"))
        return TOOL_NO;
    tide_assert(output.file != NULL);
    if (tide_profile_write(output.file) == TIDE_OK)
        return tide_output_end(&output) ? TOOL_OK : TOOL_NO;
    tide_output_drop(&output);
    return tool_complain(TOOL_NO, "%s", tide_error_message());
}

/* A line whenever it has changed, until the store is gone. */
static int fleet_watch(const char *program, const fleet_url *url, const tool_options *options)
{
    fleet_pulled pulled, before = {-1, -1};
    for (;;) {
        int code = fleet_pull_program(program, url, options, &pulled);
        if (code != TOOL_OK)
            return code;
        if (pulled.texts != before.texts || pulled.refused != before.refused)
            tool_say("%d profiles, %d refused", pulled.texts, pulled.refused);
        if (fflush(stdout) != 0)
            return TOOL_NO;
        before = pulled;
        (void)poll(NULL, 0, WATCH_MS);
    }
}

int tool_fleet(int count, char **args, const tool_options *options)
{
    fleet_url url;
    char error[FLEET_ERROR_MAX];
    if (count != 4)
        return tool_complain(TOOL_USAGE,
                             "profile: push PID URL, pull PROGRAM URL, watch PROGRAM URL");
    if (!fleet_url_read(args[3], &url, error))
        return tool_complain(TOOL_USAGE, "the store: %s", error);
    if (strcmp(args[1], "push") == 0)
        return fleet_push_process(args[2], &url, options);
    return strcmp(args[1], "pull") == 0 ? fleet_pull_to_file(args[2], &url, options)
                                        : fleet_watch(args[2], &url, options);
}

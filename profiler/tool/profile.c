/* SPDX-License-Identifier: MIT */
/* tidepool profile: texts of profiles saved from a process, and merged by the library. What is read
 * is checked by the library first, which refuses a text that is wrong. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include <tidepool/profile.h>

#include "profiler/record/output.h"
#include "profiler/tool/client.h"
#include "profiler/tool/print.h"
#include "profiler/tool/tool.h"
#include "runtime/base/assert.h"

static int profile_refuse(void)
{
    return tool_complain(TOOL_NO, "%s", tide_error_message());
}

/* ---- save, merge -------------------------------------------------------------------------- */

static int profile_write_text(const char *text, const char *path)
{
    tide_output output;
    if (!tide_output_open(&output, path != NULL ? path : "-"))
        return TOOL_NO;
    (void)fputs(text, output.file);
    return tide_output_end(&output) ? TOOL_OK : TOOL_NO;
}

static int profile_save(const char *pid, const tool_options *options)
{
    tool_client client;
    json_t *answer = NULL;
    int code = tool_client_open_named(&client, pid, options);
    if (code != TOOL_OK)
        return code;
    code = tool_client_ask(&client, json_pack("{s:s}", "get", "profile"), &answer);
    const char *text = json_string_value(json_object_get(answer, "profile"));
    if (code != TOOL_OK)
        (void)tool_client_complain(&client, code);
    else if (text == NULL || tide_profile_read(text, strlen(text), false) != TIDE_OK)
        code = tool_complain(TOOL_BROKEN, "process %d: its answer is no profile", (int)client.pid);
    else
        code = profile_write_text(text, options->output);
    json_decref(answer);
    tool_client_close(&client);
    return code;
}

static int profile_merge(int count, char **files, const tool_options *options)
{
    for (int i = 0; i < count; i++)
        if ((i == 0 ? tide_profile_load(files[i]) : tide_profile_merge(files[i])) != TIDE_OK)
            return profile_refuse();
    tide_output output;
    if (!tide_output_open(&output, options->output != NULL ? options->output : "-"))
        return TOOL_NO;
    if (tide_profile_write(output.file) == TIDE_OK)
        return tide_output_end(&output) ? TOOL_OK : TOOL_NO;
    tide_output_drop(&output);
    return profile_refuse();
}

static int profile_share(int count, char **args, const tool_options *options)
{
#ifdef TIDE_HAVE_HIREDIS
    return tool_fleet(count, args, options);
#else
    (void)count, (void)args, (void)options;
    return tool_complain(TOOL_NO, "this command was built without hiredis: it speaks to no store");
#endif
}

int tool_profile(int count, char **args)
{
    tool_options options;
    int code = tool_options_read(&count, args, "tdo", 2, -1, &options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    tide_assert(count >= 3);
    if (strcmp(args[1], "save") == 0 && count == 3)
        return profile_save(args[2], &options);
    if (strcmp(args[1], "merge") == 0)
        return profile_merge(count - 2, args + 2, &options);
    static const char *const stores[] = {"push", "pull", "watch"};
    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++)
        if (strcmp(args[1], stores[i]) == 0)
            return profile_share(count, args, &options);
    return tool_complain(TOOL_USAGE, "profile: save PID, merge FILE..., or push, pull, watch");
}

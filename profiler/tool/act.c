/* SPDX-License-Identifier: MIT */
/* tidepool pin, unpin, reset, declare, compile, set, trim: one request each. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/tool/client.h"
#include "profiler/tool/print.h"
#include "profiler/tool/tool.h"
#include "runtime/base/assert.h"

/* Digits only are a number; a site that is called so can be named by its number. */
json_t *tool_site_of(const char *text)
{
    if (text[0] != '\0' && strlen(text) < 19 && strspn(text, "0123456789") == strlen(text))
        return json_integer((json_int_t)strtoll(text, NULL, 10));
    return json_string(text);
}

json_t *tool_request_of_kind(json_t *request, const char *kind)
{
    if (request == NULL || kind == NULL ||
        json_object_set_new(request, "kind", json_string(kind)) == 0)
        return request;
    json_decref(request); /* without its kind it would be for another site */
    return NULL;
}

/* Takes the request over. */
static int act_ask(const char *pid, const tool_options *options, json_t *request)
{
    tool_client client;
    json_t *answer = NULL;
    int code = tool_client_open_named(&client, pid, options);
    if (code != TOOL_OK) {
        json_decref(request);
        return code;
    }
    code = tool_client_ask(&client, tool_request_of_kind(request, options->kind), &answer);
    if (code == TOOL_OK && !tide_value_flag(answer, "ok")) {
        snprintf(client.error, sizeof client.error, "process %d: its answer is none to that",
                 (int)client.pid);
        code = TOOL_BROKEN;
    }
    if (code != TOOL_OK)
        (void)tool_client_complain(&client, code);
    else if (options->json)
        tool_print_json(answer);
    json_decref(answer);
    tool_client_close(&client);
    return code;
}

static int act_on_site(int count, char **args, const char *verb)
{
    tool_options options;
    int code = tool_options_read(&count, args, "jtdk", 2, 2, &options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    return act_ask(args[1], &options,
                   json_pack("{s:s, s:o}", "do", verb, "site", tool_site_of(args[2])));
}

int tool_unpin(int count, char **args)
{
    return act_on_site(count, args, "unpin");
}

int tool_reset(int count, char **args)
{
    return act_on_site(count, args, "reset");
}

int tool_compile(int count, char **args)
{
    return act_on_site(count, args, "compile-now");
}

int tool_pin(int count, char **args)
{
    tool_options options;
    int code = tool_options_read(&count, args, "jtdk", 3, 3, &options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    return act_ask(
        args[1], &options,
        json_pack("{s:s, s:o, s:s}", "do", "pin", "site", tool_site_of(args[2]), "tier", args[3]));
}

int tool_declare(int count, char **args)
{
    tool_options options;
    int code = tool_options_read(&count, args, "jtdk", 3, -1, &options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    json_t *types = json_array();
    for (int i = 3; i < count && types != NULL; i++)
        if (json_array_append_new(types, json_string(args[i])) != 0) {
            json_decref(types); /* not some of them only */
            types = NULL;
        }
    return act_ask(args[1], &options,
                   json_pack("{s:s, s:o, s:o}", "do", "declare", "site", tool_site_of(args[2]),
                             "types", types));
}

int tool_set(int count, char **args)
{
    tool_options options;
    int code = tool_options_read(&count, args, "jtd", 3, 3, &options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    char *end;
    double value = strtod(args[3], &end);
    if (end == args[3] || *end != '\0' || !isfinite(value))
        return tool_complain(TOOL_USAGE, "'%.60s' is no number", args[3]);
    return act_ask(args[1], &options,
                   json_pack("{s:s, s:s, s:f}", "do", "set", "key", args[2], "value", value));
}

int tool_trim(int count, char **args)
{
    tool_options options;
    int code = tool_options_read(&count, args, "jtd", 2, 2, &options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    json_t *pool = tool_site_of(args[2]);
    if (!json_is_integer(pool)) {
        json_decref(pool);
        return tool_complain(TOOL_USAGE, "'%.60s' is no number of a pool", args[2]);
    }
    return act_ask(args[1], &options, json_pack("{s:s, s:o}", "do", "trim", "pool", pool));
}

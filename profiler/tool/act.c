/* SPDX-License-Identifier: MIT */
/* tidepool pin, unpin, reset, declare, compile, set, ask, tell, forget, trim: what a process is asked to do. */
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
    bool orders = json_object_get(request, "ask") == NULL; /* else it is a question */
    tool_client client;
    json_t *answer = NULL;
    int code = tool_client_open_named(&client, pid, options);
    if (code != TOOL_OK) {
        json_decref(request);
        return code;
    }
    code = tool_client_ask(&client, tool_request_of_kind(request, options->kind), &answer);
    if (code == TOOL_OK && orders && !tide_value_flag(answer, "ok")) {
        snprintf(client.error, sizeof client.error, "process %d: its answer is none to that",
                 (int)client.pid);
        code = TOOL_BROKEN;
    }
    if (code != TOOL_OK)
        (void)tool_client_complain(&client, code);
    else if (options->json || !orders)
        tool_print_json(answer);
    json_decref(answer);
    tool_client_close(&client);
    return code;
}

/* The texts as a list; NULL where JSON cannot hold one of them. */
static json_t *act_texts(int count, char **texts)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        if (json_array_append_new(list, json_string(texts[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* The verb, the site, and so many words more (< 0: one or more). */
static int act_on_site(int count, char **args, int words)
{
    tool_options options;
    const char *verb = strcmp(args[0], "compile") == 0 ? "compile-now" : args[0];
    int least = words < 0 ? 3 : 2 + words;
    int code = tool_options_read(&count, args, "jtdk", least, words < 0 ? -1 : least, &options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    json_t *site = tool_site_of(args[2]);
    tide_assert(count > least);
    if (words == 0)
        return act_ask(args[1], &options, json_pack("{s:s, s:o}", "do", verb, "site", site));
    if (words > 0)
        return act_ask(args[1], &options,
                       json_pack("{s:s, s:o, s:s}", "do", verb, "site", site, "tier", args[3]));
    return act_ask(args[1], &options,
                   json_pack("{s:s, s:o, s:o}", "do", verb, "site", site, "types",
                             act_texts(count - 3, args + 3)));
}

int tool_steer(int count, char **args)
{
    return act_on_site(count, args, 0);
}

int tool_pin(int count, char **args)
{
    return act_on_site(count, args, 1);
}

int tool_declare(int count, char **args)
{
    return act_on_site(count, args, -1);
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
    return act_ask(args[1], &options,
                   json_pack("{s:s, s:o}", "do", "trim", "pool", tool_site_of(args[2])));
}

/* ---- tunables ----------------------------------------------------------------------------- */

int tool_ask(int count, char **args)
{
    tool_options options;
    int code = tool_options_read(&count, args, "jtd", 2, 2, &options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    return act_ask(args[1], &options, json_pack("{s:s}", "ask", args[2]));
}

/* A knob's value, or a variant and its key. */
int tool_tell(int count, char **args)
{
    tool_options options;
    int code = tool_options_read(&count, args, "jtd", 3, 4, &options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    const char *text = args[count - 1];
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 18 || text[digits] != '\0')
        return tool_complain(
            TOOL_USAGE, "'%.60s' is no whole number: a knob's value, or a variant's key", text);
    json_int_t number = (json_int_t)strtoll(text, NULL, 10);
    tide_assert(count == 4 || count == 5);
    return act_ask(
        args[1], &options,
        count == 4 ? json_pack("{s:s, s:s, s:I}", "do", "tell", "tunable", args[2], "value", number)
                   : json_pack("{s:s, s:s, s:s, s:I}", "do", "tell", "tunable", args[2], "variant",
                               args[3], "row", number));
}

int tool_forget(int count, char **args)
{
    tool_options options;
    int code = tool_options_read(&count, args, "jtd", 2, 2, &options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    return act_ask(args[1], &options, json_pack("{s:s, s:s}", "do", "forget", "tunable", args[2]));
}

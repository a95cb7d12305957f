/* SPDX-License-Identifier: MIT */
/* tidepool tunables, ask, tell, forget: knobs and variants of a process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/tool/client.h"
#include "profiler/tool/print.h"
#include "profiler/tool/tool.h"
#include "runtime/base/assert.h"

static void tunables_print_row(const json_t *row, const char *name)
{
    char text[32], took[TOOL_TIME_TEXT], error[TOOL_TIME_TEXT];
    const char *choice = tide_value_text(row, "choice");
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(row, "candidates"), i, one)
    {
        const char *variant = tide_value_text(one, "name");
        bool chosen = strcmp(variant, choice) == 0;
        tool_say("%-24s %10.0f  %-20s %8.0f %9s ± %9s %s", name, tide_value_number(row, "key"),
                 tool_clean(variant, text, 21), tide_value_number(one, "uses"),
                 tool_time(tide_value_number(one, "ns"), took),
                 tool_time(tide_value_number(one, "error_ns"), error),
                 !chosen                           ? ""
                 : tide_value_flag(row, "pinned")  ? "pinned"
                 : tide_value_flag(row, "settled") ? "chosen"
                                                   : "ahead");
    }
}

static void tunables_print(const json_t *tunable)
{
    char name[32];
    size_t i;
    json_t *row;
    (void)tool_clean(tide_value_text(tunable, "name"), name, 25);
    if (json_object_get(tunable, "value") != NULL)
        tool_say("%-24s %10s  %.0f of %.0f to %.0f", name, "", tide_value_number(tunable, "value"),
                 tide_value_number(tunable, "low"), tide_value_number(tunable, "high"));
    json_array_foreach(json_object_get(tunable, "rows"), i, row) tunables_print_row(row, name);
}

int tool_tunables(int count, char **args)
{
    tool_options options;
    tool_client client;
    json_t *facts = NULL, *one;
    size_t i;
    int code = tool_options_read(&count, args, "jtd", 1, 1, &options);
    if (code == TOOL_OK)
        code = tool_client_facts_of(&client, args[1], &options, &facts);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    const json_t *list = json_object_get(facts, "tunables");
    if (options.json)
        tool_print_json(list);
    else
        puts("TUNABLE                         KEY  VARIANT              TIMED       USE       "
             "ERROR");
    if (!options.json)
        json_array_foreach(list, i, one) tunables_print(one);
    json_decref(facts);
    tool_client_close(&client);
    return TOOL_OK;
}

/* Takes the request over; prints the answer if that is wanted. */
static int tunables_ask(const char *pid, const tool_options *options, json_t *request, bool shows)
{
    tool_client client;
    json_t *answer = NULL;
    int code = tool_client_open_named(&client, pid, options);
    if (code != TOOL_OK) {
        json_decref(request);
        return code;
    }
    code = tool_client_ask(&client, request, &answer);
    if (code != TOOL_OK)
        (void)tool_client_complain(&client, code);
    else if (shows)
        tool_print_json(answer);
    json_decref(answer);
    tool_client_close(&client);
    return code;
}

int tool_ask(int count, char **args)
{
    tool_options options;
    int code = tool_options_read(&count, args, "jtd", 2, 2, &options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    return tunables_ask(args[1], &options, json_pack("{s:s}", "ask", args[2]), true);
}

/* A number, whole, of no more than 18 digits, is a value or key. */
static bool tunables_read_number(const char *text, json_int_t *out)
{
    size_t length = strspn(text, "0123456789");
    *out = length < 19 ? (json_int_t)strtoll(text, NULL, 10) : 0;
    return length > 0 && length < 19 && text[length] == '\0';
}

int tool_tell(int count, char **args)
{
    tool_options options;
    json_int_t number;
    int code = tool_options_read(&count, args, "jtd", 3, 4, &options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    tide_assert(count == 4 || count == 5);
    if (!tunables_read_number(args[count - 1], &number))
        return tool_complain(TOOL_USAGE,
                             "'%.60s' is no whole number: a knob's value, or a variant's key",
                             args[count - 1]);
    json_t *request =
        count == 4 ? json_pack("{s:s, s:s, s:I}", "do", "tell", "tunable", args[2], "value", number)
                   : json_pack("{s:s, s:s, s:s, s:I}", "do", "tell", "tunable", args[2], "variant",
                               args[3], "row", number);
    return tunables_ask(args[1], &options, request, options.json);
}

int tool_forget(int count, char **args)
{
    tool_options options;
    int code = tool_options_read(&count, args, "jtd", 2, 2, &options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    return tunables_ask(args[1], &options,
                        json_pack("{s:s, s:s}", "do", "forget", "tunable", args[2]), options.json);
}

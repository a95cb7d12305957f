/* SPDX-License-Identifier: MIT */
/* tidepool ps: the processes that listen. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "profiler/tool/client.h"
#include "profiler/tool/print.h"
#include "profiler/tool/tool.h"
#include "runtime/base/assert.h"

static void ps_print_row(const json_t *facts)
{
    tide_assert(json_is_object(facts));
    char held[TOOL_BYTES_TEXT], program[64];
    tool_say("%8" PRIu64 "  %-20s %6zu %6zu %10s  %s", (uint64_t)tide_value_number(facts, "pid"),
             tool_clean(tide_value_text(facts, "program"), program, sizeof program),
             json_array_size(json_object_get(facts, "pools")),
             json_array_size(json_object_get(facts, "sites")),
             tool_bytes(tool_sum(json_object_get(facts, "pools"), "held_bytes"), held),
             tide_value_text(facts, "version"));
}

static json_t *ps_summary(const json_t *facts)
{
    /* A sum of what a process says may be anything. */
    double held = fmin(fmax(tool_sum(json_object_get(facts, "pools"), "held_bytes"), 0), 9e18);
    return json_pack(
        "{s:O, s:s, s:s, s:i, s:i, s:I}", "pid", json_object_get(facts, "pid"), "program",
        tide_value_text(facts, "program"), "version", tide_value_text(facts, "version"), "pools",
        (int)json_array_size(json_object_get(facts, "pools")), "sites",
        (int)json_array_size(json_object_get(facts, "sites")), "held_bytes", (json_int_t)held);
}

/* One process; one that has just ended is left out. */
static int ps_show(pid_t pid, const tool_options *options, json_t *list)
{
    tool_client client;
    json_t *facts = NULL;
    int code = tool_client_open(&client, pid, options->folder, options->timeout_ms);
    if (code == TOOL_OK)
        code = tool_client_facts(&client, &facts);
    if (code == TOOL_OK && list != NULL)
        (void)json_array_append_new(list, ps_summary(facts));
    else if (code == TOOL_OK)
        ps_print_row(facts);
    else if (code != TOOL_NOBODY)
        (void)tool_client_complain(&client, code);
    json_decref(facts);
    tool_client_close(&client);
    return code == TOOL_NOBODY ? TOOL_OK : code;
}

int tool_ps(int count, char **args)
{
    tool_options options;
    int code = tool_options_read(&count, args, "jtd", 0, 0, &options), worst = TOOL_OK;
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    pid_t *list;
    size_t pids = tool_folder_list(options.folder, &list);
    json_t *all = options.json ? json_array() : NULL;
    if (!options.json)
        printf("%8s  %-20s %6s %6s %10s  %s\n", "PID", "PROGRAM", "POOLS", "SITES", "HELD",
               "VERSION");
    for (size_t i = 0; i < pids; i++) {
        code = ps_show(list[i], &options, all);
        worst = code > worst ? code : worst;
    }
    free(list);
    if (all != NULL)
        tool_print_json(all);
    json_decref(all);
    return worst;
}

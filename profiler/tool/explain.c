/* SPDX-License-Identifier: MIT */
/* tidepool explain: what is or would be compiled for a site. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/tool/client.h"
#include "profiler/tool/launch.h"
#include "profiler/tool/print.h"
#include "profiler/tool/tool.h"
#include "runtime/base/assert.h"

static void explain_print_site(const json_t *site)
{
    char types[160], ns[TOOL_TIME_TEXT], why[200], name[80];
    size_t i;
    json_t *rival;
    tool_say("%s (%s, %s:%.0f): runs %s%s",
             tool_clean(tide_value_text(site, "name"), name, sizeof name),
             tide_value_text(site, "kind"), tide_value_text(site, "file"),
             tide_value_number(site, "line"), tide_value_text(site, "tier"),
             tide_value_flag(site, "pinned") ? ", pinned" : "");
    tool_say("  why: %s", tool_clean(tide_value_text(site, "reason"), why, sizeof why));
    tool_say("  types: %s", tool_words(json_object_get(site, "types"), types, sizeof types));
    if (tide_value_number(site, "use_ns") > 0)
        tool_say("  a use takes %s", tool_time(tide_value_number(site, "use_ns"), ns));
    json_array_foreach(json_object_get(site, "rivals"), i, rival)
        tool_say("  by %s it would take %s (%s)", tide_value_text(rival, "tier"),
                 tool_time(tide_value_number(rival, "ns"), ns),
                 tide_value_flag(rival, "measured") ? "measured" : "estimated");
}

/* The site of the document that a request would mean; NULL: none. */
static const json_t *explain_find(const json_t *facts, const char *text, const char *kind)
{
    json_t *wanted = tool_site_of(text), *site, *found = NULL;
    const char *member = json_is_integer(wanted) ? "id" : "name";
    size_t i;
    json_array_foreach(json_object_get(facts, "sites"), i, site)
    {
        if (found == NULL && json_equal(json_object_get(site, member), wanted) &&
            (kind == NULL || strcmp(tide_value_text(site, "kind"), kind) == 0))
            found = site;
    }
    json_decref(wanted);
    return found;
}

static int explain_run_stager(const char *spec, bool assembler)
{
    char path[PATH_MAX];
    char *args[] = {"tidepool-stage", "--explain", "-", assembler ? "--asm" : NULL, NULL};
    if (!tool_find_stager(path))
        return tool_complain(TOOL_NO, "no program tidepool-stage beside this one");
    return tool_run_program(path, args, spec) == 0 ? TOOL_OK : TOOL_NO;
}

/* The stager may quote what it cannot read. */
static bool explain_is_shown(const char *spec)
{
    bool shown = true;
    for (size_t bytes; *spec != '\0' && shown; spec += bytes) {
        bytes = tool_character(spec, &shown);
        shown = shown || *spec == '\n';
    }
    return shown;
}

/* What the process says of it: the spec, or why there is none. */
static int explain_show_code(tool_client *client, const char *site, const tool_options *options)
{
    json_t *answer, *request = json_pack("{s:o}", "explain", tool_site_of(site));
    int code = tool_client_ask(client, tool_request_of_kind(request, options->kind), &answer);
    const char *spec = tide_value_text(answer, "text");
    if (code != TOOL_OK)
        (void)tool_client_complain(client, code);
    else if (options->json)
        tool_print_json(answer);
    else if (!explain_is_shown(spec))
        code = tool_complain(TOOL_BROKEN, "process %d: its answer is no spec", (int)client->pid);
    else
        code = explain_run_stager(spec, options->assembler);
    json_decref(answer);
    return code;
}

int tool_explain(int count, char **args)
{
    tool_options options;
    tool_client client;
    json_t *facts = NULL;
    int code = tool_options_read(&count, args, "jtdak", 2, 2, &options);
    if (code == TOOL_OK)
        code = tool_client_facts_of(&client, args[1], &options, &facts);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    const json_t *site = explain_find(facts, args[2], options.kind);
    if (site == NULL)
        code = tool_complain(TOOL_NO, "process %d has no site '%.80s'", (int)client.pid, args[2]);
    else if (!options.json)
        explain_print_site(site);
    if (code == TOOL_OK)
        code = explain_show_code(&client, args[2], &options);
    json_decref(facts);
    tool_client_close(&client);
    return code;
}

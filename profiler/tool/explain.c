/* SPDX-License-Identifier: MIT */
/* tidepool explain, replay: what other programs of this project tell. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    tool_say("%s (%s, %s:%.0f): runs %s%s", tool_clean(tool_text(site, "name"), name, sizeof name),
             tool_text(site, "kind"), tool_text(site, "file"), tool_number(site, "line"),
             tool_text(site, "tier"), tool_is(site, "pinned") ? ", pinned" : "");
    tool_say("  why: %s", tool_clean(tool_text(site, "reason"), why, sizeof why));
    tool_say("  types: %s", tool_words(json_object_get(site, "types"), types, sizeof types));
    if (tool_number(site, "use_ns") > 0)
        tool_say("  a use takes %s", tool_time(tool_number(site, "use_ns"), ns));
    json_array_foreach(json_object_get(site, "rivals"), i, rival)
        tool_say("  by %s it would take %s (%s)", tool_text(rival, "tier"),
                 tool_time(tool_number(rival, "ns"), ns),
                 tool_is(rival, "measured") ? "measured" : "estimated");
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
            (kind == NULL || strcmp(tool_text(site, "kind"), kind) == 0))
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
    const char *spec = tool_text(answer, "text");
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
        code = tool_client_open_named(&client, args[1], &options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    code = tool_client_facts(&client, &facts);
    const json_t *site = explain_find(facts, args[2], options.kind);
    if (code != TOOL_OK)
        (void)tool_client_complain(&client, code);
    else if (site == NULL)
        code = tool_complain(TOOL_NO, "process %d has no site '%.80s'", (int)client.pid, args[2]);
    else if (!options.json)
        explain_print_site(site);
    if (code == TOOL_OK)
        code = explain_show_code(&client, args[2], &options);
    json_decref(facts);
    tool_client_close(&client);
    return code;
}

/* The trace's options are the other program's. */
int tool_replay(int count, char **args)
{
    static const char *const places[] = {"tests/bench/", NULL};
    char path[PATH_MAX];
    if (count < 2 || strcmp(args[1], "--help") == 0)
        return count < 2 ? tool_complain(TOOL_USAGE, "replay: which trace?")
                         : (puts("usage: tidepool replay TRACE [ARGUMENT]..."), TOOL_OK);
    if (access(args[1], R_OK) != 0)
        return tool_complain(TOOL_NO, "'%.200s' cannot be read", args[1]);
    if (!tool_find_program("tidepool-replay", places, path))
        return tool_complain(TOOL_NO, "no program tidepool-replay beside this one");
    args[0] = path;
    return tool_run_program(path, args, NULL) == 0 ? TOOL_OK : TOOL_NO;
}

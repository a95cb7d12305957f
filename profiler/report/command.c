/* SPDX-License-Identifier: MIT */
/* tidepool report and tidepool pprof: a record read, or a process looked at, and something made of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/record/look.h"
#include "profiler/record/need.h"
#include "profiler/record/output.h"
#include "profiler/report/advice.h"
#include "profiler/report/code.h"
#include "profiler/report/data.h"
#include "profiler/report/page.h"
#include "profiler/report/pprof.h"
#include "profiler/tool/clean.h"
#include "profiler/tool/client.h"
#include "profiler/tool/print.h"
#include "profiler/tool/tool.h"
#include "runtime/base/assert.h"

/* A damaged record is used as far as it is whole; the code says so. */
static int report_end(const tide_record_outcome *outcome)
{
    tide_assert(outcome->whole || outcome->problem[0] != 0);
    return outcome->whole
               ? TOOL_OK
               : tool_complain(TOOL_BROKEN, "%s; what is before it is used", outcome->problem);
}

/* TOOL_OK, or a code after a complaint: nothing is in the history. */
static int report_read(const char *path, tide_history *history, tide_record_outcome *outcome)
{
    if (!tide_record_read(path, tide_history_add, history, outcome))
        return tool_complain(TOOL_BROKEN, "%s", outcome->problem);
    if (history->last != NULL)
        return TOOL_OK;
    tide_history_free(history);
    if (!outcome->whole)
        return tool_complain(TOOL_BROKEN, "%s; no facts before it", outcome->problem);
    return tool_complain(TOOL_BROKEN, "%.150s: there are no facts in it", path);
}

/* A number or a program's name, and no record of that name: a program may stand in this folder. */
static bool report_is_process(const char *path)
{
    if (strchr(path, '/') != NULL)
        return false;
    FILE *file = fopen(path, "re");
    bool record = file != NULL && getc(file) == '{';
    if (file != NULL)
        fclose(file);
    return path[0] != 0 && !record;
}

/* Of the documents of one look the first alone: it tells of all since the process began, two would tell
 * of what was between them. */
static bool report_keep_first(tide_record_line what, json_t *line, void *user)
{
    tide_history *history = user;
    return (what == TIDE_RECORD_FACTS && history->last != NULL) ||
           tide_history_add(what, line, user);
}

static int report_process_of(const char *text, const tool_options *options, pid_t *pid)
{
    tool_client client;
    json_t *facts;
    if (text[strspn(text, "0123456789")] == '\0')
        return tool_process_of(text, options, pid);
    int code = tool_client_find(&client, text, options, &facts);
    *pid = client.pid;
    json_decref(facts);
    tool_client_close(&client);
    return code == TOOL_OK ? code
                           : tool_complain(code, "%.80s is no record, and %s", text, client.error);
}

/* Codes as of report_read. */
static int report_look(const char *process, const tool_options *options, tide_history *history)
{
    tide_look look = {.folder = options->folder, .timeout_ms = options->timeout_ms};
    int code = report_process_of(process, options, &look.pid);
    if (code != TOOL_OK)
        return code;
    bool seen = tide_look_once(&look, report_keep_first, history);
    code = seen ? TOOL_OK : tool_client_complain(&look.client, look.code);
    tide_look_end(&look);
    if (!seen)
        tide_history_free(history);
    return code;
}

/* ---- words ---- */

static void report_print_one(const tide_advice *advice, size_t number)
{
    char share[24] = "";
    tool_say("%zu. %s", number, advice->what);
    tool_say("   %s: %s", advice->subject, advice->why);
    tool_say("   %s", advice->instead);
    if (advice->share > 0 && advice->others != 0)
        snprintf(share, sizeof share, "; together %.2g %%", 100 * advice->share);
    if (advice->others != 0)
        tool_say("   The same holds for %zu more%s.", advice->others, share);
    if (advice->code[0] != 0)
        tool_say("       %s", advice->code);
    tool_say("%s", "");
}

static void report_print_left_out(const char *noun, const tide_things *things)
{
    if (things->left_out != 0)
        printf("%zu %s of %zu are not in this report: a report has room for %d.\n",
               things->left_out, noun, things->left_out + things->count, TIDE_HISTORY_THINGS);
}

static int report_print(const tide_history *history)
{
    tide_advice_list *found = tide_need(malloc(sizeof *found));
    tide_verdict verdict;
    char small[200];
    tide_advice_of(history, found);
    tide_advice_judge(history, found, &verdict);
    tool_say("%s", verdict.words);
    puts("");
    for (size_t i = 0; i < found->worth; i++)
        report_print_one(&found->each[i], i + 1);
    if (tide_advice_of_small(found, small, sizeof small)[0] != 0)
        printf("%s They are on the page (-o) and in --json.\n", small);
    report_print_left_out("sites", &history->sites);
    report_print_left_out("pools", &history->pools);
    report_print_left_out("instances of buffers", &history->buffers);
    free(found);
    return TOOL_OK;
}

static int report_print_json(tide_history *history, const char *damage)
{
    static const tide_data_limits all = {TIDE_HISTORY_THINGS, TIDE_HISTORY_THINGS,
                                         TIDE_HISTORY_THINGS, TIDE_HISTORY_EVENTS,
                                         TIDE_HISTORY_POINTS, TIDE_CODE_SITES};
    json_t *data = tide_data_of(history, damage, &all);
    tool_print_json(data);
    json_decref(data);
    return TOOL_OK;
}

/* ---- the page ---- */

static int report_page(tide_history *history, const char *damage, const char *path)
{
    tide_output output;
    if (!tide_page_is_built())
        return tool_complain(TOOL_NO,
                             "this tidepool was built without libjs-chart.js, so it makes no page");
    char *data = tide_page_data(history, damage);
    bool good = tide_output_open(&output, path);
    if (good) {
        tide_page_write(output.file, data, false);
        good = tide_output_end(&output);
    }
    free(data);
    return good ? TOOL_OK : TOOL_NO;
}

int tool_report(int count, char **args)
{
    tool_options options;
    tide_history history = {0};
    tide_record_outcome outcome = {.whole = true};
    int code = tool_options_read(&count, args, "jotd", 1, 1, &options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    code = report_is_process(args[1]) ? report_look(args[1], &options, &history)
                                      : report_read(args[1], &history, &outcome);
    if (code != TOOL_OK)
        return code;
    if (history.documents == 1)
        tide_history_begin_with_events(&history);
    if (options.output != NULL || options.json)
        tide_code_make(&history);
    if (options.output != NULL)
        code = report_page(&history, outcome.problem, options.output);
    else if (options.json)
        code = report_print_json(&history, outcome.problem);
    else
        code = report_print(&history);
    tide_history_free(&history);
    return code != TOOL_OK ? code : report_end(&outcome);
}

/* ---- the profile ---- */

int tool_pprof(int count, char **args)
{
    tool_options options;
    tide_history history = {0};
    tide_record_outcome outcome;
    tide_output output;
    int code = tool_options_read(&count, args, "o", 1, 1, &options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    if (options.output == NULL)
        return tool_complain(TOOL_USAGE,
                             "pprof: name a file for it: -o FILE, or -o - for the standard output");
    code = report_read(args[1], &history, &outcome);
    if (code != TOOL_OK)
        return code;
    bool good = tide_output_open(&output, options.output);
    if (good) {
        tide_pprof_write(output.file, &history);
        good = tide_output_end(&output);
    }
    tide_history_free(&history);
    return good ? report_end(&outcome) : TOOL_NO;
}

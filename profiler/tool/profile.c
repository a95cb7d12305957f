/* SPDX-License-Identifier: MIT */
/* tidepool profile: texts of profiles saved from a process, merged by the library, shown and
 * compared. What is read is checked by the library first, which refuses a text that is wrong. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidepool/profile.h>

#include "profiler/record/output.h"
#include "profiler/tool/client.h"
#include "profiler/tool/print.h"
#include "profiler/tool/tool.h"
#include "runtime/base/assert.h"
#include "runtime/base/memory_stream.h"

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

/* ---- show, diff --------------------------------------------------------------------------- */

enum { TYPES_ROOM = 32, WORD = 256 };

/* The next word: a number, or a string in quotes, whose escapes are left as they are. False: the
 * line has ended. */
static bool profile_next_word(const char **at, char word[WORD])
{
    size_t length = 0;
    const char *c = *at;
    bool quoted = *c == '"';
    if (*c == '\n' || *c == '\0')
        return false;
    for (c += quoted; *c != '\0' && *c != '\n' && *c != (quoted ? '"' : ' '); c++) {
        if (quoted && *c == '\\' && c[1] != '\0' && length < WORD - 1)
            word[length++] = *c++;
        if (length < WORD - 1)
            word[length++] = *c;
    }
    word[length] = '\0';
    c += quoted && *c == '"';
    *at = c + (*c == ' ');
    return true;
}

static int profile_split(const char *line, char words[12][WORD])
{
    int count = 0;
    while (count < 12 && profile_next_word(&line, words[count]))
        count++;
    return count;
}

/* A name may be any bytes; JSON takes UTF-8 only. NULL: no memory. */
static json_t *profile_make_text(const char *word)
{
    char *text = tool_make_utf8(word);
    json_t *made = text != NULL ? json_string(text) : NULL;
    tide_assert(text == NULL || made == NULL || json_string_length(made) >= strlen(word));
    free(text);
    return made;
}

/* {"kind":…,"line":…,"uses":…,"name":…,"file":…,"function":…,"types":{"f64":uses}} */
static json_t *profile_make_site(char words[12][WORD])
{
    return json_pack("{s:s, s:I, s:I, s:o, s:o, s:o, s:{}}", "kind", words[1], "line",
                     (json_int_t)atoll(words[2]), "uses", (json_int_t)atoll(words[3]), "name",
                     profile_make_text(words[6]), "file", profile_make_text(words[7]), "function",
                     profile_make_text(words[8]), "types");
}

static bool profile_take_uses(json_t *site, const char *name, const char *uses)
{
    return json_object_set_new(json_object_get(site, "types"), name, json_integer(atoll(uses))) ==
           0;
}

/* One line of the text, which the library has checked. False: no memory. */
static bool profile_take_line(const char *line, json_t *types, json_t *sites)
{
    char words[12][WORD];
    int count = profile_split(line, words);
    json_t *site = json_array_get(sites, json_array_size(sites) - 1);
    if (count == 4 && strcmp(words[0], "type") == 0)
        return json_array_append_new(types, profile_make_text(words[3])) == 0;
    if (count == 9 && strcmp(words[0], "site") == 0)
        return json_array_append_new(sites, profile_make_site(words)) == 0;
    if (count >= 3 && strcmp(words[0], "uses") == 0 && site != NULL) {
        const char *name =
            json_string_value(json_array_get(types, strtoul(words[1], NULL, 10) - 1));
        return profile_take_uses(site, name != NULL ? name : words[1], words[2]);
    }
    if (count >= 3 && strcmp(words[0], "key") == 0 && site != NULL) {
        char name[WORD + 8];
        snprintf(name, sizeof name, "key %s", words[1]);
        return profile_take_uses(site, name, words[2]);
    }
    return true;
}

/* NULL: no memory, or the file cannot be read. */
static json_t *profile_take_lines(FILE *in)
{
    char *line = NULL;
    size_t room = 0;
    json_t *types = json_array(), *sites = json_array();
    bool good = types != NULL && sites != NULL;
    while (good && getline(&line, &room, in) > 0)
        good = profile_take_line(line, types, sites);
    good = good && feof(in);
    free(line);
    json_decref(types);
    if (good)
        return sites;
    json_decref(sites);
    return NULL;
}

/* The sites of a file; NULL after a complaint. */
static json_t *profile_read_sites(const char *path)
{
    if (tide_profile_load(path) != TIDE_OK) {
        (void)profile_refuse();
        return NULL;
    }
    FILE *in = fopen(path, "re");
    if (in == NULL) {
        (void)tool_complain(TOOL_NO, "%.200s: %s", path, strerror(errno));
        return NULL;
    }
    json_t *sites = profile_take_lines(in);
    if (sites == NULL)
        (void)tool_complain(TOOL_NO, "%.200s: %s", path,
                            ferror(in) ? "cannot be read" : "no memory for it");
    fclose(in);
    return sites;
}

/* " f64 100% i32 50%"; the caller frees it. NULL: no memory. */
static char *profile_list_types(const json_t *site)
{
    const char *name;
    json_t *uses;
    char *text = NULL;
    size_t length;
    double all = tool_number(site, "uses");
    FILE *out = tide_memory_stream_open(&text, &length);
    if (out == NULL)
        return NULL;
    json_object_foreach((json_t *)json_object_get(site, "types"), name, uses)
        fprintf(out, " %s %.0f%%", name, all > 0 ? 100 * json_number_value(uses) / all : 0);
    if (tide_memory_stream_close(out, &text))
        return text;
    free(text);
    return NULL;
}

static void profile_print_site(const char *mark, const json_t *site)
{
    char name[64], uses[TOOL_COUNT_TEXT];
    char *types = profile_list_types(site);
    const char *called = tool_text(site, "name");
    called = called[0] != '\0' ? called : tool_text(site, "function");
    if (types == NULL)
        tool_leave_out("memory is short: types are left out");
    tool_say("%s%-20s %-8s %s:%.0f  %s uses:%s", mark, tool_clean(called, name, sizeof name),
             tool_text(site, "kind"), tool_text(site, "file"), tool_number(site, "line"),
             tool_count(tool_number(site, "uses"), uses), types != NULL ? types : " ...");
    free(types);
}

static int profile_show(const char *path, const tool_options *options)
{
    json_t *sites = profile_read_sites(path);
    size_t i;
    json_t *site;
    if (sites == NULL)
        return TOOL_NO;
    if (options->json)
        tool_print_json(sites);
    else
        json_array_foreach(sites, i, site) profile_print_site("", site);
    json_decref(sites);
    return TOOL_OK;
}

static bool profile_same_place(const json_t *a, const json_t *b)
{
    static const char *const members[] = {"kind", "line", "name", "file", "function"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (!json_equal(json_object_get(a, members[i]), json_object_get(b, members[i])))
            return false;
    return true;
}

static const json_t *profile_find(const json_t *sites, const json_t *wanted)
{
    size_t i;
    json_t *site;
    json_array_foreach(sites, i, site) if (profile_same_place(site, wanted)) return site;
    return NULL;
}

/* Are the same types there? How often each was seen differs between any two runs. */
static bool profile_same_types(const json_t *a, const json_t *b)
{
    const char *name;
    json_t *uses;
    json_t *left = json_object_get(a, "types"), *right = json_object_get(b, "types");
    if (json_object_size(left) != json_object_size(right))
        return false;
    json_object_foreach(left, name, uses) if (json_object_get(right, name) == NULL) return false;
    return true;
}

/* Those of `mine` that `others` has not, or has with other types: a new list. */
static json_t *profile_missing(const json_t *mine, const json_t *others)
{
    json_t *list = json_array(), *site;
    size_t i;
    json_array_foreach(mine, i, site)
    {
        const json_t *other = profile_find(others, site);
        if ((other == NULL || !profile_same_types(site, other)) &&
            json_array_append(list, site) != 0)
            tool_leave_out("memory is short: a site is left out");
    }
    return list;
}

/* Takes the lists over. */
static int profile_print_diff(json_t *gone, json_t *come, bool as_json)
{
    size_t i, count = json_array_size(gone) + json_array_size(come);
    json_t *site, *both = as_json ? json_pack("{s:O, s:O}", "-", gone, "+", come) : NULL;
    if (both != NULL)
        tool_print_json(both);
    else if (as_json)
        tool_leave_out("memory is short: all is left out");
    else {
        json_array_foreach(gone, i, site) profile_print_site("- ", site);
        json_array_foreach(come, i, site) profile_print_site("+ ", site);
    }
    json_decref(both);
    json_decref(gone);
    json_decref(come);
    if (fflush(stdout) != 0 || ferror(stdout))
        return tool_complain(TOOL_USAGE, "the output cannot be written"); /* 1: they differ */
    return tool_has_left_out() ? TOOL_USAGE : count > 0 ? TOOL_NO : TOOL_OK;
}

static int profile_diff(char **files, const tool_options *options)
{
    json_t *a = profile_read_sites(files[0]), *b = a != NULL ? profile_read_sites(files[1]) : NULL;
    int code = TOOL_USAGE;
    if (b != NULL)
        code = profile_print_diff(profile_missing(a, b), profile_missing(b, a), options->json);
    json_decref(a);
    json_decref(b);
    return code;
}

int tool_profile(int count, char **args)
{
    tool_options options;
    int code = tool_options_read(&count, args, "jtdo", 2, -1, &options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    const char *what = args[1];
    tide_assert(count >= 3);
    if (strcmp(what, "save") == 0 && count == 3)
        return profile_save(args[2], &options);
    if (strcmp(what, "show") == 0 && count == 3)
        return profile_show(args[2], &options);
    if (strcmp(what, "merge") == 0)
        return profile_merge(count - 2, args + 2, &options);
    if (strcmp(what, "diff") == 0 && count == 4)
        return profile_diff(args + 2, &options);
    return tool_complain(TOOL_USAGE,
                         "profile: save PID, show FILE, merge FILE... or diff FILE FILE");
}

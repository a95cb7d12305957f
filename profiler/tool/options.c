/* SPDX-License-Identifier: MIT */
/* Options that several commands take. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/tool/tool.h"
#include "runtime/base/assert.h"

enum { TIMEOUT_MS = 30000, PERIOD_MS = 100, TIME_MAX_MS = 3600000 };

static const struct option options_long[] = {{"help", no_argument, NULL, 'h'},
                                             {"json", no_argument, NULL, 'j'},
                                             {"timeout", required_argument, NULL, 't'},
                                             {"folder", required_argument, NULL, 'd'},
                                             {"follow", no_argument, NULL, 'f'},
                                             {"asm", no_argument, NULL, 'a'},
                                             {"output", required_argument, NULL, 'o'},
                                             {"kind", required_argument, NULL, 'k'},
                                             {"since", required_argument, NULL, 's'},
                                             {"sort", required_argument, NULL, 'S'},
                                             {"listen", required_argument, NULL, 'l'},
                                             {"period", required_argument, NULL, 'p'},
                                             {NULL, 0, NULL, 0}};

static const struct {
    char letter;
    const char *line;
} options_lines[] = {
    {'j', "-j, --json             print JSON, one document or one event a line"},
    {'f', "-f, --follow           go on printing what happens"},
    {'a', "-a, --asm              as machine code"},
    {'o', "-o, --output FILE      write to this file; -: the standard output"},
    {'k', "-k, --kind KIND        of the site: scope, frame, acquire, array, dispatch"},
    {'s', "-s, --since SERIAL     events after the one of this number"},
    {'S', "-S, --sort KEY         sort by this column"},
    {'l', "-l, --listen [ADDRESS:]PORT  serve there; without an address at 127.0.0.1"},
    {'p', "-p, --period MS        milliseconds from look to look (100)"},
    {'t', "-t, --timeout SECONDS  wait so long for an answer (30)"},
    {'d', "-d, --folder FOLDER    look for sockets there"},
    {'h', "-h, --help             print this"}};

static void options_print_help(const char *name, const char *allowed)
{
#define TOOL_COMMAND(command, function, arguments, line) \
    if (strcmp(command, name) == 0)                      \
        printf("usage: tidepool %s [OPTION]... %s\n\n%s\n\n", command, arguments, line);
#include "profiler/tool/commands.def"
#undef TOOL_COMMAND
    for (size_t i = 0; i < sizeof options_lines / sizeof *options_lines; i++)
        if (options_lines[i].letter == 'h' || strchr(allowed, options_lines[i].letter) != NULL)
            printf("  %s\n", options_lines[i].line);
}

/* A number of these units, at most an hour, in milliseconds. */
static bool options_read_time(const char *text, double unit_ms, int *ms)
{
    char *end;
    double value = strtod(text, &end) * unit_ms;
    if (end == text || *end != '\0' || !(value > 0 && value <= TIME_MAX_MS))
        return false;
    *ms = value > 1 ? (int)value : 1;
    return true;
}

/* False: its value is wrong. */
static bool options_take(int letter, tool_options *out)
{
    switch (letter) {
    case 'j': out->json = true; break;
    case 'f': out->follow = true; break;
    case 'a': out->assembler = true; break;
    case 't': return options_read_time(optarg, 1e3, &out->timeout_ms);
    case 'p': return options_read_time(optarg, 1, &out->period_ms);
    case 'd': out->folder = optarg; break;
    case 'o': out->output = optarg; break;
    case 'k': out->kind = optarg; break;
    case 's': out->since = optarg; break;
    case 'S': out->sort = optarg; break;
    case 'l': out->listen = optarg; break;
    default: tide_assert(!"a letter of the table"); return false;
    }
    return true;
}

static int options_refuse(const char *name, const char *what)
{
    return tool_complain(TOOL_USAGE, "%s: %s; see tidepool %s --help", name, what, name);
}

int tool_options_read(int *count, char **args, const char *allowed, int least, int most,
                      tool_options *out)
{
    const char *name = args[0];
    tide_assert(*count > 0 && least >= 0 && (most < 0 || most >= least));
    *out = (tool_options){.timeout_ms = TIMEOUT_MS, .period_ms = PERIOD_MS};
    const char *letters = allowed[0] == '+' ? "+:hjt:d:fao:k:s:S:l:p:" : ":hjt:d:fao:k:s:S:l:p:";
    optind = 0;
    opterr = 0;
    for (int letter; (letter = getopt_long(*count, args, letters, options_long, NULL)) != -1;) {
        if (letter == 'h') {
            options_print_help(name, allowed);
            return -1;
        }
        const char *said = optind > 1 && optind <= *count ? args[optind - 1] : "";
        if (letter == ':')
            return tool_complain(TOOL_USAGE, "%s: '%.60s' wants a value", name, said);
        if (letter == '?')
            return tool_complain(TOOL_USAGE, "%s: there is no option '%.60s'", name, said);
        if (strchr(allowed, letter) == NULL)
            return tool_complain(TOOL_USAGE,
                                 "%s does not take the option -%c; see tidepool %s --help", name,
                                 letter, name);
        if (!options_take(letter, out))
            return tool_complain(TOOL_USAGE, "%s: '%.60s' is no value of -%c", name, said, letter);
    }
    int left = *count - optind;
    if (left < least)
        return options_refuse(name, "too few arguments");
    if (most >= 0 && left > most)
        return options_refuse(name, "too many arguments");
    memmove(args + 1, args + optind, (size_t)left * sizeof *args);
    *count = left + 1;
    return TOOL_OK;
}

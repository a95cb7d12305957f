/* SPDX-License-Identifier: MIT */
/* tidepool: looks into processes that use Tidepool and listen. Here: its table of commands. */
#define _GNU_SOURCE
#include <jansson.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tidepool/inline/config.h>
#include <tidepool/version.h>

#include "profiler/record/need.h"
#include "profiler/tool/tool.h"

static const struct {
    const char *name;
    tool_command *run;
    const char *arguments, *line;
} commands[] = {
#define TOOL_COMMAND(name, function, arguments, line) {name, function, arguments, line},
#include "profiler/tool/commands.def"
#undef TOOL_COMMAND
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static void main_print_usage(FILE *out)
{
    fputs("usage: tidepool COMMAND [OPTION]... [ARGUMENT]...\n\n", out);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-8s %-32s %s\n", commands[i].name, commands[i].arguments,
                commands[i].line);
    fputs("\n`tidepool COMMAND --help` tells its options. PID is the number of a process, or its\n"
          "program's name: the youngest of that name that listens. A process listens if it runs\n"
          "with TIDEPOOL_LISTEN=1, or calls tide_listen.\n\n"
          "Exit codes: 0 done, 1 the answer is no, 2 wrong usage, 3 no such process or it does\n"
          "not listen, 4 it ended or its answer cannot be believed.\n",
          out);
}

static int main_find_command(const char *name)
{
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return i;
    return -1;
}

/* Output that cannot be written, or was not whole, is a failure, whatever the command thought of
 * it. */
static int main_finish(int code)
{
    bool good = fflush(stdout) == 0 && !ferror(stdout);
    if (code == TOOL_OK && !good)
        return tool_complain(TOOL_NO, "the output cannot be written");
    return code;
}

static void *main_allocate(size_t bytes)
{
    return tide_need(malloc(bytes));
}

int main(int count, char **args)
{
    const char *name = count > 1 ? args[1] : "";
    (void)signal(SIGPIPE, SIG_IGN); /* a process that ends while it is asked is an answer, too */
    (void)signal(SIGCHLD, SIG_DFL);
    json_set_alloc_funcs(main_allocate, free);
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        main_print_usage(stdout);
        return main_finish(TOOL_OK);
    }
    if (strcmp(name, "--version") == 0) {
        printf("tidepool %d.%d.%d\n", TIDEPOOL_VERSION_MAJOR, TIDEPOOL_VERSION_MINOR,
               TIDEPOOL_VERSION_PATCH);
        return main_finish(TOOL_OK);
    }
    int found = main_find_command(name);
    if (found >= 0)
        return main_finish(commands[found].run(count - 1, args + 1));
    if (count > 1)
        return tool_complain(TOOL_USAGE, "no command '%.40s'; see tidepool --help", name);
    main_print_usage(stderr);
    return TOOL_USAGE;
}

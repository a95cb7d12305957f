/* SPDX-License-Identifier: MIT */
/* tidepool, the command: what its parts share. */
#ifndef TIDEPOOL_PROFILER_TOOL_TOOL_H
#define TIDEPOOL_PROFILER_TOOL_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What each command ends with. */
enum {
    TOOL_OK = 0,
    TOOL_NO = 1,     /* it was asked and the answer is no: no such site, a refusal, a failure  */
    TOOL_USAGE = 2,  /* the command line is wrong                                             */
    TOOL_NOBODY = 3, /* there is no such process, or it does not listen                       */
    TOOL_BROKEN = 4  /* it said what cannot be true, nothing in time, or ended while it spoke */
};

/* A command: what stands behind `tidepool`, the command's name first. Returns the exit code. */
typedef int tool_command(int count, char **args);
#define TOOL_COMMAND(name, function, arguments, line) tool_command function;
#include "profiler/tool/commands.def"
#undef TOOL_COMMAND

/* One line on the standard error, "tidepool: …", what is not shown as it is written \xHH. Returns
 * `code`. */
__attribute__((format(printf, 2, 3))) int tool_complain(int code, const char *format, ...);

/* Options that several commands take; each says which letters it allows. */
typedef struct tool_options {
    bool json;      /* -j, --json */
    bool follow;    /* -f, --follow */
    bool assembler; /* -a, --asm */
    int timeout_ms; /* -t, --timeout SECONDS; 30 s unless said */
    const char
        *folder; /* -d, --folder FOLDER: where the sockets are; NULL: where they always are */
    const char *output; /* -o, --output FILE */
    const char *kind;   /* -k, --kind KIND of site */
    const char *since;  /* -s, --since SERIAL */
    const char *sort;   /* -S, --sort KEY */
    const char *listen; /* -l, --listen [ADDRESS:]PORT */
    int period_ms;      /* -p, --period MS; 100 unless said */
} tool_options;

/* Reads the options of args[0], for which `allowed` are the letters (-h always is).
 * `least` to `most` words must be left (most < 0: any number); they are moved to args[1] and on,
 * and `count` tells how many there are with args[0]. After a '+' in `allowed` the first word ends the
 * options. TOOL_OK, TOOL_USAGE after a complaint, or -1
 * if help was asked for and printed. */
int tool_options_read(int *count, char **args, const char *allowed, int least, int most,
                      tool_options *out);

/* For a command that returns what this gave: help is no failure. */
#define TOOL_OPTIONS_CODE(code) ((code) < 0 ? TOOL_OK : (code))

/* tidepool profile push, pull, watch (profiler/fleet), where there is hiredis. */
int tool_fleet(int count, char **args, const tool_options *options);

/* A process by its number, or by the name of its program: of those that listen the youngest (it is asked
 * what it runs). TOOL_OK, or a code after a complaint. */
int tool_process_of(const char *text, const tool_options *options, pid_t *pid);

#endif

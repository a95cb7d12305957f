/* SPDX-License-Identifier: MIT */
/* Other programs: where those of this project are, running one, and what a program inherits. */
#ifndef TIDEPOOL_PROFILER_TOOL_LAUNCH_H
#define TIDEPOOL_PROFILER_TOOL_LAUNCH_H

#include <limits.h>
#include <stdbool.h>

/* The program beside this one, in ../libexec/tidepool, or as `places` (a list that a NULL ends)
 * says from this one's folder. False: it is nowhere. A path that a process sent is never run. */
bool tool_find_program(const char *name, const char *const *places, char path[PATH_MAX]);

/* The stager: the one that TIDEPOOL_STAGER names, else that beside this program. */
bool tool_find_stager(char path[PATH_MAX]);

/* Makes this process ignore SIGPIPE, and hear of children that end whatever was inherited. A child
 * gets back what was, by the second, before it executes. */
void tool_signals_take(void);
void tool_signals_give_back(void);

/* Takes the places of standard streams that are closed, before anything is opened: else what is
 * printed would go to the file that is there, and a child's streams would be put over each other.
 * Children find these streams closed, as they were inherited. */
void tool_streams_take(void);

/* Runs it with the text as its standard input (NULL: ours). Its exit status, or -1 after a
 * complaint. */
int tool_run_program(const char *path, char *const args[], const char *input);

/* What it writes when it is run so, malloced; what it complains of is dropped. NULL unless it ends
 * with status 0. */
char *tool_run_for_text(const char *path, char *const args[], const char *input);

#endif

/* SPDX-License-Identifier: MIT */
/* The stager, run as another program. */
#ifndef TIDEPOOL_PROFILER_TOOL_LAUNCH_H
#define TIDEPOOL_PROFILER_TOOL_LAUNCH_H

#include <limits.h>
#include <stdbool.h>

/* The stager: the one that TIDEPOOL_STAGER names, else that beside this program, or in
 * ../libexec/tidepool. A path that a process sent is never run. */
bool tool_find_stager(char path[PATH_MAX]);

/* Runs it with the text as its standard input. Its exit status, or -1 after a
 * complaint. */
int tool_run_program(const char *path, char *const args[], const char *input);

/* What it writes when it is run so, malloced; what it complains of is dropped. NULL unless it ends
 * with status 0. */
char *tool_run_for_text(const char *path, char *const args[], const char *input);

#endif

/* SPDX-License-Identifier: MIT */
/* The page of a process that runs, served while it runs. */
#ifndef TIDEPOOL_PROFILER_REPORT_LIVE_H
#define TIDEPOOL_PROFILER_REPORT_LIVE_H

#include <sys/types.h>

/* Serves the page at "[ADDRESS:]PORT" (tide_serve) until a signal ends it. The process is looked at
 * only while somebody looks at the page, at most five times a second; what was seen is kept.
 * `folder` is that of the sockets, or NULL. Returns the exit code of a command. */
int tide_live_serve(const char *where, pid_t pid, const char *folder);

/* The same of the process that args[1] names; with anything else a complaint. */
int tide_live_run(const char *where, int count, char **args, const char *folder);

#endif

/* SPDX-License-Identifier: MIT */
/* Answers to GET by HTTP, one at a time. */
#ifndef TIDEPOOL_PROFILER_METRICS_SERVE_H
#define TIDEPOOL_PROFILER_METRICS_SERVE_H

#include <stdio.h>

/* Writes the answer for one of the paths. Gives the status, and in *type static text for
 * Content-Type. */
typedef int tide_serve_answer(const char *path, FILE *out, const char **type, void *user);

/* Serves at "[ADDRESS:]PORT" until SIGINT or SIGTERM: without an address at 127.0.0.1; an address
 * of IPv6 stands in brackets; port 0 is a free one. Prints where it serves as one line. `paths`
 * ends with NULL; its first one is printed. At a loopback address only requests to a host of that
 * kind are answered, so that no page of another site gets at them by a name of its own. Returns the
 * exit code of a command. */
int tide_serve(const char *where, const char *const *paths, tide_serve_answer *answer, void *user);

#endif

/* SPDX-License-Identifier: MIT */
/* What a soak leaves: descriptors, processes, files. To see what is left after its end, it
 * runs as the child of a process that gets all its orphans, with a folder for all its files. */
#ifndef TIDEPOOL_TESTS_SOAK_LEFT_H
#define TIDEPOOL_TESTS_SOAK_LEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

unsigned left_descriptors(void); /* open ones from 3 on */

/* Processes that descend from this one, `except` not counted. */
unsigned left_processes(pid_t ancestor, pid_t except);

/* Runs this program again with `--inside` before its arguments, and a folder of its own as TMPDIR,
 * XDG_RUNTIME_DIR, XDG_CACHE_HOME and HOME. True if it ended well, all its descendants had ended
 * within `patience` seconds after it, and the folder is empty then; the folder is removed. */
bool left_run_inside(int count, char **arguments, unsigned patience);

#endif

/* SPDX-License-Identifier: MIT */
/* The private directory of the process: where the stager works and puts artefacts, and where files
 * must lie so that perf and gdb can name compiled code. Mode 0700, made when first needed, removed
 * at exit by the process that made it; to a forked child there is none, until it makes its own. Its
 * name tells which process that is: should it be killed, and its stager too, the next one that
 * makes a directory there removes what was left.
 *
 * Where TIDEPOOL_KEEP_CODE names a folder it lies in there, and the code stays when all else of it
 * is removed: so perf and gdb can name that after the end of the process, too. Such a directory has
 * another name (TIDE_ARTEFACTS_KEPT), by which the stager and later processes know it.
 *
 * Whoever holds the round lock calls these. */
#ifndef TIDEPOOL_JIT_STAGER_DIRECTORY_H
#define TIDEPOOL_JIT_STAGER_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>

enum { TIDE_DIRECTORY_PATH = 256 }; /* most bytes of its path, the 0 included */

/* Its path; makes it if there is none. NULL: one line in `error`. */
const char *tide_directory_get(char *error, size_t room);

/* Has it been made? */
bool tide_directory_made(void);

/* Does the code in it stay? */
bool tide_directory_keeps(void);

/* Is the directory at its path still the one that was made, ours, and closed to others? */
bool tide_directory_sound(char *error, size_t room);

/* Is this the path of a regular file of ours, directly in the directory, and is that sound? */
bool tide_directory_holds(const char *path, char *error, size_t room);

/* Removes it with all that lies in it, but for code that is to stay; the next one will be
 * another. */
void tide_directory_remove(void);

#endif

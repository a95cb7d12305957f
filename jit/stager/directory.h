/* SPDX-License-Identifier: MIT */
/* The private directory of the process: the compiler process works there and puts code objects
 * there, and while the process lives perf and gdb read the names in them. A file, and not a
 * descriptor of memory, because of them, and since libgccjit and the linker want a folder anyway.
 * Mode 0700, made by mkdtemp when first needed, removed at exit by the process that made it; should
 * that be killed, the compiler process removes it.
 *
 * Where TIDEPOOL_KEEP_CODE names a folder it lies in there and is not removed, so that perf and gdb
 * can name the code after the end of the process, too.
 *
 * Whoever holds the round lock calls these. */
#ifndef TIDEPOOL_JIT_STAGER_DIRECTORY_H
#define TIDEPOOL_JIT_STAGER_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>

enum { TIDE_DIRECTORY_PATH = 256 }; /* most bytes of its path, the 0 included */

/* Its path; makes it if there is none. NULL: one line in `error`. */
const char *tide_directory_get(char *error, size_t room);

/* Its path; "" if it was not made. */
const char *tide_directory_path(void);

/* Is it at its path still, ours and closed to others? */
bool tide_directory_is_ours(void);

/* Removes it with all that lies in it; the next one will be another. */
void tide_directory_remove(void);

/* In the child of a fork: it is the parent's. */
void tide_directory_forget(void);

#endif

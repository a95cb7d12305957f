/* SPDX-License-Identifier: MIT */
/* Where the stager program is, and the part of the environment that says where things are. Under
 * raised privileges no environment is believed, and nothing is started. */
#ifndef TIDEPOOL_JIT_STAGER_LOCATE_H
#define TIDEPOOL_JIT_STAGER_LOCATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TIDE_LOCATE_LIST = 16384, TIDE_LOCATE_PATH = 4096, TIDE_LOCATE_FOLDER = 256 };

/* "": not set, too long, or a value that cannot be used. */
typedef struct tide_locate_environment {
    char path[TIDE_LOCATE_LIST], libraries[TIDE_LOCATE_LIST]; /* "PATH=…", "LD_LIBRARY_PATH=…" */
    char stager[TIDE_LOCATE_PATH];      /* TIDEPOOL_STAGER; absolute, as the next three */
    char keep_code[TIDE_LOCATE_FOLDER]; /* TIDEPOOL_KEEP_CODE */
    char runtime[TIDE_LOCATE_FOLDER], temporary[TIDE_LOCATE_FOLDER]; /* XDG_RUNTIME_DIR, TMPDIR */
    bool none; /* TIDEPOOL_STAGER=none: there is to be no stager */
} tide_locate_environment;

/* Reads the environment, the first time only: while other threads run, a program's setenv may free
 * what is being read. Complains on stderr, so once, of values that cannot be used. */
const tide_locate_environment *tide_locate_environment_get(void);

/* Runs the program with privileges that whoever started it does not have (set-user-ID, file
 * capabilities)? */
bool tide_locate_privileges_raised(void);

/* Writes the program's path: what the environment says; else the one beside the library in a build
 * tree; else the one of the prefix the library lies in; else one where the dynamic linker looks for
 * libraries of the module that the library is in, its run path first; else the configured one. False:
 * one line in `error`. */
bool tide_locate_stager(char *path, size_t room, char *error, size_t error_room);

/* Loads a part of the library, which is looked for beside it and where the dynamic linker and this
 * build install libraries, and returns its table of that name, which begins with the number of the
 * interface that it was made for. It stays loaded. NULL with a line in `error`: there is none, or for another
 * number. Nothing is locked. */
const void *tide_locate_table(const char *name, const char *table, uint32_t interface, char *error,
                              size_t room);

#endif

/* SPDX-License-Identifier: MIT */
/* The names in a folder, and a descriptor of it, where other threads of the program may close what
 * they do not know at any time, and open what is their own at the same number. (By the system's
 * call: a DIR can be freed only by closing the number that it had.) */
#ifndef TIDEPOOL_JIT_STAGER_ENTRIES_H
#define TIDEPOOL_JIT_STAGER_ENTRIES_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

typedef struct tide_entries {
    int descriptor; /* -1: there are none */
    struct stat folder;
    ssize_t at, bytes;
    _Alignas(struct dirent64) char text[2048];
} tide_entries;

/* Is it this folder that is open there? */
bool tide_entries_behind(int descriptor, const struct stat *folder);

/* Takes an open descriptor of the folder over. */
void tide_entries_begin(tide_entries *entries, int descriptor, const struct stat *folder);

/* Opens the folder. */
void tide_entries_open(tide_entries *entries, const char *path);

/* The next name, but for "." and ".."; NULL: there is none, or the number is another's now. A name
 * is believed only if the folder is still there after it was read. Valid until the next call. */
const char *tide_entries_next(tide_entries *entries);

/* Closes the descriptor, if that is still the folder's. */
void tide_entries_end(tide_entries *entries);

#endif

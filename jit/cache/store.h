/* SPDX-License-Identifier: MIT */
/* A folder of files that outlives the program, and is believed only where nobody else could have
 * written: every folder on the way to it belongs to us or to root and is writable by nobody else (a
 * sticky /tmp is not enough), none of them is a link, the folder itself is ours with mode 0700, and
 * each file ours with mode 0600 and one name. (An ACL that lets others write shows in the group's
 * bits of the mode.) It knows nothing of what the files mean. */
#ifndef TIDEPOOL_JIT_CACHE_STORE_H
#define TIDEPOOL_JIT_CACHE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tide_store_result {
    TIDE_STORE_OK = 0,
    TIDE_STORE_MISSING, /* there is no such file or folder  */
    TIDE_STORE_REFUSED, /* there is, and it is not believed */
    TIDE_STORE_FAILED   /* the system did not let us        */
} tide_store_result;

/* Opens $XDG_CACHE_HOME/tidepool (or ~/.cache/tidepool) into *store, to be closed. `make`: the last
 * two folders of the path are made if they are missing. Under raised privileges it is refused. That
 * it is refused is said on stderr, once, and why. */
tide_store_result tide_store_open(bool make, int *store);

/* All of a file, followed by a 0, to be freed with tide_os_free; at most so many bytes. */
tide_store_result tide_store_read(int store, const char *name, size_t most, char **text,
                                  size_t *bytes);

/* Written to a temporary name, synced, renamed: whole or not at all, in the place of whatever had
 * that name. */
tide_store_result tide_store_write(int store, const char *name, const void *text, size_t bytes);

/* Removes the oldest files until the rest has at most so many bytes. */
void tide_store_bound(int store, uint64_t most);

#endif

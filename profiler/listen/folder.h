/* SPDX-License-Identifier: MIT */
/* Where processes that listen have their sockets: who serves and who asks must agree. */
#ifndef TIDEPOOL_PROFILER_LISTEN_FOLDER_H
#define TIDEPOOL_PROFILER_LISTEN_FOLDER_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TIDE_LISTEN_FOLDER_ROOM = 80 }; /* a socket's address has room for so long a path */

/* The folder that was named; NULL: the user's, $XDG_RUNTIME_DIR/tidepool or else /tmp/tidepool-UID.
 * False: the path is longer than `room`; it is cut off. */
static inline bool tide_listen_folder(char *path, size_t room, const char *named)
{
    const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
    int length;
    if (named != NULL)
        length = snprintf(path, room, "%s", named);
    else if (runtime != NULL && runtime[0] == '/')
        length = snprintf(path, room, "%s/tidepool", runtime);
    else
        length = snprintf(path, room, "/tmp/tidepool-%ld", (long)geteuid());
    return length > 0 && (size_t)length < room;
}

#endif

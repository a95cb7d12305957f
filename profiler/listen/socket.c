/* SPDX-License-Identifier: MIT */
/* The folder and the socket in it, whose name appears when somebody listens behind it. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "profiler/listen/folder.h"
#include "profiler/listen/server.h"
#include "runtime/base/assert.h"

enum { QUEUE = 128 };

static struct sockaddr_un socket_own; /* the name that is ours; "": none */

/* NULL; else what is wrong with it. Others are kept out by the mode of the folder. */
static const char *socket_make_folder(const char *folder)
{
    struct stat seen;
    if ((mkdir(folder, 0700) != 0 && errno != EEXIST) || lstat(folder, &seen) != 0)
        return strerror(errno);
    if (!S_ISDIR(seen.st_mode) || seen.st_uid != geteuid())
        return "is no folder of this user's";
    return (seen.st_mode & 077) != 0 ? "is open to other users (it must have mode 0700)" : NULL;
}

/* Binds by another name, listens, and only then takes its own, of which a process with our number
 * may have died. -1 with errno. */
static int socket_bind(const struct sockaddr_un *before)
{
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)unlink(before->sun_path);
    if (made >= 0 && bind(made, (const struct sockaddr *)before, sizeof *before) == 0 &&
        chmod(before->sun_path, 0600) == 0 && listen(made, QUEUE) == 0 &&
        rename(before->sun_path, socket_own.sun_path) == 0)
        return made;
    int failed = errno;
    (void)unlink(before->sun_path);
    if (made >= 0)
        close(made);
    errno = failed;
    return -1;
}

int listen_socket_open(const char *folder, char *error, size_t room)
{
    struct sockaddr_un before = {.sun_family = AF_UNIX};
    char path[TIDE_LISTEN_FOLDER_ROOM];
    const char *wrong = "the path is too long";
    int made = -1;
    if (tide_listen_folder(path, sizeof path, folder))
        wrong = socket_make_folder(path);
    if (wrong == NULL) {
        socket_own.sun_family = AF_UNIX;
        snprintf(before.sun_path, sizeof before.sun_path, "%s/%d.new", path, (int)getpid());
        snprintf(socket_own.sun_path, sizeof before.sun_path, "%s/%d.sock", path, (int)getpid());
        made = socket_bind(&before);
    }
    if (made < 0)
        snprintf(error, room, "'%.100s': %s", path, wrong != NULL ? wrong : strerror(errno));
    return made;
}

void listen_socket_forget_name(void)
{
    socket_own.sun_path[0] = '\0';
}

void listen_socket_remove_name(void)
{
    tide_assert(socket_own.sun_path[0] != '\0');
    (void)unlink(socket_own.sun_path);
    listen_socket_forget_name();
}

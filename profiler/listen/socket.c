/* SPDX-License-Identifier: MIT */
/* The socket and its folder: made so that nobody else can be behind the name. */
#define _GNU_SOURCE
#include "profiler/listen/socket.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "profiler/listen/folder.h"
#include "profiler/listen/server.h"
#include "runtime/base/assert.h"
#include "runtime/base/descriptor.h"

enum { NAME_ROOM = 32, QUEUE = 128, NEW_S = 60 };

/* Guarded by the host's lock, but that the serving thread, which alone changes it, reads it. */
static tide_descriptor socket_table[LISTEN_SOCKETS];
static bool socket_table_made;

static char socket_folder[PATH_MAX];
static struct stat socket_name_seen; /* the file that is ours by that name; inode 0: none */

static void socket_make_table(void)
{
    for (int i = 0; i < LISTEN_SOCKETS && !socket_table_made; i++)
        socket_table[i] = TIDE_DESCRIPTOR_NONE;
    socket_table_made = true;
}

static bool socket_say(char *error, size_t room, const char *what, int code)
{
    snprintf(error, room, "'%.150s': %s%s%s", socket_folder, what, code != 0 ? ": " : "",
             code != 0 ? strerror(code) : "");
    return false;
}

/* ---- the folder --------------------------------------------------------------------------- */

static bool socket_name_folder(const char *folder, char *error, size_t room)
{
    return tide_listen_folder(socket_folder, sizeof socket_folder, folder) ||
           socket_say(error, room, "the path is too long", 0);
}

/* Open, for names in it; -1 with a line. */
static int socket_open_folder(char *error, size_t room)
{
    struct stat seen;
    if (mkdir(socket_folder, 0700) != 0 && errno != EEXIST) {
        (void)socket_say(error, room, "cannot be made", errno);
        return -1;
    }
    int folder =
        tide_descriptor_lift(open(socket_folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (folder < 0 || fstat(folder, &seen) != 0) {
        (void)socket_say(error, room, "cannot be opened", errno);
    } else if (seen.st_uid != geteuid()) {
        (void)socket_say(error, room, "belongs to another user", 0);
    } else if ((seen.st_mode & 077) != 0) {
        (void)socket_say(error, room, "is open to other users (it must have mode 0700)", 0);
    } else {
        return folder;
    }
    if (folder >= 0)
        close(folder);
    return -1;
}

/* A path may be longer than an address has room for: so by the folder's descriptor. */
static struct sockaddr_un socket_address(int folder, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length =
        snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%.31s", folder, name);
    tide_assert(length > 0 && (size_t)length < sizeof address.sun_path);
    (void)length;
    return address;
}

/* Does nobody listen behind the name? A name appears when its socket listens already. */
static bool socket_is_dead(int folder, const char *name)
{
    struct sockaddr_un address = socket_address(folder, name);
    int asking = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (asking < 0)
        return false;
    bool dead =
        connect(asking, (struct sockaddr *)&address, sizeof address) != 0 && errno == ECONNREFUSED;
    close(asking);
    return dead;
}

/* PID.sock, and what one that died while it made it had called it: PID.new. */
static bool socket_is_name(const char *name)
{
    size_t digits = strspn(name, "0123456789");
    return digits > 0 && digits < NAME_ROOM - 8 &&
           (strcmp(name + digits, ".sock") == 0 || strcmp(name + digits, ".new") == 0);
}

/* Who has bound does not listen yet: it has a moment for that. */
static bool socket_is_new(int folder, const char *name)
{
    struct stat seen;
    return strstr(name, ".new") != NULL &&
           (fstatat(folder, name, &seen, AT_SYMLINK_NOFOLLOW) != 0 ||
            time(NULL) - seen.st_mtime < NEW_S);
}

/* A process that executes another program may have taken its name anew since it was asked. So the
 * name is put aside first: what is there then is asked again, and given back if somebody listens.
 */
static void socket_remove_dead(int folder, const char *name)
{
    char aside[NAME_ROOM];
    snprintf(aside, sizeof aside, "%d.new", (int)getpid());
    if (!socket_is_dead(folder, name) || renameat(folder, name, folder, aside) != 0)
        return;
    if (socket_is_dead(folder, aside))
        (void)unlinkat(folder, aside, 0);
    else
        (void)renameat2(folder, aside, folder, name, RENAME_NOREPLACE);
}

static void socket_clear_dead(int folder)
{
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = again >= 0 ? fdopendir(again) : NULL;
    if (list == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(list)) != NULL;)
        if (socket_is_name(entry->d_name) && !socket_is_new(folder, entry->d_name))
            socket_remove_dead(folder, entry->d_name);
    closedir(list);
}

/* ---- the socket --------------------------------------------------------------------------- */

/* Binds by another name, listens, and only then takes the name. */
static int socket_bind(int folder, const char *name)
{
    char before[NAME_ROOM];
    snprintf(before, sizeof before, "%d.new", (int)getpid());
    struct sockaddr_un address = socket_address(folder, before);
    int made = tide_descriptor_lift(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (made < 0)
        return -1;
    (void)unlinkat(folder, before, 0);
    if (bind(made, (struct sockaddr *)&address, sizeof address) == 0 &&
        fchmodat(folder, before, 0600, 0) == 0 && listen(made, QUEUE) == 0 &&
        renameat(folder, before, folder, name) == 0 &&
        fstatat(folder, name, &socket_name_seen, AT_SYMLINK_NOFOLLOW) == 0)
        return made;
    int failed = errno;
    (void)unlinkat(folder, before, 0);
    close(made);
    errno = failed;
    return -1;
}

static bool socket_open_in(int folder, char *error, size_t room)
{
    char name[NAME_ROOM];
    snprintf(name, sizeof name, "%d.sock", (int)getpid());
    socket_clear_dead(folder);
    if (faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return socket_say(error, room, "another process listens by our number there", 0);
    int made = socket_bind(folder, name);
    if (made < 0)
        return socket_say(error, room, "no socket can be made there", errno);
    socket_table[LISTEN_DOOR] = tide_descriptor_hold(made);
    return true;
}

bool listen_socket_open(const char *folder, char *error, size_t room)
{
    if (folder != socket_folder && !socket_name_folder(folder, error, room))
        return false;
    listen_host->lock();
    socket_make_table();
    int place = socket_open_folder(error, room);
    bool good = place >= 0 && socket_open_in(place, error, room);
    if (place >= 0)
        close(place);
    listen_host->unlock();
    return good;
}

int listen_socket_get(int place)
{
    tide_assert(place >= 0 && place < LISTEN_SOCKETS);
    int number = tide_descriptor_get(&socket_table[place]);
    if (number >= 0 || place != LISTEN_DOOR || socket_table[place].number < 0)
        return number;
    char error[256]; /* the program has closed it, with all that it did not know */
    listen_socket_shut();
    return listen_socket_open(socket_folder, error, sizeof error)
               ? tide_descriptor_get(&socket_table[place])
               : -1;
}

static bool socket_peer_is_allowed(int number)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(number, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

/* What it cannot be told is told all the same: who reads it knows. */
static void socket_send_off(int number, const char *why)
{
    (void)send(number, why, strlen(why), MSG_NOSIGNAL | MSG_DONTWAIT);
    close(number);
}

/* Locked. */
static listen_arrival socket_accept(int door, int *place)
{
    int free = 0;
    while (free < LISTEN_CLIENTS && socket_table[free].number >= 0)
        free++;
    int number = tide_descriptor_lift(accept4(door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (number < 0 && (errno == EINTR || errno == ECONNABORTED))
        return LISTEN_SENT_OFF;
    if (number < 0)
        return errno == EAGAIN ? LISTEN_NOBODY : LISTEN_CANNOT;
    if (!socket_peer_is_allowed(number)) {
        socket_send_off(number, "{\"error\":\"this process is another user's\"}\n");
        return LISTEN_SENT_OFF;
    }
    if (free == LISTEN_CLIENTS) {
        socket_send_off(number, "{\"error\":\"too many clients: 16 at most\"}\n");
        return LISTEN_SENT_OFF;
    }
    socket_table[free] = tide_descriptor_hold(number);
    *place = free;
    return socket_table[free].number >= 0 ? LISTEN_CAME : LISTEN_SENT_OFF;
}

listen_arrival listen_socket_accept(int *place)
{
    int door = listen_socket_get(LISTEN_DOOR);
    if (door < 0)
        return LISTEN_NOBODY;
    listen_host->lock();
    listen_arrival arrival = socket_accept(door, place);
    listen_host->unlock();
    return arrival;
}

void listen_socket_close(int place)
{
    tide_assert(place >= 0 && place < LISTEN_SOCKETS);
    listen_host->lock();
    tide_descriptor_close(&socket_table[place]);
    listen_host->unlock();
}

/* ---- ending ------------------------------------------------------------------------------- */

/* Locked. Only what is still ours: the folder may have been swept, and the number used again. */
static void socket_take_name_away(void)
{
    char path[PATH_MAX + NAME_ROOM];
    struct stat seen;
    snprintf(path, sizeof path, "%s/%d.sock", socket_folder, (int)getpid());
    if (socket_name_seen.st_ino != 0 && lstat(path, &seen) == 0 &&
        seen.st_ino == socket_name_seen.st_ino && seen.st_dev == socket_name_seen.st_dev)
        (void)unlink(path);
    socket_name_seen.st_ino = 0;
}

void listen_socket_shut(void)
{
    listen_host->lock();
    socket_make_table();
    socket_take_name_away();
    int door = tide_descriptor_get(&socket_table[LISTEN_DOOR]);
    if (door >= 0)
        (void)shutdown(door, SHUT_RDWR);
    listen_host->unlock();
}

void listen_socket_forget(void)
{
    for (int i = 0; i < LISTEN_SOCKETS && socket_table_made; i++)
        tide_descriptor_close(&socket_table[i]);
    socket_name_seen.st_ino = 0;
}

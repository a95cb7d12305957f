/* SPDX-License-Identifier: MIT */
/* One private directory. It is known by device and inode, not by its name alone: should something
 * else stand at its path, it is neither trusted nor removed. */
#define _GNU_SOURCE
#include "jit/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit/locate.h"
#include "runtime/assert.h"

enum { DEPTH_MOST = 8 }; /* compilers make a folder or two in it, no more */

static struct {
    char path[TIDE_DIRECTORY_PATH]; /* empty: there is none */
    dev_t device;
    ino_t inode;
    pid_t owner;
} own;

bool tide_directory_made(void)
{
    return own.path[0] != '\0' && own.owner == getpid();
}

static bool say(char *error, size_t room, const char *what, const char *path)
{
    snprintf(error, room, "artefact directory '%s': %s", path, what);
    return false;
}

/* ---- making ------------------------------------------------------------------------------- */

static bool make_in(const char *parent, char *error, size_t room)
{
    struct stat seen;
    char path[TIDE_DIRECTORY_PATH];
    int length = snprintf(path, sizeof path, "%s/tidepool-XXXXXX", parent);
    if (length < 0 || (size_t)length >= sizeof path)
        return say(error, room, "its path is longer than 255 bytes", parent);
    if (mkdtemp(path) == NULL)
        return say(error, room, strerror(errno), path);
    if (lstat(path, &seen) != 0)
        return say(error, room, strerror(errno), path);
    memcpy(own.path, path, sizeof path);
    own.device = seen.st_dev;
    own.inode = seen.st_ino;
    own.owner = getpid();
    return true;
}

/* The first of the usual places that lets us. */
static bool make(char *error, size_t room)
{
    const tide_locate_environment *said = tide_locate_environment_get();
    const char *const places[] = {said->runtime, said->temporary, "/tmp"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (places[i] != NULL && make_in(places[i], error, room))
            return true;
    return false;
}

const char *tide_directory_get(char *error, size_t room)
{
    if (!tide_directory_made() && !make(error, room))
        return NULL;
    tide_assert(tide_directory_made());
    return own.path;
}

/* ---- trusting ----------------------------------------------------------------------------- */

static bool is_own(const struct stat *seen)
{
    return S_ISDIR(seen->st_mode) && seen->st_dev == own.device && seen->st_ino == own.inode;
}

bool tide_directory_sound(char *error, size_t room)
{
    struct stat seen;
    if (!tide_directory_made())
        return say(error, room, "there is none", "");
    if (lstat(own.path, &seen) != 0)
        return say(error, room, strerror(errno), own.path);
    if (!is_own(&seen))
        return say(error, room, "something else has taken its place", own.path);
    if (seen.st_uid != geteuid())
        return say(error, room, "it belongs to somebody else", own.path);
    if ((seen.st_mode & 07777) != 0700)
        return say(error, room, "its mode is not 0700", own.path);
    return true;
}

bool tide_directory_holds(const char *path, char *error, size_t room)
{
    struct stat seen;
    size_t length = strlen(own.path);
    if (!tide_directory_sound(error, room))
        return false;
    const char *name = path + length + 1;
    if (strncmp(path, own.path, length) != 0 || path[length] != '/' || name[0] == '\0' ||
        name[0] == '.' || strchr(name, '/') != NULL)
        return say(error, room, "this is not a file in it", path);
    if (lstat(path, &seen) != 0)
        return say(error, room, strerror(errno), path);
    if (!S_ISREG(seen.st_mode) || seen.st_uid != geteuid() || seen.st_nlink != 1)
        return say(error, room, "this is not a regular file of ours", path);
    return true;
}

/* ---- removing ----------------------------------------------------------------------------- */

static void clear(int descriptor, int depth);

static void clear_entry(int parent, const char *name, int depth)
{
    if (unlinkat(parent, name, 0) == 0 || depth == 0)
        return;
    int inner = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0)
        return;
    clear(inner, depth - 1);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

/* Closes the descriptor. */
static void clear(int descriptor, int depth)
{
    DIR *list = fdopendir(descriptor);
    if (list == NULL) {
        close(descriptor);
        return;
    }
    for (struct dirent *entry; (entry = readdir(list)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            clear_entry(dirfd(list), entry->d_name, depth);
    closedir(list);
}

void tide_directory_remove(void)
{
    struct stat seen;
    if (!tide_directory_made())
        return;
    int descriptor = open(own.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor >= 0 && fstat(descriptor, &seen) == 0 && is_own(&seen)) {
        clear(descriptor, DEPTH_MOST);
        (void)rmdir(own.path);
    } else if (descriptor >= 0) {
        close(descriptor);
    }
    own.path[0] = '\0';
}

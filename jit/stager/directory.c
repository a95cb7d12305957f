/* SPDX-License-Identifier: MIT */
/* One private directory. It is known by an open descriptor, not by its name alone: if something
 * else stands at its path, that is neither trusted nor removed. (Device and inode as numbers would
 * not do: a directory that is made after ours was removed may get the same ones.) */
#define _GNU_SOURCE
#include "jit/stager/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit/stager/locate.h"
#include "jit/stager/process.h"
#include "runtime/base/assert.h"

enum { DEPTH_MAX = 8 }; /* compilers make a folder or two in it, no more */

_Static_assert(TIDE_DIRECTORY_PATH == 256, "a message says how long the path may be");

static struct {
    char path[TIDE_DIRECTORY_PATH]; /* empty: there is none */
    int descriptor;
    pid_t owner;
} directory_own = {.descriptor = -1};

bool tide_directory_made(void)
{
    return directory_own.path[0] != '\0' && directory_own.owner == getpid();
}

/* Always false. */
static bool directory_say(char *error, size_t room, const char *what, const char *path)
{
    snprintf(error, room, "artefact directory '%s': %s", path, what);
    return false;
}

/* ---- making ------------------------------------------------------------------------------- */

/* Also closes what a forked child inherited, when it makes its own. */
static void directory_let_go(void)
{
    if (directory_own.descriptor >= 0)
        close(directory_own.descriptor);
    directory_own.descriptor = -1;
    directory_own.path[0] = '\0';
}

static bool directory_make_in(const char *parent, char *error, size_t room)
{
    char path[TIDE_DIRECTORY_PATH];
    tide_assert(parent[0] == '/');
    int length = snprintf(path, sizeof path, "%s/tidepool-XXXXXX", parent);
    if (length < 0 || (size_t)length >= sizeof path)
        return directory_say(error, room, "its path is longer than 255 bytes", parent);
    if (mkdtemp(path) == NULL)
        return directory_say(error, room, strerror(errno), path);
    int descriptor = tide_process_lift(open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (descriptor < 0) {
        directory_say(error, room, strerror(errno), path);
        (void)rmdir(path);
        return false;
    }
    directory_let_go();
    memcpy(directory_own.path, path, sizeof path);
    directory_own.descriptor = descriptor;
    directory_own.owner = getpid();
    tide_assert(descriptor > STDERR_FILENO && tide_directory_made());
    return true;
}

/* In the first of the usual places that lets us. */
static bool directory_make(char *error, size_t room)
{
    const tide_locate_environment *said = tide_locate_environment_get();
    const char *const places[] = {said->runtime, said->temporary, "/tmp"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (places[i] != NULL && directory_make_in(places[i], error, room))
            return true;
    return false;
}

const char *tide_directory_get(char *error, size_t room)
{
    if (!tide_directory_made() && !directory_make(error, room))
        return NULL;
    tide_assert(tide_directory_made() && directory_own.descriptor >= 0);
    return directory_own.path;
}

/* ---- trusting ----------------------------------------------------------------------------- */

/* Is what was seen at the path the directory of our descriptor? */
static bool directory_is_own(const struct stat *seen)
{
    struct stat known;
    tide_assert(tide_directory_made() && directory_own.descriptor >= 0);
    return S_ISDIR(seen->st_mode) && fstat(directory_own.descriptor, &known) == 0 &&
           seen->st_dev == known.st_dev && seen->st_ino == known.st_ino;
}

bool tide_directory_sound(char *error, size_t room)
{
    struct stat seen;
    if (!tide_directory_made())
        return directory_say(error, room, "there is none", "");
    if (lstat(directory_own.path, &seen) != 0)
        return directory_say(error, room, strerror(errno), directory_own.path);
    if (!directory_is_own(&seen))
        return directory_say(error, room, "something else has taken its place", directory_own.path);
    if (seen.st_uid != geteuid())
        return directory_say(error, room, "it belongs to somebody else", directory_own.path);
    if ((seen.st_mode & 07777) != 0700)
        return directory_say(error, room, "its mode is not 0700", directory_own.path);
    return true;
}

bool tide_directory_holds(const char *path, char *error, size_t room)
{
    struct stat seen;
    size_t length = strlen(directory_own.path);
    if (!tide_directory_sound(error, room))
        return false;
    const char *name = path + length + 1;
    if (strncmp(path, directory_own.path, length) != 0 || path[length] != '/' || name[0] == '\0' ||
        name[0] == '.' || strchr(name, '/') != NULL)
        return directory_say(error, room, "this is not a file in it", path);
    if (lstat(path, &seen) != 0)
        return directory_say(error, room, strerror(errno), path);
    if (!S_ISREG(seen.st_mode) || seen.st_uid != geteuid() || seen.st_nlink != 1)
        return directory_say(error, room, "this is not a regular file of ours", path);
    return true;
}

/* ---- removing ----------------------------------------------------------------------------- */

static void directory_clear(int descriptor, int depth);

static void directory_clear_entry(int parent, const char *name, int depth)
{
    tide_assert(depth >= 0 && depth <= DEPTH_MAX);
    if (unlinkat(parent, name, 0) == 0 || depth == 0)
        return;
    int inner = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0)
        return;
    directory_clear(inner, depth - 1);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

/* Closes the descriptor. */
static void directory_clear(int descriptor, int depth)
{
    tide_assert(descriptor >= 0);
    DIR *list = fdopendir(descriptor);
    if (list == NULL) {
        close(descriptor);
        return;
    }
    for (struct dirent *entry; (entry = readdir(list)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            directory_clear_entry(dirfd(list), entry->d_name, depth);
    closedir(list);
}

void tide_directory_remove(void)
{
    struct stat seen;
    if (!tide_directory_made())
        return;
    if (lstat(directory_own.path, &seen) == 0 && directory_is_own(&seen)) {
        directory_clear(directory_own.descriptor, DEPTH_MAX); /* closes it */
        directory_own.descriptor = -1;
        (void)rmdir(directory_own.path);
    }
    directory_let_go();
    tide_assert(!tide_directory_made() && directory_own.descriptor < 0);
}

/* SPDX-License-Identifier: MIT */
/* One private directory. It is known by an open descriptor, not by its name alone: should something
 * else stand at its path, that is neither trusted nor removed. (Device and inode as numbers would
 * not do: a directory made after ours was removed may well get the same ones.) */
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

#include "jit/stager/process.h"
#include "jit/stager/locate.h"
#include "runtime/base/assert.h"

enum { DEPTH_MAX = 8 }; /* compilers make a folder or two in it, no more */

static struct {
    char path[TIDE_DIRECTORY_PATH]; /* empty: there is none */
    int descriptor;
    pid_t owner;
} own = {.descriptor = -1};

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

/* What a forked child inherited is closed here, when it makes its own. */
static void let_go(void)
{
    if (own.descriptor >= 0)
        close(own.descriptor);
    own.descriptor = -1;
    own.path[0] = '\0';
}

static bool make_in(const char *parent, char *error, size_t room)
{
    char path[TIDE_DIRECTORY_PATH];
    int length = snprintf(path, sizeof path, "%s/tidepool-XXXXXX", parent);
    if (length < 0 || (size_t)length >= sizeof path)
        return say(error, room, "its path is longer than 255 bytes", parent);
    if (mkdtemp(path) == NULL)
        return say(error, room, strerror(errno), path);
    int descriptor =
        tide_process_lift(open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (descriptor < 0) {
        say(error, room, strerror(errno), path);
        (void)rmdir(path);
        return false;
    }
    let_go();
    memcpy(own.path, path, sizeof path);
    own.descriptor = descriptor;
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
    struct stat known;
    return S_ISDIR(seen->st_mode) && fstat(own.descriptor, &known) == 0 &&
           seen->st_dev == known.st_dev && seen->st_ino == known.st_ino;
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
    if (lstat(own.path, &seen) == 0 && is_own(&seen)) {
        clear(own.descriptor, DEPTH_MAX); /* closes it */
        own.descriptor = -1;
        (void)rmdir(own.path);
    }
    let_go();
}

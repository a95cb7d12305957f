/* SPDX-License-Identifier: MIT */
/* One private directory. It is known by an open descriptor, not by its name alone: if something
 * else stands at its path, that is neither trusted nor removed. The descriptor also leads to it
 * after chroot. Should the program close it, the directory is known by what tells descriptors
 * apart. */
#define _GNU_SOURCE
#include "jit/stager/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "jit/stager/entries.h"
#include "jit/stager/locate.h"
#include "runtime/base/assert.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/os.h"
#include "runtime/scope/compiled.h"

enum { DEPTH_MAX = 8 }; /* compilers make a folder or two in it, no more */

_Static_assert(TIDE_DIRECTORY_PATH == 256, "a message says how long the path may be");

static struct {
    char path[TIDE_DIRECTORY_PATH]; /* empty: there is none */
    tide_descriptor held;
    pid_t owner;
    bool keeps; /* its code stays */
} directory_own = {.held = {.number = -1}};

bool tide_directory_made(void)
{
    return directory_own.path[0] != '\0' && directory_own.owner == getpid();
}

bool tide_directory_keeps(void)
{
    return tide_directory_made() && directory_own.keeps;
}

/* Always false. */
static bool directory_say(char *error, size_t room, const char *what, const char *path)
{
    snprintf(error, room, "artefact directory '%s': %s", path, what);
    return false;
}

/* ---- clearing ----------------------------------------------------------------------------- */

/* Files that stay when a directory is cleared. */
typedef enum directory_spared { DIRECTORY_SPARE_NONE, DIRECTORY_SPARE_CODE } directory_spared;

static void directory_clear(int descriptor, const struct stat *directory, int depth,
                            directory_spared spared);

static void directory_clear_entry(int parent, const char *name, int depth)
{
    struct stat seen;
    tide_assert(depth >= 0 && depth <= DEPTH_MAX);
    if (unlinkat(parent, name, 0) == 0 || depth == 0 ||
        fstatat(parent, name, &seen, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    int inner = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0)
        return;
    directory_clear(inner, &seen, depth - 1, DIRECTORY_SPARE_NONE);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

static bool directory_spares(const char *name, directory_spared spared)
{
    size_t length = strlen(name);
    return spared == DIRECTORY_SPARE_CODE && length > 3 && strcmp(name + length - 3, ".so") == 0;
}

/* Closes the descriptor. */
static void directory_clear(int descriptor, const struct stat *directory, int depth,
                            directory_spared spared)
{
    tide_entries entries;
    tide_entries_begin(&entries, descriptor, directory);
    for (const char *name; (name = tide_entries_next(&entries)) != NULL;)
        if (!directory_spares(name, spared))
            directory_clear_entry(descriptor, name, depth);
    tide_entries_end(&entries);
}

/* ---- what the dead left ------------------------------------------------------------------- */

/* What tells this system and its process numbers from others that may share a folder with it; 0:
 * not known. */
static uint32_t directory_digest_system(void)
{
    char text[128] = "";
    uint32_t digest = 0x811c9dc5;
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t boot = file >= 0 ? pread(file, text, sizeof text / 2, 0) : -1;
    if (file >= 0)
        close(file);
    if (boot <= 0 || readlink("/proc/self/ns/pid", text + boot, sizeof text / 2 - 1) <= 0)
        return 0;
    for (const char *c = text; *c != '\0'; c++)
        digest = (digest ^ (unsigned char)*c) * 0x01000193;
    return digest;
}

/* A directory of ours whose process is gone, and had neither time to remove it nor a stager that
 * would: both were killed at once, say. */
static bool directory_is_left_over(int parent, const char *name, uint32_t system)
{
    unsigned of_system;
    int process, end = 0;
    struct stat seen;
    return sscanf(name, "tidepool-%8x-%d-%*6c%n", &of_system, &process, &end) == 2 && end > 0 &&
           name[end] == '\0' && of_system == system && process > 1 && kill(process, 0) != 0 &&
           errno == ESRCH && fstatat(parent, name, &seen, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(seen.st_mode) && seen.st_uid == geteuid();
}

static void directory_clear_left_overs(const char *path, uint32_t system)
{
    tide_entries list;
    if (system == 0)
        return;
    tide_entries_open(&list, path);
    for (const char *name; (name = tide_entries_next(&list)) != NULL;)
        if (directory_is_left_over(list.descriptor, name, system))
            directory_clear_entry(list.descriptor, name, DEPTH_MAX);
    tide_entries_end(&list);
}

/* ---- making ------------------------------------------------------------------------------- */

/* Also closes what a forked child inherited, when it makes its own. */
static void directory_let_go(void)
{
    tide_descriptor_close(&directory_own.held);
    directory_own.path[0] = '\0';
    directory_own.keeps = false;
}

static int directory_open(const char *path)
{
    return tide_descriptor_lift(open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/* Code cannot be mapped from where programs cannot be executed. That another place is taken, or
 * that there is none, is said once. */
static bool directory_may_execute(const char *path, const char *parent)
{
    static bool said;
    struct statvfs system;
    if (statvfs(path, &system) != 0 || (system.f_flag & ST_NOEXEC) == 0)
        return true;
    if (!said) {
        char line[TIDE_DIRECTORY_PATH + 128];
        int length = snprintf(line, sizeof line,
                              "tidepool: no code can be loaded from '%s' (mounted noexec): "
                              "another folder is looked for\n",
                              parent);
        tide_os_write_error(line, (size_t)length);
    }
    said = true;
    return false;
}

/* As long as it is held open, nothing else has its inode. */
static bool directory_is(const tide_descriptor *held, const struct stat *seen)
{
    return S_ISDIR(seen->st_mode) && (uint64_t)seen->st_dev == held->device &&
           (uint64_t)seen->st_ino == held->inode;
}

/* Opens what has been made at the path. */
static bool directory_hold(const char path[TIDE_DIRECTORY_PATH], const char *parent, char *error,
                           size_t room)
{
    bool may_execute = directory_may_execute(path, parent);
    int descriptor = may_execute ? directory_open(path) : -1;
    if (descriptor < 0) {
        directory_say(error, room, may_execute ? strerror(errno) : "mounted noexec", path);
        (void)rmdir(path);
        return false;
    }
    tide_descriptor held = tide_descriptor_hold(descriptor);
    struct stat made;
    if (lstat(path, &made) != 0 || !directory_is(&held, &made)) {
        /* another thread has closed it: nobody would know the directory again */
        directory_say(error, room, "its descriptor was closed at once", path);
        (void)rmdir(path);
        return false;
    }
    directory_let_go();
    memcpy(directory_own.path, path, TIDE_DIRECTORY_PATH);
    directory_own.held = held;
    directory_own.owner = getpid();
    tide_assert(tide_directory_made());
    return true;
}

static bool directory_make_in(const char *parent, char *error, size_t room)
{
    char path[TIDE_DIRECTORY_PATH];
    tide_assert(parent[0] == '/');
    uint32_t system = directory_digest_system();
    int length = snprintf(path, sizeof path, "%s/tidepool-%08x-%d-XXXXXX", parent, (unsigned)system,
                          (int)getpid());
    if (length < 0 || (size_t)length >= sizeof path)
        return directory_say(error, room, "its path is longer than 255 bytes", parent);
    if (mkdtemp(path) == NULL)
        return directory_say(error, room, strerror(errno), path);
    directory_clear_left_overs(parent, system);
    return directory_hold(path, parent, error, room);
}

/* Whoever else could rename what lies in the folder could put code of their own in the place of
 * ours. */
static bool directory_may_keep_in(const char *folder, char *error, size_t room)
{
    struct stat seen;
    if ((mkdir(folder, 0700) != 0 && errno != EEXIST) || stat(folder, &seen) != 0)
        return directory_say(error, room, strerror(errno), folder);
    if (!S_ISDIR(seen.st_mode))
        return directory_say(error, room, "this is no folder", folder);
    if ((seen.st_uid != geteuid() && seen.st_uid != 0) ||
        ((seen.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (seen.st_mode & S_ISVTX) == 0))
        return directory_say(error, room, "others may rename what lies there", folder);
    return true;
}

/* Where code is to stay. */
static bool directory_make_kept(const char *folder, char *error, size_t room)
{
    char path[TIDE_DIRECTORY_PATH];
    if (!directory_may_keep_in(folder, error, room))
        return false;
    int length =
        snprintf(path, sizeof path, "%s/" TIDE_ARTEFACTS_KEPT "%d-XXXXXX", folder, (int)getpid());
    if (length < 0 || (size_t)length >= sizeof path)
        return directory_say(error, room, "its path is longer than 255 bytes", folder);
    if (mkdtemp(path) == NULL)
        return directory_say(error, room, strerror(errno), path);
    if (!directory_hold(path, folder, error, room))
        return false;
    directory_own.keeps = true;
    tide_assert(tide_directory_keeps());
    return true;
}

/* Said once: then code is made all the same, and goes with the process. */
static void directory_say_not_kept(const char *error)
{
    static bool said;
    char line[TIDE_DIRECTORY_PATH + 256];
    int length = snprintf(line, sizeof line, "tidepool: code is not kept: %s\n", error);
    tide_assert(length > 0);
    if (!said)
        tide_os_write_error(line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
    said = true;
}

/* In the first of the usual places that lets us. */
static bool directory_make(char *error, size_t room)
{
    const tide_locate_environment *said = tide_locate_environment_get();
    if (said->keep_code != NULL && directory_make_kept(said->keep_code, error, room))
        return true;
    if (said->keep_code != NULL)
        directory_say_not_kept(error);
    const char *const places[] = {said->runtime, said->temporary, "/tmp",    "/var/tmp",
                                  "/dev/shm",    said->cache,     said->home};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (places[i] != NULL && directory_make_in(places[i], error, room))
            return true;
    return false;
}

const char *tide_directory_get(char *error, size_t room)
{
    if (!tide_directory_made() && !directory_make(error, room))
        return NULL;
    tide_assert(tide_directory_made());
    return directory_own.path;
}

/* ---- trusting ----------------------------------------------------------------------------- */

/* Is this what was made? */
static bool directory_is_own(const struct stat *seen)
{
    return directory_is(&directory_own.held, seen);
}

/* Its descriptor; it is opened again if the program closed it. -1: it is not there. */
static int directory_reach(void)
{
    tide_assert(tide_directory_made());
    int descriptor = tide_descriptor_get(&directory_own.held);
    if (descriptor >= 0)
        return descriptor;
    descriptor = directory_open(directory_own.path);
    if (descriptor < 0)
        return -1;
    tide_descriptor found = tide_descriptor_hold(descriptor);
    if (!tide_descriptor_same(&found, &directory_own.held)) {
        close(descriptor);
        return -1;
    }
    directory_own.held = found;
    return descriptor;
}

bool tide_directory_sound(char *error, size_t room)
{
    struct stat seen;
    if (!tide_directory_made())
        return directory_say(error, room, "there is none", "");
    if (lstat(directory_own.path, &seen) != 0)
        return directory_say(error, room, strerror(errno), directory_own.path);
    if (!directory_is_own(&seen) || directory_reach() < 0)
        return directory_say(error, room, "something else has taken its place", directory_own.path);
    if (seen.st_uid != geteuid())
        return directory_say(error, room, "it belongs to somebody else", directory_own.path);
    if ((seen.st_mode & 07777 & ~(mode_t)S_ISGID) != 0700) /* which it may have from its folder */
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

/* By the folder that it lies in, and not by its path: that may lead elsewhere since a chroot. */
static void directory_remove_by(int descriptor)
{
    struct stat own, above, seen;
    const char *name = strrchr(directory_own.path, '/') + 1;
    if (fstat(descriptor, &own) != 0 || !directory_is_own(&own) ||
        fstatat(descriptor, "..", &above, 0) != 0)
        return;
    int parent = openat(descriptor, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    directory_clear(descriptor, &own, DEPTH_MAX,
                    directory_own.keeps ? DIRECTORY_SPARE_CODE : DIRECTORY_SPARE_NONE);
    if (!tide_entries_behind(parent, &above))
        return;
    if (fstatat(parent, name, &seen, AT_SYMLINK_NOFOLLOW) == 0 && directory_is_own(&seen))
        (void)unlinkat(parent, name, AT_REMOVEDIR);
    if (tide_entries_behind(parent, &above))
        close(parent);
}

static bool directory_stands(void)
{
    struct stat seen;
    return lstat(directory_own.path, &seen) == 0 && directory_is_own(&seen);
}

/* Again if it is still there: another thread may have closed a descriptor meanwhile. */
void tide_directory_remove(void)
{
    enum { TRIES = 3 };
    if (!tide_directory_made())
        return;
    int tried = 0;
    do {
        int descriptor = directory_reach();
        if (descriptor >= 0)
            directory_remove_by(descriptor);
    } while (directory_stands() && ++tried < TRIES);
    directory_let_go();
    tide_assert(!tide_directory_made());
}

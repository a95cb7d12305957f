/* SPDX-License-Identifier: MIT */
/* A folder of files that nobody else can write to. The path to it is walked one name at a
 * time, each opened from the folder before it; so the folders that were checked are the
 * folders that are used. */
#define _GNU_SOURCE
#include "jit/cache/store.h"
#include "jit/cache/test_hooks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "jit/stager/locate.h"
#include "jit/stager/privilege.h"
#include "runtime/base/assert.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/os.h"

enum {
    OLD = 3600, /* seconds after which a temporary file's writer is gone for sure */
    FILES_MAX = 1 << 16
};

static const char temporary_mark[] = ".new-";

const char *tide_store_start = "/";

/* ---- the way to it ------------------------------------------------------------------------ */

/* What an errno means for the store. */
static tide_store_result store_result_of(int number)
{
    if (number == ENOENT)
        return TIDE_STORE_MISSING;
    return number == ELOOP || number == ENOTDIR ? TIDE_STORE_REFUSED : TIDE_STORE_FAILED;
}

/* What speaks against a folder on the way; against the last one. NULL: nothing. */
static const char *store_doubt_on_the_way(const struct stat *seen)
{
    if (!S_ISDIR(seen->st_mode))
        return "is no folder";
    if (seen->st_uid != 0 && seen->st_uid != geteuid())
        return "belongs to somebody else";
    return (seen->st_mode & 022) != 0 ? "can be written by others" : NULL;
}

static const char *store_doubt_at_the_end(const struct stat *seen)
{
    if (!S_ISDIR(seen->st_mode) || seen->st_uid != geteuid())
        return S_ISDIR(seen->st_mode) ? "belongs to somebody else" : "is no folder";
    mode_t mode = seen->st_mode & 07777 & ~(mode_t)S_ISGID; /* which it may have from its folder */
    return mode != 0700 ? "has a mode that is not 0700" : NULL;
}

static tide_store_result store_check_folder(int folder, bool last, const char **doubt)
{
    struct stat seen;
    if (fstat(folder, &seen) != 0)
        return TIDE_STORE_FAILED;
    *doubt = last ? store_doubt_at_the_end(&seen) : store_doubt_on_the_way(&seen);
    return *doubt == NULL ? TIDE_STORE_OK : TIDE_STORE_REFUSED;
}

/* Goes one folder further and closes the one before; *folder is the new one, or -1. */
static tide_store_result store_step(int *folder, const char *name, bool make, bool last,
                                    const char **doubt)
{
    tide_assert(*folder >= 0 && name[0] != '\0' && strchr(name, '/') == NULL);
    int from = *folder, way = last ? O_RDONLY : O_PATH;
    if (make && mkdirat(from, name, 0700) != 0 && errno != EEXIST) {
        tide_store_result failed = store_result_of(errno);
        close(from);
        *folder = -1;
        return failed == TIDE_STORE_MISSING ? TIDE_STORE_FAILED : failed;
    }
    *folder = openat(from, name, way | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    tide_store_result result = *folder < 0 ? store_result_of(errno) : TIDE_STORE_OK;
    close(from);
    tide_assert((result == TIDE_STORE_OK) == (*folder >= 0));
    *doubt = "is a link, or no folder";
    return result != TIDE_STORE_OK ? result : store_check_folder(*folder, last, doubt);
}

static bool store_is_plain_name(const char *name)
{
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Walks the path, and cuts it to pieces on the way. With `make` the last two folders are made. If
 * it is refused, `why` has the name of a folder and what speaks against it. */
static tide_store_result store_walk(int *folder, char *path, bool make, char *why, size_t room)
{
    tide_assert(*folder >= 0);
    char *rest = NULL, *name = strtok_r(path, "/", &rest);
    const char *doubt = NULL, *last_name = tide_store_start;
    tide_store_result result = store_check_folder(*folder, false, &doubt);
    while (result == TIDE_STORE_OK && name != NULL) {
        char *after = strtok_r(NULL, "/", &rest);
        bool last = after == NULL, last_two = last || *rest == '\0';
        doubt = "stands in its path";
        result = store_is_plain_name(name)
                     ? store_step(folder, name, make && last_two, last, &doubt)
                     : TIDE_STORE_REFUSED;
        last_name = name;
        name = after;
    }
    if (result == TIDE_STORE_REFUSED)
        snprintf(why, room, "its folder '%.80s' %s", last_name, doubt);
    return result;
}

/* The path below tide_store_start; false: there is no home, or it is too long. */
static bool store_find_path(char *path, size_t room)
{
    const tide_locate_environment *said = tide_locate_environment_get();
    const char *base = said->cache != NULL ? said->cache : said->home;
    const char *middle = said->cache != NULL ? "" : "/.cache";
    size_t start = strlen(tide_store_start);
    if (base == NULL || strncmp(base, tide_store_start, start) != 0)
        return false;
    int length = snprintf(path, room, "%s%s/tidepool", base + start, middle);
    return length > 0 && (size_t)length < room;
}

static tide_store_result store_open(bool make, int *store, char *why, size_t room)
{
    char path[4096];
    if (tide_privileges_raised()) {
        snprintf(why, room, "the program runs with raised privileges");
        return TIDE_STORE_REFUSED;
    }
    if (!store_find_path(path, sizeof path)) {
        snprintf(why, room, "neither XDG_CACHE_HOME nor HOME is an absolute path that can be used");
        return TIDE_STORE_REFUSED;
    }
    int folder = open(tide_store_start, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return store_result_of(errno);
    tide_store_result result = store_walk(&folder, path, make, why, room);
    tide_assert(result != TIDE_STORE_OK || folder >= 0);
    if (result == TIDE_STORE_OK)
        *store = folder;
    else if (folder >= 0)
        close(folder);
    return result;
}

/* The program asked for a cache and has none. Of a file that is refused nothing is said: it is made
 * anew. */
static void store_say_once(const char *why)
{
    static bool said;
    char line[256];
    if (said)
        return;
    said = true;
    int length = snprintf(line, sizeof line, "tidepool: compiled code is not kept: %s\n", why);
    tide_assert(length > 0 && (size_t)length < sizeof line);
    tide_os_write_error(line, (size_t)length);
}

tide_store_result tide_store_open(bool make, int *store)
{
    char why[160] = "";
    *store = -1;
    tide_store_result result = store_open(make, store, why, sizeof why);
    if (result == TIDE_STORE_REFUSED)
        store_say_once(why);
    tide_assert((result == TIDE_STORE_OK) == (*store >= 0));
    return result;
}

/* ---- files -------------------------------------------------------------------------------- */

static bool store_believed_file(const struct stat *seen)
{
    return S_ISREG(seen->st_mode) && seen->st_uid == geteuid() && seen->st_nlink == 1 &&
           (seen->st_mode & 07777) == 0600;
}

static bool store_read_exactly(int file, char *to, size_t bytes)
{
    while (bytes > 0) {
        ssize_t got = read(file, to, bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got;
        bytes -= (size_t)got;
    }
    return true;
}

/* *text stays NULL unless all of the file was read. */
static tide_store_result store_read_open(int file, size_t most, char **text, size_t *bytes)
{
    struct stat seen;
    tide_assert(*text == NULL);
    if (fstat(file, &seen) != 0)
        return TIDE_STORE_FAILED;
    if (!store_believed_file(&seen) || (uint64_t)seen.st_size > most)
        return TIDE_STORE_REFUSED;
    *bytes = (size_t)seen.st_size;
    *text = tide_os_resize(NULL, *bytes + 1);
    if (*text == NULL)
        return TIDE_STORE_FAILED;
    (*text)[*bytes] = '\0';
    if (store_read_exactly(file, *text, *bytes))
        return TIDE_STORE_OK;
    tide_os_free(*text);
    *text = NULL;
    return TIDE_STORE_REFUSED;
}

/* O_NONBLOCK: a pipe or a device in the file's place must not make us wait. */
tide_store_result tide_store_read(int store, const char *name, size_t most, char **text,
                                  size_t *bytes)
{
    int file = openat(store, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    *text = NULL;
    tide_assert(store >= 0 && strchr(name, '/') == NULL);
    if (file < 0)
        return store_result_of(errno);
    tide_store_result result = store_read_open(file, most, text, bytes);
    tide_assert((result == TIDE_STORE_OK) == (*text != NULL));
    close(file);
    return result;
}

static bool store_write_exactly(int file, const char *text, size_t bytes)
{
    while (bytes > 0) {
        ssize_t put = write(file, text, bytes);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        text += put;
        bytes -= (size_t)put;
    }
    return true;
}

tide_store_result tide_store_write(int store, const char *name, const void *text, size_t bytes)
{
    static unsigned count;
    char temporary[64];
    tide_assert(store >= 0 && name[0] != '.' && strchr(name, '/') == NULL);
    snprintf(temporary, sizeof temporary, "%s%ld-%u", temporary_mark, (long)getpid(), count++);
    int file = tide_descriptor_lift(
        openat(store, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file < 0)
        return TIDE_STORE_FAILED;
    bool done =
        fchmod(file, 0600) == 0 && store_write_exactly(file, text, bytes) && fsync(file) == 0;
    done = close(file) == 0 && done && renameat(store, temporary, store, name) == 0;
    if (!done)
        (void)unlinkat(store, temporary, 0);
    return done ? TIDE_STORE_OK : TIDE_STORE_FAILED;
}

/* ---- the bound ---------------------------------------------------------------------------- */

typedef struct stored {
    struct timespec changed;
    uint64_t bytes;
    char name[64];
} stored;

typedef struct listing {
    stored *files;
    size_t count, room;
    uint64_t bytes;
} listing;

static bool store_make_room(listing *list)
{
    tide_assert(list->count <= list->room && list->room <= FILES_MAX);
    if (list->count < list->room)
        return true;
    size_t room = list->room != 0 ? list->room * 2 : 64;
    stored *files = room <= FILES_MAX ? tide_os_resize(list->files, room * sizeof *files) : NULL;
    if (files == NULL)
        return false;
    list->files = files;
    list->room = room;
    tide_assert(list->count < list->room);
    return true;
}

/* Is it the temporary file of a writer that is gone? */
static bool store_is_left_over(const char *name, const struct stat *seen)
{
    return strncmp(name, temporary_mark, strlen(temporary_mark)) == 0 &&
           seen->st_mtim.tv_sec + OLD < time(NULL);
}

/* Lists a file; removes one that a writer left over. Whatever is not a plain file is let alone. */
static void store_list_file(int store, const char *name, listing *list)
{
    struct stat seen;
    if (fstatat(store, name, &seen, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(seen.st_mode))
        return;
    if (store_is_left_over(name, &seen)) {
        (void)unlinkat(store, name, 0);
        return;
    }
    if (name[0] == '.' || strlen(name) >= sizeof list->files->name || !store_make_room(list))
        return;
    stored *file = &list->files[list->count++];
    file->changed = seen.st_mtim;
    file->bytes = (uint64_t)seen.st_blocks * 512; /* what the file takes, as `du` counts */
    strcpy(file->name, name);
    list->bytes += file->bytes;
}

static void store_list_files(int store, listing *list)
{
    int copy = openat(store, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = copy >= 0 ? fdopendir(copy) : NULL;
    if (folder == NULL) {
        if (copy >= 0)
            close(copy);
        return;
    }
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        store_list_file(store, entry->d_name, list);
    closedir(folder);
}

static int store_older_first(const void *left, const void *right)
{
    const struct timespec *a = &((const stored *)left)->changed,
                          *b = &((const stored *)right)->changed;
    if (a->tv_sec != b->tv_sec)
        return a->tv_sec < b->tv_sec ? -1 : 1;
    return (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

void tide_store_bound(int store, uint64_t most)
{
    listing list = {0};
    store_list_files(store, &list);
    if (list.bytes > most) {
        qsort(list.files, list.count, sizeof *list.files, store_older_first);
        for (size_t i = 0; i < list.count && list.bytes > most; i++)
            if (unlinkat(store, list.files[i].name, 0) == 0) {
                tide_assert(list.bytes >= list.files[i].bytes);
                list.bytes -= list.files[i].bytes;
            }
    }
    tide_os_free(list.files);
}

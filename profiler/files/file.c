/* SPDX-License-Identifier: MIT */
/* Profiles in files. A file is taken whole or not at all; a new one is written beside the old one
 * and then renamed, so that no reader ever sees half of it. */
#define _GNU_SOURCE
#include "profiler/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tidepool/profile.h>

#include "profiler/files/loaded.h"
#include "profiler/files/text.h"
#include "runtime/base/assert.h"
#include "runtime/base/document.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/base/ring.h"

/* Bytes that a temporary name is longer than the path, the 0 included, and some to spare. */
enum { FILE_SUFFIX = 64 };
_Static_assert(FILE_SUFFIX > sizeof ".-.tmp" + 20 + 10, "a process and a count, in decimal");

/* Fails with the system's own words about the path. */
static tide_status file_system_failed(const char *call, const char *what, const char *path)
{
    char buffer[128];
    const char *said = strerror_r(errno, buffer, sizeof buffer);
    return tide_fail(TIDE_ERROR_FILE, call, "cannot %s '%.200s': %s", what, path, said);
}

/* ---- reading ---------------------------------------------------------------------------- */

/* Reads until the file ends or the room is full. */
static tide_status file_read_up_to(int file, char *bytes, size_t room, size_t *length,
                                   const char *path, const char *call)
{
    *length = 0;
    while (*length < room) {
        ssize_t got = read(file, bytes + *length, room - *length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return file_system_failed(call, "read", path);
        if (got == 0)
            break;
        *length += (size_t)got;
        tide_assert(*length <= room);
    }
    return TIDE_OK;
}

/* The bytes of a file, to be freed whatever happened. One that grows while it is read lacks its last
 * line here: the parser refuses it for that. */
static tide_status file_read_open(int file, char **bytes, size_t *length, const char *path,
                                  const char *call)
{
    struct stat facts;
    if (fstat(file, &facts) != 0)
        return file_system_failed(call, "look at", path);
    if (!S_ISREG(facts.st_mode))
        return tide_fail(TIDE_ERROR_FILE, call, "'%.200s' is not a plain file", path);
    if (facts.st_size < 0 || (uintmax_t)facts.st_size > TIDE_TEXT_BYTES)
        return tide_fail(TIDE_ERROR_FILE, call, "'%.200s' has %jd bytes, limit %zu", path,
                         (intmax_t)facts.st_size, TIDE_TEXT_BYTES);
    size_t room = (size_t)facts.st_size + 1;
    *bytes = tide_os_resize(NULL, room);
    if (*bytes == NULL)
        return tide_fail(TIDE_ERROR_MEMORY, call, "no memory for %zu bytes of '%.200s'", room,
                         path);
    return file_read_up_to(file, *bytes, room, length, path, call);
}

/* O_NONBLOCK: a pipe or a device would let us wait, perhaps for ever. */
static tide_status file_read(const char *path, char **bytes, size_t *length, const char *call)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return file_system_failed(call, "open", path);
    tide_status status = file_read_open(file, bytes, length, path, call);
    close(file);
    return status;
}

/* Makes the text's profiles those that are loaded. The set is made before the registry is locked;
 * the registry then only takes it over. */
static tide_status file_take(const char *bytes, size_t length, const char *path, bool merge,
                             double weight, const char *call)
{
    tide_profile_set *set = tide_profile_set_create(call);
    if (set == NULL)
        return TIDE_ERROR_MEMORY;
    tide_status status = tide_profile_text_read(bytes, length, set, path, call);
    if (status == TIDE_OK)
        tide_profile_set_weigh(set, weight);
    tide_registry_lock();
    if (status == TIDE_OK && merge)
        status = tide_loaded_copy(set, call);
    if (status == TIDE_OK)
        tide_loaded_replace(set);
    tide_registry_unlock();
    if (status != TIDE_OK)
        tide_profile_set_destroy(set);
    return status;
}

static tide_status file_load(const char *path, bool merge, const char *call)
{
    char *bytes = NULL;
    size_t length = 0;
    if (path == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the path is NULL");
    tide_attach();
    tide_status status = file_read(path, &bytes, &length, call);
    if (status == TIDE_OK)
        status = file_take(bytes, length, path, merge, 1, call);
    tide_os_free(bytes);
    return status;
}

tide_status tide_profile_load(const char *path)
{
    return file_load(path, false, "tide_profile_load");
}

tide_status tide_profile_merge(const char *path)
{
    return file_load(path, true, "tide_profile_merge");
}

tide_status tide_profile_read(const char *bytes, size_t length, bool merge)
{
    return tide_profile_read_weighed(bytes, length, merge, 1);
}

tide_status tide_profile_read_weighed(const char *bytes, size_t length, bool merge, double weight)
{
    const char *call = "tide_profile_read";
    if (bytes == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the text is NULL, of %zu bytes", length);
    if (length > TIDE_TEXT_BYTES)
        return tide_fail(TIDE_ERROR_LIMIT, call, "the text has %zu bytes, limit %zu", length,
                         TIDE_TEXT_BYTES);
    tide_attach();
    return file_take(bytes, length, "the text", merge, weight, call);
}

/* ---- writing ---------------------------------------------------------------------------- */

static bool file_write_all(int file, const char *text, size_t length)
{
    tide_assert(length <= TIDE_TEXT_BYTES);
    for (size_t done = 0; done < length;) {
        ssize_t wrote = write(file, text + done, length - done);
        if (wrote < 0 && errno != EINTR)
            return false;
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    return fsync(file) == 0;
}

/* Makes a file beside the path, of a name that nobody has. Its descriptor, or -1. */
static int file_create_beside(const char *path, char *name, size_t room)
{
    static unsigned turn;
    enum { TRIES = 100 };
    int file = -1;
    for (int i = 0; i < TRIES; i++) {
        unsigned number = __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED);
        int length = snprintf(name, room, "%s.%ld-%u.tmp", path, (long)getpid(), number);
        tide_assert(length > 0 && (size_t)length < room);
        (void)length;
        file = tide_os_lift(open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
        if (file >= 0 || errno != EEXIST)
            break;
    }
    return file;
}

/* Writes a temporary file and renames it. Whatever fails, the temporary file goes. */
static tide_status file_write_beside(const char *path, char *name, size_t room, const char *text,
                                     size_t length, const char *call)
{
    int file = file_create_beside(path, name, room);
    if (file < 0)
        return file_system_failed(call, "create", name);
    tide_status status = TIDE_OK;
    if (!file_write_all(file, text, length))
        status = file_system_failed(call, "write", name);
    if (close(file) != 0 && status == TIDE_OK)
        status = file_system_failed(call, "close", name);
    if (status == TIDE_OK && rename(name, path) != 0)
        status = file_system_failed(call, "rename to", path);
    if (status != TIDE_OK)
        (void)unlink(name);
    return status;
}

static tide_status file_write(const char *path, const char *text, size_t length, const char *call)
{
    size_t room = strlen(path) + FILE_SUFFIX;
    char *name = tide_os_resize(NULL, room);
    if (name == NULL)
        return tide_fail(TIDE_ERROR_MEMORY, call, "no memory for a name beside '%.200s'", path);
    tide_status status = file_write_beside(path, name, room, text, length, call);
    tide_os_free(name);
    return status;
}

/* Takes the text of all profiles, which is the caller's to free; NULL: it failed. The registry is
 * locked only while the profile is collected, not while the system works. */
static tide_status file_collect(char **text, size_t *length, bool own, const char *call)
{
    *text = NULL;
    tide_attach();
    tide_profile_set *set = tide_profile_set_create(call);
    if (set == NULL)
        return TIDE_ERROR_MEMORY;
    tide_registry_lock();
    tide_status status = tide_loaded_collect(set, own, call);
    tide_registry_unlock();
    tide_assert(set->site_count <= TIDE_PROFILE_SET_SITES);
    if (status == TIDE_OK)
        status = tide_profile_text_write(set, text, length, call);
    tide_profile_set_destroy(set);
    return status;
}

tide_status tide_profile_save(const char *path)
{
    const char *call = "tide_profile_save";
    char *text;
    size_t length;
    if (path == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the path is NULL");
    tide_status status = file_collect(&text, &length, false, call);
    if (status == TIDE_OK)
        status = file_write(path, text, length, call);
    free(text);
    return status;
}

static tide_status file_write_stream(FILE *out, bool own, const char *call)
{
    char *text;
    size_t length;
    if (out == NULL)
        return tide_fail(TIDE_ERROR_ARGUMENT, call, "the stream is NULL");
    TIDE_FORWARD(file_collect(&text, &length, own, call));
    return tide_document_put(text, length, out, call);
}

tide_status tide_profile_write(FILE *out)
{
    return file_write_stream(out, false, "tide_profile_write");
}

tide_status tide_profile_write_own(FILE *out)
{
    return file_write_stream(out, true, "tide_profile_write_own");
}

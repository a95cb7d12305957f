/* SPDX-License-Identifier: MIT */
/* Limits and pressure of control groups, as the kernel documents them: cgroup-v2.rst, cgroup-v1/
 * memory.rst, psi.rst.
 *
 * /proc/self/cgroup tells where the process is, a line for each hierarchy: "0::/a/b" (version 2) or
 * "4:memory:/a/b" (version 1). In a container the path may be one of the host's, which is not there:
 * so each folder on it is asked, up to the mount itself, and those that are missing say nothing. */
#define _GNU_SOURCE
#include "runtime/base/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/assert.h"
#include "runtime/base/test_hooks.h"

const char *_Atomic tide_cgroup_root = "";

/* The beginning of a file, as a text. False: it cannot be read; errno says why. */
static bool cgroup_text(const char *folder, const char *name, char *text, size_t room)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s%s/%s", tide_cgroup_root, folder, name);
    tide_assert(room > 0);
    if (length < 0 || (size_t)length >= sizeof path) {
        errno = ENAMETOOLONG;
        return false;
    }
    int from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return false;
    size_t got = 0;
    ssize_t more = 1;
    while (got + 1 < room && (more = read(from, text + got, room - 1 - got)) > 0)
        got += (size_t)more;
    text[got] = '\0';
    (void)close(from);
    return more >= 0;
}

/* Lowers the limit to what the file says: nothing by "max", or by version 1's number that is as good
 * as none. False: there may be such a file, and it cannot be read. */
static bool cgroup_lower(size_t *limit, const char *folder, const char *name)
{
    char text[32], *end;
    if (!cgroup_text(folder, name, text, sizeof text))
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES;
    unsigned long long bytes = strtoull(text, &end, 10);
    if (end != text && bytes < SIZE_MAX / 4 && bytes < *limit)
        *limit = (size_t)bytes;
    return true;
}

/* A program that was shut in below a folder of its own (chroot) may have /proc and not this. */
static bool cgroup_is_mounted(void)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/sys/fs/cgroup", tide_cgroup_root);
    return length > 0 && (size_t)length < sizeof path && access(path, F_OK) == 0;
}

typedef struct look {
    tide_cgroup *out;
    bool known; /* each limit that there may be */
    bool told;  /* pressure is */
} look;

/* "some avg10=12.34 avg60=…". Whole percents: what stands behind the point has no locale here. */
static bool cgroup_stalled(const char *folder, const char *name, unsigned *percent)
{
    static const char before[] = "some avg10=";
    char text[64];
    if (!cgroup_text(folder, name, text, sizeof text) || strncmp(text, before, strlen(before)) != 0)
        return false;
    *percent = (unsigned)strtoul(text + strlen(before), NULL, 10);
    return true;
}

/* One hierarchy, from the process's own group up to where it is mounted. */
static void cgroup_walk(const char *mount, const char *path, bool first, look *at)
{
    char folder[PATH_MAX];
    int length = snprintf(folder, sizeof folder, "%s%s", mount, path);
    if (length < 0 || (size_t)length >= sizeof folder)
        return;
    for (char *end = folder + length; end != NULL; end = strrchr(folder + strlen(mount), '/')) {
        *end = '\0';
        at->known &=
            cgroup_lower(&at->out->max, folder, first ? "memory.limit_in_bytes" : "memory.max");
        if (!first)
            at->known &= cgroup_lower(&at->out->high, folder, "memory.high");
        if (!first && !at->told)
            at->told = cgroup_stalled(folder, "memory.pressure", &at->out->stalled);
    }
}

/* Is "memory" one of the controllers, which commas part? */
static bool cgroup_has_memory(const char *controllers)
{
    static const char name[] = "memory";
    const char *found = strstr(controllers, name);
    const char after = found != NULL ? found[strlen(name)] : '?';
    return found != NULL && (found == controllers || found[-1] == ',') &&
           (after == ',' || after == '\0');
}

/* One line, without its end: the hierarchy's number, its controllers, the path. */
static void cgroup_line(char *line, look *at)
{
    char *controllers = strchr(line, ':');
    char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (path == NULL)
        return;
    *path++ = '\0';
    if (strcmp(path, "/") == 0)
        path++; /* the mount itself */
    controllers++;
    if (*controllers == '\0') {
        cgroup_walk("/sys/fs/cgroup", path, false, at);
        cgroup_walk("/sys/fs/cgroup/unified", path, false, at);
    } else if (cgroup_has_memory(controllers)) {
        cgroup_walk("/sys/fs/cgroup/memory", path, true, at);
    }
}

bool tide_cgroup_read(tide_cgroup *out)
{
    enum { LINES = 8192 };
    char text[LINES], *rest = NULL;
    int error = errno;
    look at = {.out = out, .known = cgroup_is_mounted()};
    *out = (tide_cgroup){.max = SIZE_MAX, .high = SIZE_MAX};
    if (!cgroup_text("/proc/self", "cgroup", text, sizeof text)) {
        at.known = false;
        text[0] = '\0';
    }
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        cgroup_line(line, &at);
    if (!at.told)
        (void)cgroup_stalled("/proc/pressure", "memory", &out->stalled);
    errno = error;
    return at.known;
}

/* SPDX-License-Identifier: MIT */
/* Where processes that listen have their sockets, and which are there. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/listen/folder.h"
#include "profiler/record/need.h"
#include "profiler/tool/client.h"
#include "profiler/tool/tool.h"
#include "runtime/base/assert.h"

const char *tool_folder(const char *folder)
{
    static char path[TIDE_LISTEN_FOLDER_ROOM];
    return tide_listen_folder(path, sizeof path, folder) ? path : NULL;
}

/* 0: the name is no socket's. */
static pid_t folder_read_name(const char *name)
{
    char *end;
    long pid = name[0] >= '1' && name[0] <= '9' ? strtol(name, &end, 10) : 0;
    return pid > 0 && pid <= INT_MAX && strcmp(end, ".sock") == 0 ? (pid_t)pid : 0;
}

static int folder_compare(const void *a, const void *b)
{
    pid_t left = *(const pid_t *)a, right = *(const pid_t *)b;
    return (left > right) - (left < right);
}

size_t tool_folder_list(const char *folder, pid_t **out)
{
    const char *path = tool_folder(folder);
    DIR *list = path != NULL ? opendir(path) : NULL;
    size_t count = 0;
    *out = NULL;
    if (list == NULL && path != NULL && errno != ENOENT) /* else nobody has listened yet */
        exit(tool_complain(TOOL_NO, "%.200s: %s", path, strerror(errno)));
    if (list == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
        pid_t pid = folder_read_name(entry->d_name);
        if (pid == 0)
            continue;
        *out = tide_need(realloc(*out, (count + 1) * sizeof **out));
        (*out)[count++] = pid;
    }
    closedir(list);
    tide_assert(count == 0 || *out != NULL);
    if (count > 1)
        qsort(*out, count, sizeof **out, folder_compare);
    return count;
}

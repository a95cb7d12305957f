/* SPDX-License-Identifier: MIT */
/* Where processes that listen have their sockets, which are there, and which of them is meant. */
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
#include "profiler/record/value.h"
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

static bool folder_runs(tool_client *client, const char *program, json_t **facts)
{
    if (tool_client_facts(client, facts) != TOOL_OK)
        return false;
    if (strcmp(tide_value_text(*facts, "program"), program) == 0)
        return true;
    json_decref(*facts);
    *facts = NULL;
    return false;
}

int tool_client_find(tool_client *client, const char *program, const tool_options *options,
                     json_t **facts)
{
    pid_t *list;
    *facts = NULL;
    *client = (tool_client){.socket = -1};
    for (size_t i = tool_folder_list(options->folder, &list); *facts == NULL && i > 0; i--) {
        if (tool_client_open(client, list[i - 1], options->folder, options->timeout_ms) ==
                TOOL_OK &&
            !folder_runs(client, program, facts))
            tool_client_close(client);
    }
    free(list);
    tide_assert((*facts != NULL) == (client->socket >= 0));
    if (*facts == NULL)
        snprintf(client->error, sizeof client->error, "no process that listens runs '%.80s'",
                 program);
    return *facts != NULL ? TOOL_OK : TOOL_NOBODY;
}

int tool_process_of(const char *text, const tool_options *options, pid_t *pid)
{
    tool_client client;
    json_t *facts;
    if (text[0] == '\0' || text[strspn(text, "0123456789")] != '\0') {
        int code = tool_client_find(&client, text, options, &facts);
        *pid = client.pid;
        json_decref(facts);
        tool_client_close(&client);
        return code == TOOL_OK ? code : tool_client_complain(&client, code);
    }
    errno = 0;
    long number = strtol(text, NULL, 10);
    if (errno != 0 || number < 1 || number > INT_MAX)
        return tool_complain(TOOL_USAGE, "'%.60s' is no number of a process", text);
    *pid = (pid_t)number;
    return TOOL_OK;
}

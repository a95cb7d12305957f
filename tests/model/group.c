/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "group.h"
#include "runtime/device/group.h"
#include "tests/hooks.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tidepool/tune.h>

static char folder[] = "/tmp/tidepool-model-XXXXXX";
static pid_t maker; /* 0: there is none */

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)about, (void)kind, (void)where;
    return remove(path);
}

static void remove_folder(void)
{
    if (maker == getpid())
        (void)nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void write_file(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s%s", folder, name);
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0)
        abort();
}

static void make_folder(void)
{
    static const char *const inner[] = {"/proc", "/proc/self", "/sys", "/sys/fs", "/sys/fs/cgroup"};
    char path[128];
    if (mkdtemp(folder) == NULL || atexit(remove_folder) != 0)
        abort();
    maker = getpid();
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++) {
        snprintf(path, sizeof path, "%s%s", folder, inner[i]);
        if (mkdir(path, 0700) != 0)
            abort();
    }
    write_file("/proc/self/cgroup", "0::/\n");
    write_file("/sys/fs/cgroup/memory.max", "1099511627776\n");
}

void group_enter(size_t high)
{
    char text[32];
    if (maker == 0)
        make_folder();
    snprintf(text, sizeof text, "%zu\n", high);
    write_file("/sys/fs/cgroup/memory.high", text);
    set_cgroup_root(folder);
    if (tide_tune_set("process_limit", -1) != TIDE_OK)
        abort();
    (void)tide_group_look();
}

void group_leave(void)
{
    if (tide_tune_set("process_limit", 0) != TIDE_OK)
        abort();
    set_cgroup_root("");
}

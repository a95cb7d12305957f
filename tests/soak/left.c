/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/soak/left.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

unsigned left_descriptors(void)
{
    unsigned count = 0;
    for (int i = 3; i < 1024; i++)
        count += dup2(i, i) == i;
    return count;
}

/* ---- processes -------------------------------------------------------------------------- */

/* 0: it is gone. Its name is in parentheses, and may have any in it. */
static pid_t left_parent(pid_t process)
{
    char path[64], line[512] = "";
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    size_t bytes = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    while (bytes > 0 && line[bytes - 1] != ')')
        bytes--;
    return sscanf(line + bytes, " %*c %d", &parent) == 1 ? (pid_t)parent : 0;
}

unsigned left_processes(pid_t ancestor, pid_t except)
{
    unsigned count = 0;
    DIR *processes = opendir("/proc");
    struct dirent *entry;
    while (processes != NULL && (entry = readdir(processes)) != NULL) {
        pid_t process = (pid_t)atoi(entry->d_name), above = process;
        if (process <= 1 || process == except)
            continue;
        do
            above = left_parent(above);
        while (above > 1 && above != ancestor);
        count += above == ancestor;
    }
    if (processes != NULL)
        closedir(processes);
    return count;
}

/* ---- the end ---------------------------------------------------------------------------- */

static unsigned left_files; /* and folders */

static int left_count_and_remove(const char *path, const struct stat *seen, int type,
                                 struct FTW *place)
{
    (void)seen;
    (void)type;
    if (place->level > 0) {
        left_files++;
        fprintf(stderr, "soak: left: %s\n", path);
    }
    return remove(path);
}

static void left_name_folder(const char *folder)
{
    static const char *const names[] = {"TMPDIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "HOME"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        setenv(names[i], folder, 1);
}

static pid_t left_start(int count, char **arguments)
{
    fflush(NULL);
    pid_t child = fork();
    if (child != 0)
        return child;
    char **given = calloc((size_t)count + 2, sizeof *given);
    if (given != NULL) {
        given[0] = arguments[0];
        given[1] = (char[]){"--inside"};
        for (int i = 1; i < count; i++)
            given[i + 1] = arguments[i];
        execv("/proc/self/exe", given);
    }
    _exit(127);
}

/* Collects orphans until that child has ended. */
static int left_wait(pid_t child)
{
    int status = 0;
    for (pid_t ended = 0; ended != child;)
        if ((ended = waitpid(-1, &status, 0)) < 0 && errno != EINTR)
            return -1;
    return status;
}

bool left_run_inside(int count, char **arguments, unsigned patience)
{
    char folder[] = "/tmp/tidepool-soak-XXXXXX";
    if (mkdtemp(folder) == NULL || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
        return false;
    left_name_folder(folder);
    pid_t child = left_start(count, arguments);
    int status = child > 0 ? left_wait(child) : -1;
    unsigned processes = left_processes(getpid(), 0);
    for (unsigned tenth = 0; processes != 0 && tenth < 10 * patience; tenth++) {
        usleep(100000);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
        processes = left_processes(getpid(), 0);
    }
    nftw(folder, left_count_and_remove, 16, FTW_DEPTH | FTW_PHYS);
    printf("after the end of %d: status %#x, processes %u, files %u\n", (int)child,
           (unsigned)status, processes, left_files);
    return status == 0 && processes == 0 && left_files == 0;
}

/* SPDX-License-Identifier: MIT */
/* Scale, child processes, pipes and folders for all tests. */
#define _GNU_SOURCE
#include "support.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

size_t scaled(size_t count, size_t least)
{
    const char *text = getenv("TIDE_TEST_SCALE");
    double scale = text == NULL ? 1 : atof(text);
    size_t wanted = (size_t)((double)count * (scale > 0 ? scale : 1));
    return wanted < least ? least : wanted;
}

pid_t fork_child(unsigned seconds)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        alarm(seconds);
    return child;
}

int wait_for_child(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void expect_child_ends_well(pid_t child)
{
    assert_int_equal(wait_for_child(child), 0);
}

char system_state(int number)
{
    char path[64], state = '?';
    snprintf(path, sizeof path, "/proc/%d/stat", number);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return state;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = '?'; /* it has ended since */
    fclose(file);
    return state;
}

size_t read_to_end(int from, char *to, size_t room)
{
    size_t length = 0;
    char rest[512];
    for (ssize_t got; length + 1 < room && (got = read(from, to + length, room - 1 - length)) > 0;)
        length += (size_t)got;
    while (read(from, rest, sizeof rest) > 0)
        continue;
    to[length] = '\0';
    close(from);
    return length;
}

size_t count_entries(const char *folder, bool (*counts)(const char *name))
{
    size_t count = 0;
    DIR *list = opendir(folder);
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list)) != NULL;)
        count += entry->d_name[0] != '.' && (counts == NULL || counts(entry->d_name));
    closedir(list);
    return count;
}

size_t count_open(const char *path)
{
    size_t count = 0;
    DIR *all = opendir("/proc/self/fd");
    assert_non_null(all);
    for (struct dirent *one; (one = readdir(all)) != NULL;) {
        char link[300], file[300];
        snprintf(link, sizeof link, "/proc/self/fd/%s", one->d_name);
        ssize_t length = readlink(link, file, sizeof file - 1);
        file[length > 0 ? length : 0] = '\0';
        count += strncmp(file, path, strlen(path)) == 0;
    }
    closedir(all);
    return count;
}

/* SPDX-License-Identifier: MIT */
/* The stager, run as another program. */
#define _GNU_SOURCE
#include "profiler/tool/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiler/record/need.h"
#include "profiler/tool/tool.h"
#include "runtime/base/assert.h"

bool tool_find_stager(char path[PATH_MAX])
{
    static const char *const places[] = {"", "../libexec/tidepool/"};
    char own[PATH_MAX / 2];
    const char *named = getenv("TIDEPOOL_STAGER");
    if (named != NULL && named[0] == '/' && access(named, X_OK) == 0)
        return snprintf(path, PATH_MAX, "%s", named) < PATH_MAX;
    ssize_t length = readlink("/proc/self/exe", own, sizeof own);
    if (length <= 0 || length == sizeof own)
        return false;
    own[length] = '\0';
    char *slash = strrchr(own, '/');
    tide_assert(slash != NULL);
    slash[1] = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, PATH_MAX, "%s%stidepool-stage", own, places[i]);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

/* Files in memory hold what goes in and what comes out, so nobody waits for anybody. `output` < 0:
 * ours. Its exit status, -1 after a complaint. */
static int launch_run(const char *path, char *const args[], const char *input, int output)
{
    posix_spawn_file_actions_t files;
    pid_t child;
    int status = 0, from = memfd_create("tidepool-input", MFD_CLOEXEC);
    fflush(stdout);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, from, STDIN_FILENO);
    if (output >= 0) { /* it comes without complaints */
        posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
        posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    }
    int error = from >= 0 && pwrite(from, input, strlen(input), 0) == (ssize_t)strlen(input)
                    ? posix_spawn(&child, path, &files, NULL, args, environ)
                    : errno;
    posix_spawn_file_actions_destroy(&files);
    if (from >= 0)
        close(from);
    if (error != 0)
        return tool_complain(TOOL_NO, "'%s' cannot be run: %s", path, strerror(error)), -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int tool_run_program(const char *path, char *const args[], const char *input)
{
    return launch_run(path, args, input, -1);
}

char *tool_run_for_text(const char *path, char *const args[], const char *input)
{
    int output = memfd_create("tidepool-output", MFD_CLOEXEC);
    char *text = NULL;
    if (output >= 0 && launch_run(path, args, input, output) == 0) {
        off_t length = lseek(output, 0, SEEK_END);
        text = tide_need(calloc(1, (size_t)length + 1));
        (void)!pread(output, text, (size_t)length, 0);
    }
    if (output >= 0)
        close(output);
    return text;
}

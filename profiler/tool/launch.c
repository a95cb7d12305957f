/* SPDX-License-Identifier: MIT */
/* Other programs. */
#define _GNU_SOURCE
#include "profiler/tool/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* In the child. An output of its own comes without complaints. */
static void launch_execute(const char *path, char *const args[], const int input[2], int output)
{
    (void)signal(SIGPIPE, SIG_DFL);
    if (input[0] >= 0)
        (void)dup2(input[0], STDIN_FILENO);
    if (output >= 0) {
        (void)dup2(output, STDOUT_FILENO);
        (void)dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
    }
    execv(path, args);
    _exit(127);
}

static void launch_feed(int to, const char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        ssize_t wrote = write(to, text, left);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            break;
        text += wrote;
        left -= (size_t)wrote;
    }
    close(to);
}

/* `output` < 0: ours. */
static int launch_run(const char *path, char *const args[], const char *input, int output)
{
    int pipe_ends[2] = {-1, -1}, status = 0;
    fflush(stdout);
    if (input != NULL && pipe2(pipe_ends, O_CLOEXEC) != 0)
        return tool_complain(TOOL_NO, "no pipe: %s", strerror(errno)), -1;
    pid_t child = fork();
    if (child == 0)
        launch_execute(path, args, pipe_ends, output);
    if (input != NULL) {
        close(pipe_ends[0]);
        launch_feed(pipe_ends[1], input);
    }
    if (child < 0)
        return tool_complain(TOOL_NO, "'%s' cannot be run: %s", path, strerror(errno)), -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int tool_run_program(const char *path, char *const args[], const char *input)
{
    return launch_run(path, args, input, -1);
}

/* From a file in memory: a program that writes while it is fed waits for nobody then. */
static char *launch_read(int from)
{
    off_t length = lseek(from, 0, SEEK_END);
    char *text = length >= 0 ? malloc((size_t)length + 1) : NULL;
    if (text != NULL && pread(from, text, (size_t)length, 0) == length) {
        text[length] = '\0';
        return text;
    }
    free(text);
    return NULL;
}

char *tool_run_for_text(const char *path, char *const args[], const char *input)
{
    int output = memfd_create("tidepool-output", MFD_CLOEXEC);
    char *text = NULL;
    if (output < 0)
        return NULL;
    if (launch_run(path, args, input, output) == 0)
        text = launch_read(output);
    close(output);
    return text;
}

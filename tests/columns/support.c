/* SPDX-License-Identifier: MIT */
/* Temporary files and child processes. */
#include "support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_FILES = 512, MOST_ARGUMENTS = 64 };

static char *files[MOST_FILES];
static size_t file_count;
static pid_t owner;

static void remove_files(void)
{
    for (size_t i = 0; i < file_count; i++) {
        if (getpid() == owner)
            unlink(files[i]);
        free(files[i]);
    }
    file_count = 0;
}

const char *file_with(const char *bytes, size_t length)
{
    const char *folder = getenv("TMPDIR");
    char *path = NULL;
    if (file_count == 0) {
        owner = getpid();
        atexit(remove_files);
    }
    if (file_count == MOST_FILES ||
        asprintf(&path, "%s/columns-test-XXXXXX", folder != NULL ? folder : "/tmp") < 0)
        abort();
    int file = mkstemp(path);
    if (file < 0 || write(file, bytes, length) != (ssize_t)length || close(file) != 0) {
        perror(path);
        abort();
    }
    files[file_count++] = path;
    return path;
}

static char *whole_file(int file, size_t *length)
{
    off_t end = lseek(file, 0, SEEK_END);
    char *text = malloc((size_t)end + 1);
    if (end < 0 || text == NULL || pread(file, text, (size_t)end, 0) != end)
        abort();
    text[end] = '\0';
    *length = (size_t)end;
    return text;
}

/* An open file that has no name any more. */
static int scratch(void)
{
    char path[] = "/tmp/columns-test-XXXXXX";
    int file = mkstemp(path);
    if (file < 0)
        abort();
    unlink(path);
    return file;
}

static void become(const char *const *arguments, int out, int err)
{
    int in = open("/dev/null", O_RDONLY);
    dup2(in, 0);
    dup2(out, 1);
    dup2(err, 2);
    execvp(arguments[0], (char *const *)arguments);
    perror(arguments[0]);
    _exit(127);
}

outcome run_program(const char *const *arguments)
{
    int out = scratch(), err = scratch(), how;
    pid_t child = fork();
    if (child == 0)
        become(arguments, out, err);
    if (child < 0 || waitpid(child, &how, 0) != child)
        abort();
    size_t err_length;
    outcome o = {.status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how)};
    o.out = whole_file(out, &o.out_length);
    o.err = whole_file(err, &err_length);
    close(out);
    close(err);
    return o;
}

outcome run_tested(const char *const *arguments)
{
    const char *all[MOST_ARGUMENTS] = {NULL}, *launcher = getenv("TIDE_TEST_LAUNCHER");
    char *words = strdup(launcher != NULL ? launcher : "");
    size_t count = 0;
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " "))
        all[count++] = word;
    for (size_t i = 0; arguments[i] != NULL; i++) {
        assert_true(count + 1 < MOST_ARGUMENTS);
        all[count++] = arguments[i];
    }
    outcome o = run_program(all);
    free(words);
    return o;
}

void outcome_free(outcome *o)
{
    free(o->out);
    free(o->err);
}

bool have_program(const char *name)
{
    char command[200];
    snprintf(command, sizeof command, "command -v %s >/dev/null", name);
    return system(command) == 0;
}

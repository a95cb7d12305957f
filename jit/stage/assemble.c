/* SPDX-License-Identifier: MIT */
/* The assembler and the linker are started here, one process each. libgccjit would start them by
 * way of its driver and of collect2, which together take as long as the linker. Nothing is
 * imported, so the linker needs no libraries and no folders to look for them. */
#include "jit/stage/assemble.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jit/stage/emit.h"
#include "runtime/base/assert.h"

extern char **environ;

/* ---- tools ---------------------------------------------------------------------------------- */

static bool assemble_failed(char error[STAGE_ERROR_BYTES], const char *tool, const char *what,
                            int number)
{
    snprintf(error, STAGE_ERROR_BYTES, "%s: %s %d", tool, what, number);
    return false;
}

/* Runs a program that is found by PATH, to its end. */
static bool assemble_run(char *const *args, char error[STAGE_ERROR_BYTES])
{
    pid_t tool;
    int status, why = posix_spawnp(&tool, args[0], NULL, NULL, args, environ);
    if (why != 0)
        return assemble_failed(error, args[0], strerror(why), why);
    while (waitpid(tool, &status, 0) < 0)
        if (errno != EINTR)
            return assemble_failed(error, args[0], "lost, error", errno);
    if (WIFSIGNALED(status))
        return assemble_failed(error, args[0], "killed by signal", WTERMSIG(status));
    tide_assert(WIFEXITED(status));
    return WEXITSTATUS(status) == 0 ||
           assemble_failed(error, args[0], "ended with status", WEXITSTATUS(status));
}

bool stage_assemble(const char *path, char error[STAGE_ERROR_BYTES])
{
    char text[STAGE_PATH_BYTES + 2], object[STAGE_PATH_BYTES + 2], library[STAGE_PATH_BYTES];
    tide_assert(strlen(path) < STAGE_PATH_BYTES);
    snprintf(library, sizeof library, "%s", path);
    snprintf(text, sizeof text, "%s.s", path);
    snprintf(object, sizeof object, "%s.o", path);
    char *assembler[] = {"as", "-o", object, text, NULL};
    char *linker[] = {
        "ld",
        "-shared",
        "-Bsymbolic", /* code knows where the pointer to the table is */
        "-z",
        "noseparate-code",
        "-z",
        "defs", /* an import is an error here, with its name, not where it is loaded */
        "--build-id",
        "--eh-frame-hdr",
        "--hash-style=gnu",
        "-o",
        library,
        object,
        NULL};
    bool good = assemble_run(assembler, error) && assemble_run(linker, error);
    (void)unlink(object);
    if (!good)
        (void)unlink(path); /* the linker may have been killed in the middle */
    return good;
}

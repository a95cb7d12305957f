/* SPDX-License-Identifier: MIT */
/* The assembler and the linker are started here, one process each. libgccjit would start them by
 * way of its driver and of collect2, which together take as long as the linker. Nothing is
 * imported, so the linker needs no libraries and no folders to look for them. */
#include "jit/stage/assemble.h"

#include <errno.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jit/stage/emit.h"
#include "runtime/base/assert.h"

extern char **environ;

/* ---- the text ------------------------------------------------------------------------------- */

static void assemble_label(FILE *out, const char *name, const char *label)
{
    fprintf(out, "\t.globl\t%s\n\t.type\t%s, %%object\n\t.size\t%s, 8\n%s:\n", name, name, name,
            label);
}

static void assemble_word(FILE *out, const char *name, uint64_t value)
{
    assemble_label(out, name, name);
    fprintf(out, "\t.quad\t%" PRIu64 "\n", value);
}

/* Where the code begins and ends. Before it lie headers of the file, whose address is on the stack
 * of whoever has loaded it. */
static void assemble_place(FILE *out, const char *name)
{
    fprintf(out, "\t.globl\t%s\n%s:\n", name, name);
}

/* No function begins right there: of two names of one address dladdr, gdb and perf choose any. */
void stage_assemble_begin(FILE *out)
{
    fputs("\t.text\n", out);
    assemble_place(out, "tide_object_code");
    fputs("\tint3\n", out);
}

/* The pointer has two names: code knows it by one that cannot be replaced from outside, and the
 * library finds it by the other. */
void stage_assemble_end(FILE *out)
{
    fputs("\t.text\n", out);
    assemble_place(out, "tide_object_code_end");
    fputs("\t.section\t.rodata\n\t.balign\t8\n", out);
    assemble_word(out, "tide_object_magic", TIDE_CODE_MAGIC);
    assemble_word(out, "tide_object_layout", tide_compiled_layout());
    fputs("\t.bss\n\t.balign\t8\n", out);
    assemble_label(out, "tide_object_table", "tide_object_table");
    fputs(STAGE_TABLE ":\n\t.zero\t8\n\t.section\t.note.GNU-stack,\"\",%progbits\n", out);
}

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
    return good;
}

/* SPDX-License-Identifier: MIT */
/* tidepool-stage: the only program of this project that knows a compiler. Here: its command line,
 * and what it has in place of the library's way to die. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/stage/explain.h"
#include "jit/stage/serve.h"
#include "runtime/base/assert.h"

static const char usage[] =
    "usage: tidepool-stage --serve DIRECTORY           orders on stdin, answers on stdout\n"
    "       tidepool-stage --explain SPECFILE [--asm]  what is made of a spec (- = stdin)\n"
    "       tidepool-stage --compile SPECFILE -o FILE.so\n"
    "       tidepool-stage --version\n";

/* As in the library, none of which is linked here. */
void tide_assert_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "tidepool-stage: %s:%d: %s\n", file, line, what);
    abort();
}

/* AddressSanitizer asks: what libgccjit leaks with every compile is known, and nothing else can be
 * told from that. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return 1;
}

/* The exit status: output that cannot be written is a failure, whatever came before. */
static int main_finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fputs("tidepool-stage: the output cannot be written\n", stderr);
    return status != 0 ? status : 1;
}

int main(int count, char **args)
{
    const char *what = count > 1 ? args[1] : "";
    (void)signal(SIGCHLD,
                 SIG_DFL); /* inherited; ignored, the tools' ends could not be waited for */
    if (count == 3 && strcmp(what, "--serve") == 0)
        return stage_serve(args[2]);
    if (count == 2 && strcmp(what, "--version") == 0)
        return main_finish(puts(stage_version()) < 0);
    if (count == 2 && strcmp(what, "--help") == 0)
        return main_finish(fputs(usage, stdout) < 0);
    if (count == 3 && strcmp(what, "--explain") == 0)
        return main_finish(stage_explain(args[2], false));
    if (count == 4 && strcmp(what, "--explain") == 0 && strcmp(args[3], "--asm") == 0)
        return main_finish(stage_explain(args[2], true));
    if (count == 5 && strcmp(what, "--compile") == 0 && strcmp(args[3], "-o") == 0)
        return main_finish(stage_compile_file(args[2], args[4]));
    fputs(usage, stderr);
    return 2;
}

/* SPDX-License-Identifier: MIT */
/* The compiler process as the library uses it: orders in, answers out. Lines, and texts of known
 * length:
 *
 *   host  order NUMBER BYTES, the bytes    a request (jit/spec/spec.h)
 *   we    ok MICROSECONDS            of the processor; the library is DIRECTORY/uNUMBER.so
 *     or  error one line of text
 *
 * While the host lives it ends us by a signal. If our input ends, the host was killed: then nobody
 * else removes the directory, unless what lies there is to be kept. */
#include "jit/stage/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libgccjit.h>
#include <tidepool/version.h>

#include "jit/stage/compile.h"
#include "runtime/base/assert.h"
#include "runtime/scope/compiled.h"

enum { TEXT_MAX = TIDE_SPEC_SITE_BYTES * (TIDE_SPEC_SITES + 1), PATH_BYTES = 512 };

_Static_assert(sizeof "/u18446744073709551615.so" <= 32, "what serve_prepare leaves for a name");
_Static_assert(STAGE_ERROR_BYTES > sizeof "error \n", "an answer's line has room for its word");

typedef enum result { GO_ON, HOST_GONE, NO_SENSE } result;

static struct host {
    FILE *in;
    int out;
    const char *directory;
    char text[TEXT_MAX + 1];
    stage_request request;
} serve_host;

const char *stage_version(void)
{
    static char version[64];
    snprintf(version, sizeof version, "%d.%d.%d-%016" PRIx64 "-gccjit-%d.%d.%d",
             TIDEPOOL_VERSION_MAJOR, TIDEPOOL_VERSION_MINOR, TIDEPOOL_VERSION_PATCH,
             tide_compiled_layout(), gcc_jit_version_major(), gcc_jit_version_minor(),
             gcc_jit_version_patchlevel());
    tide_assert(strpbrk(version, " \n") == NULL); /* one word of a line */
    return version;
}

/* ---- the end -------------------------------------------------------------------------------- */

static int serve_remove_one(const char *path, const struct stat *status, int what,
                            struct FTW *where)
{
    (void)status, (void)what, (void)where;
    remove(path);
    return 0;
}

/* libgccjit's temporary folders lie in there, too. */
static void serve_remove_directory(void)
{
    const char *name = strrchr(serve_host.directory, '/');
    if (name == NULL || strncmp(name + 1, TIDE_CODE_KEPT, strlen(TIDE_CODE_KEPT)) != 0)
        nftw(serve_host.directory, serve_remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* ---- talking -------------------------------------------------------------------------------- */

/* The whole line, or the host is gone. */
static result serve_say(const char *line)
{
    size_t left = strlen(line);
    tide_assert(left > 0 && line[left - 1] == '\n' && serve_host.out >= 0);
    while (left > 0) {
        ssize_t wrote = write(serve_host.out, line, left);
        if (wrote < 0 && errno != EINTR)
            return HOST_GONE;
        line += wrote > 0 ? wrote : 0;
        left -= wrote > 0 ? (size_t)wrote : 0;
    }
    return GO_ON;
}

static uint64_t serve_microseconds(const struct rusage *usage)
{
    return ((uint64_t)usage->ru_utime.tv_sec + (uint64_t)usage->ru_stime.tv_sec) * 1000000 +
           (uint64_t)usage->ru_utime.tv_usec + (uint64_t)usage->ru_stime.tv_usec;
}

/* What this process and those it ran have taken of the processor since this was last asked, or
 * since it was started. */
static uint64_t serve_spent(void)
{
    static uint64_t before;
    struct rusage own, children;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    uint64_t now = serve_microseconds(&own) + serve_microseconds(&children), spent = now - before;
    tide_assert(now >= before);
    before = now;
    return spent;
}

static result serve_refuse(const char *why)
{
    char line[STAGE_ERROR_BYTES + 16];
    snprintf(line, sizeof line, "error %.*s\n", STAGE_ERROR_BYTES - 1, why);
    return serve_say(line);
}

static result serve_answer(uint64_t order)
{
    char path[PATH_BYTES], error[STAGE_ERROR_BYTES], line[64];
    snprintf(path, sizeof path, "%s/u%" PRIu64 ".so", serve_host.directory, order);
    bool good = stage_read(serve_host.text, &serve_host.request, error) &&
                stage_compile(&serve_host.request, STAGE_OUTPUT_LIBRARY, path, error);
    uint64_t spent = serve_spent(); /* what failed is not charged to the next one */
    if (!good)
        return serve_refuse(error);
    snprintf(line, sizeof line, "ok %" PRIu64 "\n", spent);
    return serve_say(line);
}

/* One request. What is no order, or is longer than any, leaves no way to find the next one. */
static result serve_one(void)
{
    char line[80], rest;
    uint64_t order;
    size_t bytes;
    tide_assert(serve_host.in != NULL);
    if (fgets(line, sizeof line, serve_host.in) == NULL)
        return HOST_GONE;
    if (sscanf(line, "order %" SCNu64 " %zu%c", &order, &bytes, &rest) != 3 || rest != '\n' ||
        bytes > TEXT_MAX)
        return NO_SENSE;
    if (fread(serve_host.text, 1, bytes, serve_host.in) != bytes)
        return HOST_GONE;
    serve_host.text[bytes] = '\0';
    return strlen(serve_host.text) == bytes ? serve_answer(order)
                                            : serve_refuse("the text has a byte 0");
}

/* ---- starting ------------------------------------------------------------------------------- */

/* The assembler and the linker must not read orders, nor write what looks like answers. */
static bool serve_take_over_streams(void)
{
    tide_assert(serve_host.in == NULL); /* they are taken over once */
    int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    serve_host.out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    serve_host.in = in >= 0 ? fdopen(in, "r") : NULL;
    return serve_host.in != NULL && serve_host.out >= 0 && null >= 0 &&
           dup2(null, STDIN_FILENO) == 0 && dup2(STDERR_FILENO, STDOUT_FILENO) == 1;
}

/* What the program has open is none of ours, and what compiles shall not run before others, as a
 * thread of the program may. */
static void serve_become_ordinary(void)
{
    struct sched_param none = {.sched_priority = 0};
    (void)close_range(3, ~0u, 0);
    (void)sched_setscheduler(0, SCHED_OTHER, &none);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)umask(077);
}

int stage_serve(const char *directory)
{
    serve_host.directory = directory;
    serve_become_ordinary();
    if (strlen(directory) > PATH_BYTES - 32 || setenv("TMPDIR", directory, 1) != 0 ||
        chdir(directory) != 0 || access(directory, W_OK | X_OK) != 0 ||
        !serve_take_over_streams()) {
        fprintf(stderr, "tidepool-stage: %s: %s\n", directory, strerror(errno));
        return 1;
    }
    result said = GO_ON;
    while (said == GO_ON)
        said = serve_one();
    if (said == NO_SENSE)
        fprintf(stderr, "tidepool-stage: a line on stdin is no order\n");
    else
        serve_remove_directory();
    return said == NO_SENSE;
}

/* SPDX-License-Identifier: MIT */
/* The protocol. Lines, and texts of known length:
 *
 *   we    hello VERSION              once
 *   host  order ID BYTES, the bytes  a request (jit/spec/spec.h)
 *   we    ok ID PATH  or  error ID one line of text
 *   host  bye                        the directory stays the host's
 *
 * The host may vanish at any time: then its end of the pipe closes, and the artefacts, which nobody
 * else knows of, go with us. It may also lose patience and send SIGTERM, to us as the leader of our
 * process group: then an assembler or linker that hangs goes, too. */
#include "jit/stage/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libgccjit.h>

#include "jit/stage/compile.h"
#include "jit/stage/kernels.h"
#include "runtime/scope/compiled.h"

enum { TEXT_MAX = TIDE_SPEC_SITE_BYTES * (TIDE_SPEC_SITES + 1), PATH_BYTES = 512 };

typedef enum result { GO_ON, BYE, HOST_GONE, NO_SENSE } result;

static struct host {
    FILE *in;
    int out;
    const char *directory;
    char text[TEXT_MAX + 1];
    stage_request request;
} host;

const char *stage_version(void)
{
    static char version[64];
    snprintf(version, sizeof version, "%d.%d.%d-%016" PRIx64 "-gccjit-%d.%d.%d",
             TIDEPOOL_VERSION_MAJOR, TIDEPOOL_VERSION_MINOR, TIDEPOOL_VERSION_PATCH,
             tide_compiled_layout(), gcc_jit_version_major(), gcc_jit_version_minor(),
             gcc_jit_version_patchlevel());
    return version;
}

/* ---- the end -------------------------------------------------------------------------------- */

/* Waits for SIGTERM, in a thread: a handler would not do, since libgccjit's driver installs its own
 * while it links. Only a leader's group is its own; a stager started by hand shares its shell's. */
static void *watch_for_end(void *nothing)
{
    sigset_t end;
    int got;
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    while (sigwait(&end, &got) != 0)
        ;
    if (getpgrp() == getpid())
        kill(0, SIGKILL);
    _exit(128 + SIGTERM);
    return nothing;
}

static bool start_watch(void)
{
    sigset_t end;
    pthread_t thread;
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    signal(SIGPIPE, SIG_IGN);
    return (errno = pthread_sigmask(SIG_BLOCK, &end, NULL)) == 0 &&
           (errno = pthread_create(&thread, NULL, watch_for_end, NULL)) == 0;
}

static int remove_one(const char *path, const struct stat *status, int what, struct FTW *where)
{
    (void)status;
    (void)what;
    (void)where;
    remove(path);
    return 0;
}

/* libgccjit's temporary folders lie in there too, whole if a compile was cut short. */
static void remove_directory(void)
{
    nftw(host.directory, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* ---- talking -------------------------------------------------------------------------------- */

static result say(const char *line)
{
    size_t left = strlen(line);
    while (left > 0) {
        ssize_t wrote = write(host.out, line, left);
        if (wrote < 0 && errno != EINTR)
            return HOST_GONE;
        line += wrote > 0 ? wrote : 0;
        left -= wrote > 0 ? (size_t)wrote : 0;
    }
    return GO_ON;
}

static bool make(const char *path, char error[STAGE_ERROR_BYTES])
{
    if (stage_orders_kernels(host.text))
        return stage_kernels(host.text, path, error);
    return stage_read(host.text, &host.request, error) &&
           stage_compile(&host.request, STAGE_OUTPUT_LIBRARY, path, error);
}

static result answer(uint64_t order)
{
    char path[PATH_BYTES], error[STAGE_ERROR_BYTES], line[PATH_BYTES + STAGE_ERROR_BYTES];
    snprintf(path, sizeof path, "%s/u%" PRIu64 ".so", host.directory, order);
    if (!make(path, error))
        snprintf(line, sizeof line, "error %" PRIu64 " %s\n", order, error);
    else
        snprintf(line, sizeof line, "ok %" PRIu64 " %s\n", order, path);
    return say(line);
}

static result refuse(uint64_t order, const char *why)
{
    char line[STAGE_ERROR_BYTES];
    snprintf(line, sizeof line, "error %" PRIu64 " %s\n", order, why);
    return say(line);
}

/* One request. What is no order, or is longer than any, leaves no way to find the next one. */
static result serve_one(void)
{
    char line[80], rest;
    uint64_t order;
    size_t bytes;
    if (fgets(line, sizeof line, host.in) == NULL)
        return HOST_GONE;
    if (strcmp(line, "bye\n") == 0)
        return BYE;
    if (sscanf(line, "order %" SCNu64 " %zu%c", &order, &bytes, &rest) != 3 || rest != '\n')
        return NO_SENSE;
    if (bytes > TEXT_MAX) {
        refuse(order, "the request is longer than any can be");
        return NO_SENSE;
    }
    if (fread(host.text, 1, bytes, host.in) != bytes)
        return HOST_GONE;
    host.text[bytes] = '\0';
    return strlen(host.text) == bytes ? answer(order) : refuse(order, "the text has a byte 0");
}

/* The assembler and the linker must not read orders, nor write what looks like answers. */
static bool take_over_streams(void)
{
    int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    host.out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    host.in = in >= 0 ? fdopen(in, "r") : NULL;
    return host.in != NULL && host.out >= 0 && null >= 0 && dup2(null, STDIN_FILENO) == 0 &&
           dup2(STDERR_FILENO, STDOUT_FILENO) == 1;
}

static bool prepare(const char *directory)
{
    host.directory = directory;
    if (strlen(directory) > PATH_BYTES - 32) {
        fprintf(stderr, "tidepool-stage: the directory's name has %zu bytes, limit %d\n",
                strlen(directory), PATH_BYTES - 32);
        return false;
    }
    if (setenv("TMPDIR", directory, 1) != 0 || access(directory, W_OK | X_OK) != 0 ||
        !take_over_streams() || !start_watch()) {
        fprintf(stderr, "tidepool-stage: %s: %s\n", directory, strerror(errno));
        return false;
    }
    return true;
}

int stage_serve(const char *directory)
{
    char hello[80];
    if (!prepare(directory))
        return 1;
    snprintf(hello, sizeof hello, "hello %s\n", stage_version());
    result said = say(hello);
    while (said == GO_ON)
        said = serve_one();
    if (said == NO_SENSE)
        fprintf(stderr, "tidepool-stage: a line on stdin is no order\n");
    if (said == HOST_GONE)
        remove_directory();
    fclose(host.in);
    return said == NO_SENSE;
}

/* SPDX-License-Identifier: MIT */
/* The stager as the library uses it: orders in, answers out. Lines, and texts of known length:
 *
 *   we    hello VERSION              once
 *   host  order ID BYTES, the bytes  a request (jit/spec/spec.h)
 *   we    spent ID MICROSECONDS, then ok ID PATH;  or  error ID one line of text
 *   host  bye                        the directory stays the host's
 *   we    idle                       nothing came for a while, and we go; the directory stays
 *
 * The host may vanish at any time: then its end of the pipe closes, and the artefacts, which nobody
 * else knows of, go with us, soon even if an assembler or linker hangs. It may also lose patience
 * and send SIGTERM, to us as the leader of our process group: then an assembler or linker that
 * hangs goes, too. */
#include "jit/stage/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <libgccjit.h>

#include "jit/stage/compile.h"
#include "runtime/base/assert.h"
#include "runtime/scope/compiled.h"

enum {
    TEXT_MAX = TIDE_SPEC_SITE_BYTES * (TIDE_SPEC_SITES + 1),
    PATH_BYTES = 512,
    LATE = 5 /* seconds */
};

_Static_assert(sizeof "/u18446744073709551615.so" <= 32, "what serve_prepare leaves for a name");
_Static_assert(STAGE_ERROR_BYTES > sizeof "error 18446744073709551615 " &&
                   PATH_BYTES > sizeof "error 18446744073709551615 \n",
               "an answer's line has room for its words beside a path or an error");

typedef enum result { GO_ON, BYE, HOST_GONE, NO_SENSE } result;

static struct host {
    FILE *in; /* not buffered: what has come can be asked for */
    int out;
    int idle_ms;    /* after which it goes; -1: it stays */
    bool dismissed; /* the host said "bye" */
    bool served;    /* an order has come */
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

/* Waits for SIGTERM, in a thread: a handler might be replaced by one of libgccjit's. Only a
 * leader's group is its own; a stager started by hand shares its shell's. */
static void *serve_watch_for_end(void *nothing)
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

/* Is it code that is to stay: directly in a directory of that name? */
static bool serve_is_kept(const char *path, const struct FTW *where)
{
    const char *name = strrchr(serve_host.directory, '/'), *end = strrchr(path, '.');
    return name != NULL && where->level == 1 && end != NULL && strcmp(end, ".so") == 0 &&
           strncmp(name + 1, TIDE_ARTEFACTS_KEPT, strlen(TIDE_ARTEFACTS_KEPT)) == 0;
}

static int serve_remove_one(const char *path, const struct stat *status, int what,
                            struct FTW *where)
{
    (void)status;
    (void)what;
    if (!serve_is_kept(path, where))
        remove(path); /* one that is not empty stays */
    return 0;
}

/* libgccjit's temporary folders lie in there too, whole if a compile was cut short. */
static void serve_remove_directory(void)
{
    tide_assert(serve_host.directory != NULL);
    nftw(serve_host.directory, serve_remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* Ends this process and its tools, an assembler that hangs among them, and then removes what they
 * have written. Whoever removes that must survive the kill, so it is a
 * child that leaves the group first. */
static _Noreturn void serve_end_group(void)
{
    pid_t group = getpgrp();
    if (group == getpid() && fork() == 0) {
        setpgid(0, 0);
        for (int i = 0; i < 1000 && kill(-group, SIGKILL) == 0; i++)
            usleep(1000); /* until nobody is left, or nobody but those that nobody collects */
        serve_remove_directory();
        _exit(0);
    }
    if (group == getpid())
        sleep(LATE); /* it is killed meanwhile, unless there was no process to be had */
    serve_remove_directory();
    if (group == getpid())
        kill(0, SIGKILL);
    _exit(1);
}

/* The host is gone in the middle of a compile: that has a while to end, and then is ended. */
static void *serve_watch_host(void *nothing)
{
    struct pollfd one = {.fd = fileno(serve_host.in), .events = POLLRDHUP};
    while (poll(&one, 1, -1) < 0)
        ;
    if ((one.revents & POLLRDHUP) == 0) /* a pipe, from a shell: what it holds is worked on */
        return nothing;
    sleep(LATE);
    if (__atomic_load_n(&serve_host.dismissed, __ATOMIC_RELAXED))
        return nothing;
    serve_end_group();
}

/* Before any other thread is: they inherit the blocked signal. */
static bool serve_start_watches(void)
{
    sigset_t end;
    pthread_t thread;
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    signal(SIGPIPE, SIG_IGN);
    return (errno = pthread_sigmask(SIG_BLOCK, &end, NULL)) == 0 &&
           (errno = pthread_create(&thread, NULL, serve_watch_for_end, NULL)) == 0 &&
           pthread_detach(thread) == 0 &&
           (errno = pthread_create(&thread, NULL, serve_watch_host, NULL)) == 0 &&
           pthread_detach(thread) == 0;
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

/* What the order asks for, as a file. */
static bool serve_make(const char *path, char error[STAGE_ERROR_BYTES])
{
    return stage_read(serve_host.text, &serve_host.request, error) &&
           stage_compile(&serve_host.request, STAGE_OUTPUT_LIBRARY, path, error);
}

static uint64_t serve_microseconds(const struct rusage *usage)
{
    return ((uint64_t)usage->ru_utime.tv_sec + (uint64_t)usage->ru_stime.tv_sec) * 1000000 +
           (uint64_t)usage->ru_utime.tv_usec + (uint64_t)usage->ru_stime.tv_usec;
}

/* What this process and those it ran have taken of the processor since this was last asked, or
 * since it was started; never 0. */
static uint64_t serve_spent(void)
{
    static uint64_t before;
    struct rusage own, children;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    uint64_t now = serve_microseconds(&own) + serve_microseconds(&children), spent = now - before;
    tide_assert(now >= before);
    before = now;
    return spent != 0 ? spent : 1;
}

static result serve_answer(uint64_t order)
{
    char path[PATH_BYTES], error[STAGE_ERROR_BYTES], line[PATH_BYTES + STAGE_ERROR_BYTES];
    tide_assert(strlen(serve_host.directory) <= PATH_BYTES - 32);
    snprintf(path, sizeof path, "%s/u%" PRIu64 ".so", serve_host.directory, order);
    if (!serve_make(path, error)) {
        (void)serve_spent(); /* nobody else is to be charged with it */
        snprintf(line, sizeof line, "error %" PRIu64 " %s\n", order, error);
    } else
        snprintf(line, sizeof line, "spent %" PRIu64 " %" PRIu64 "\nok %" PRIu64 " %s\n", order,
                 serve_spent(), order, path);
    return serve_say(line);
}

static result serve_refuse(uint64_t order, const char *why)
{
    char line[STAGE_ERROR_BYTES];
    tide_assert(strlen(why) < sizeof line - 32);
    snprintf(line, sizeof line, "error %" PRIu64 " %s\n", order, why);
    return serve_say(line);
}

/* Did nothing come, not even the end, for as long as we are to wait? What comes after this is lost
 * with us; the host knows by our last word that it was not begun. The first order is waited for as
 * long as it takes: we were started for it. */
static bool serve_is_idle(void)
{
    struct pollfd one = {.fd = fileno(serve_host.in), .events = POLLIN};
    int got;
    do
        got = poll(&one, 1, serve_host.served ? serve_host.idle_ms : -1);
    while (got < 0 && errno == EINTR);
    return got == 0;
}

/* One request. What is no order, or is longer than any, leaves no way to find the next one. */
static result serve_one(void)
{
    char line[80], rest;
    uint64_t order;
    size_t bytes;
    tide_assert(serve_host.in != NULL);
    if (serve_is_idle())
        return serve_say("idle\n") == GO_ON ? BYE : HOST_GONE;
    if (fgets(line, sizeof line, serve_host.in) == NULL)
        return HOST_GONE;
    if (strcmp(line, "bye\n") == 0)
        return BYE;
    if (sscanf(line, "order %" SCNu64 " %zu%c", &order, &bytes, &rest) != 3 || rest != '\n')
        return NO_SENSE;
    if (bytes > TEXT_MAX) {
        serve_refuse(order, "the request is longer than any can be");
        return NO_SENSE;
    }
    if (fread(serve_host.text, 1, bytes, serve_host.in) != bytes)
        return HOST_GONE;
    serve_host.text[bytes] = '\0';
    serve_host.served = true;
    return strlen(serve_host.text) == bytes ? serve_answer(order)
                                            : serve_refuse(order, "the text has a byte 0");
}

/* The assembler and the linker must not read orders, nor write what looks like answers. */
static bool serve_take_over_streams(void)
{
    tide_assert(serve_host.in == NULL); /* they are taken over once */
    int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    serve_host.out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    serve_host.in = in >= 0 ? fdopen(in, "r") : NULL;
    return serve_host.in != NULL && serve_host.out >= 0 && null >= 0 &&
           setvbuf(serve_host.in, NULL, _IONBF, 0) == 0 && dup2(null, STDIN_FILENO) == 0 &&
           dup2(STDERR_FILENO, STDOUT_FILENO) == 1;
}

/* Directory, streams and the thread that waits for the end. False: it has said why. */
static bool serve_prepare(const char *directory)
{
    serve_host.directory = directory;
    if (strlen(directory) > PATH_BYTES - 32) {
        fprintf(stderr, "tidepool-stage: the directory's name has %zu bytes, limit %d\n",
                strlen(directory), PATH_BYTES - 32);
        return false;
    }
    if (setenv("TMPDIR", directory, 1) != 0 || access(directory, W_OK | X_OK) != 0 ||
        !serve_take_over_streams() || !serve_start_watches()) {
        fprintf(stderr, "tidepool-stage: %s: %s\n", directory, strerror(errno));
        return false;
    }
    return true;
}

int stage_serve(const char *directory, const char *idle)
{
    char hello[80];
    serve_host.idle_ms = atoi(idle) > 0 ? atoi(idle) : -1;
    if (!serve_prepare(directory))
        return 1;
    snprintf(hello, sizeof hello, "hello %s\n", stage_version());
    result said = serve_say(hello);
    while (said == GO_ON)
        said = serve_one();
    __atomic_store_n(&serve_host.dismissed, said == BYE, __ATOMIC_RELAXED);
    if (said == NO_SENSE)
        fprintf(stderr, "tidepool-stage: a line on stdin is no order\n");
    if (said == HOST_GONE)
        serve_remove_directory();
    fclose(serve_host.in);
    return said == NO_SENSE;
}

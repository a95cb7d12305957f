/* SPDX-License-Identifier: MIT */
/* The auto-tuning service: starts workers if it is told to, and serves until it is interrupted. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tidepool/profile.h>
#include <tidepool/status.h>

#include "service.h"

enum { STARTED_MAX = 16, LOOK_MS = 250 };

typedef struct main_options {
    const char *address, *token, *profile, *program;
    uint16_t port;
    char *workers[STARTED_MAX]; /* what each is to do */
    int count;
} main_options;

__asm__(".section .rodata\n.globl tuner_page\ntuner_page:\n.incbin \"" TUNER_PAGE
        "\"\n.byte 0\n.previous\n");

static int main_usage(FILE *out)
{
    fputs(
        "tuner [--listen ADDRESS] [--port PORT] [--token TOKEN] [--profile FILE] [--program "
        "WORKER] [KIND...]\n"
        "Serves at 127.0.0.1:8787 unless told otherwise (port 0: a free one), and starts a worker "
        "of each KIND:\n"
        "transform, film, interpreter. Who changes something wants the token, which is printed.\n",
        out);
    return out == stderr ? 2 : 0;
}

static int main_read_options(int count, char **args, main_options *out)
{
    static const struct option names[] = {{"listen", required_argument, NULL, 'l'},
                                          {"port", required_argument, NULL, 'p'},
                                          {"token", required_argument, NULL, 't'},
                                          {"profile", required_argument, NULL, 'f'},
                                          {"program", required_argument, NULL, 'w'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    *out = (main_options){.address = "127.0.0.1", .port = 8787};
    for (int c; (c = getopt_long(count, args, "", names, NULL)) != -1;) {
        if (c == 'l')
            out->address = optarg;
        else if (c == 'p')
            out->port = (uint16_t)atoi(optarg);
        else if (c == 't')
            out->token = optarg;
        else if (c == 'f')
            out->profile = optarg;
        else if (c == 'w')
            out->program = optarg;
        else
            return main_usage(c == 'h' ? stdout : stderr) == 0 ? -1 : 2;
    }
    for (; optind < count && out->count < STARTED_MAX; optind++)
        out->workers[out->count++] = args[optind];
    return 0;
}

/* Beside this program unless told otherwise. A worker ends with the service. */
static pid_t main_start_worker(const main_options *options, char *kind)
{
    char path[4096];
    const char *program = options->program;
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 16);
    if (program == NULL && length > 0) {
        path[length] = '\0';
        strcpy(strrchr(path, '/') + 1, "tuner-worker");
        program = path;
    }
    pid_t parent = getpid(), child = fork();
    if (child != 0)
        return child;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    setenv("TIDEPOOL_LISTEN", "1", 1);
    if (options->profile != NULL)
        setenv("TIDEPOOL_PROFILE", options->profile, 1);
    execl(program, program, kind, (char *)NULL);
    _exit(127);
}

static bool main_make_token(char out[33])
{
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

static void main_end_workers(const pid_t *children, int count)
{
    for (int i = 0; i < count; i++)
        if (children[i] > 0)
            kill(children[i], SIGTERM);
    for (int i = 0; i < count; i++)
        if (children[i] > 0)
            (void)waitpid(children[i], NULL, 0);
}

int main(int count, char **args)
{
    main_options options;
    char token[33];
    pid_t children[STARTED_MAX];
    sigset_t ends;
    int code = main_read_options(count, args, &options), signal;
    if (code != 0)
        return code < 0 ? 0 : code;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    unsetenv("TIDEPOOL_LISTEN"); /* the service is no worker */
    for (int i = 0; i < options.count; i++)
        children[i] = main_start_worker(&options, options.workers[i]);
    unsetenv("TIDEPOOL_PROFILE");
    if (!main_make_token(token) || !workers_start(LOOK_MS) ||
        !http_start(options.address, options.port, options.token != NULL ? options.token : token,
                    options.profile)) {
        fprintf(stderr, "tuner: cannot serve at %s:%d: %s\n", options.address, options.port,
                strerror(errno));
        main_end_workers(children, options.count);
        return 1;
    }
    printf("http://%s:%d/#%s\n", options.address, http_port(),
           options.token != NULL ? options.token : token);
    fflush(stdout);
    while (sigwait(&ends, &signal) != 0)
        continue;
    tune_stop();
    http_stop();
    bool keeps = options.profile != NULL && http_recall_profile();
    workers_stop();
    main_end_workers(children, options.count);
    if (keeps && tide_profile_save(options.profile) != TIDE_OK) {
        fprintf(stderr, "tuner: %s\n", tide_error_message());
        return 1;
    }
    return 0;
}

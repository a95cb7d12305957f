/* SPDX-License-Identifier: MIT */
/* The auto-tuning service: starts workers if it is told to, and serves until it is interrupted. */
#define _GNU_SOURCE
#include <argp.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tidepool/status.h>

#include "service.h"

enum { STARTED_MAX = 64, PATIENCE_MS = 5000, NICE = 10 };

typedef struct main_options {
    const char *address, *profile;
    uint16_t port;
    char *commands[STARTED_MAX];
    int count;
} main_options;

static const struct argp_option main_table[] = {
    {"listen", 'l', "ADDRESS", 0, "Serve at this IPv4 address (127.0.0.1)", 0},
    {"port", 'p', "PORT", 0, "and this port (8787; 0: a free one)", 0},
    {"profile", 'f', "FILE", 0, "Workers begin with this profile; what they learn is kept there",
     0},
    {0}};

static error_t main_take(int key, char *text, struct argp_state *state)
{
    main_options *out = state->input;
    char *end = text;
    if (key == 'l')
        out->address = text;
    else if (key == 'f')
        out->profile = text;
    else if (key == 'p') {
        unsigned long port = strtoul(text, &end, 10);
        if (*end != '\0' || end == text || port > UINT16_MAX)
            argp_error(state, "--port %s is no number of 0 to 65535", text);
        out->port = (uint16_t)port;
    } else if (key == ARGP_KEY_ARG && out->count == STARTED_MAX)
        argp_error(state, "more than %d commands", STARTED_MAX);
    else if (key == ARGP_KEY_ARG)
        out->commands[out->count++] = text;
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

/* A worker ends with the service, however that ends. */
static pid_t main_start_worker(const char *command)
{
    pid_t parent = getpid(), child = fork();
    if (child != 0)
        return child;
    sigset_t none;
    char *line;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGINT, SIG_IGN); /* from the terminal: the service tells it */
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || asprintf(&line, "exec %s", command) < 0)
        _exit(1);
    setenv("TIDEPOOL_LISTEN", "1", 1);
    execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    _exit(127);
}

/* Drawn, unless the environment has one. */
static bool main_make_token(char out[65])
{
    unsigned char bytes[16];
    const char *given = getenv("TUNER_TOKEN");
    int length = snprintf(out, 65, "%s", given != NULL ? given : "");
    unsetenv("TUNER_TOKEN");
    if (length > 64) {
        fprintf(stderr, "tuner: TUNER_TOKEN has %d bytes, limit 64\n", length);
        return false;
    }
    if (length > 0)
        return true;
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) {
        perror("tuner: no token can be drawn");
        return false;
    }
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

/* Those that do not end when they are told to are killed. */
static void main_end_workers(const pid_t *children, int count)
{
    int waited = 0;
    for (int i = 0; i < count; i++)
        if (children[i] > 0)
            kill(children[i], SIGTERM);
    for (int i = 0; i < count; i++)
        while (children[i] > 0 && waitpid(children[i], NULL, WNOHANG) == 0) {
            if (waited++ == PATIENCE_MS)
                for (int k = i; k < count; k++)
                    if (children[k] > 0)
                        kill(children[k], SIGKILL);
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
}

static int main_serve(const main_options *options, const char *token, const sigset_t *ends)
{
    int signal;
    /* What clients ask for shall not take the processor from the workers. */
    (void)sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
    (void)setpriority(PRIO_PROCESS, 0, NICE);
    if (!workers_start())
        return 1;
    if (!http_start(options->address, options->port, token, options->profile != NULL)) {
        fprintf(stderr, "tuner: cannot serve at %s:%d: %s\n", options->address, options->port,
                strerror(errno));
        workers_stop();
        return 1;
    }
    printf("http://%s:%d/#%s\n", options->address, http_port(), token);
    fflush(stdout);
    while (sigwait(ends, &signal) != 0)
        continue;
    tune_stop();
    http_stop();
    bool kept = profile_stop();
    workers_stop();
    if (!kept)
        fprintf(stderr, "tuner: %s\n", tide_error_message());
    return kept ? 0 : 1;
}

int main(int count, char **args)
{
    static const struct argp argp = {
        main_table,
        main_take,
        "[COMMAND...]",
        "Tunes programs that listen (TIDEPOOL_LISTEN=1), and starts each COMMAND as one "
        "(one program: env A=1 ./prog).\vWho "
        "changes "
        "something wants the token, which is printed; TUNER_TOKEN in the environment sets it.",
        NULL,
        NULL,
        NULL};
    main_options options = {.address = "127.0.0.1", .port = 8787};
    char token[65];
    pid_t children[STARTED_MAX];
    sigset_t ends;
    argp_parse(&argp, count, args, 0, NULL, &options);
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    unsetenv("TIDEPOOL_LISTEN"); /* the service is no worker */
    if (!main_make_token(token))
        return 1;
    if (!profile_start(options.profile)) {
        fprintf(stderr, "tuner: %s\n", tide_error_message());
        return 1;
    }
    for (int i = 0; i < options.count; i++)
        children[i] = main_start_worker(options.commands[i]);
    unsetenv("TIDEPOOL_PROFILE");
    int status = main_serve(&options, token, &ends);
    main_end_workers(children, options.count);
    return status;
}

/* SPDX-License-Identifier: MIT */
/* A client of the socket. */
#define _GNU_SOURCE
#include "client.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static client_tally *shared; /* atomic words, in memory of both processes */
static pid_t client;

static void client_must(bool good, const char *what)
{
    if (good)
        return;
    perror(what);
    _exit(3);
}

static int client_connect(const struct sockaddr_un *address)
{
    int to = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    client_must(to >= 0, "socket");
    client_must(connect(to, (const struct sockaddr *)address, sizeof *address) == 0, "connect");
    __atomic_fetch_add(&shared->attaches, 1, __ATOMIC_RELAXED);
    return to;
}

/* The facts document, up to its line feed. */
static void client_ask(int to)
{
    static const char request[] = "{\"get\":\"facts\"}\n";
    static char answer[1 << 16];
    client_must(write(to, request, sizeof request - 1) == sizeof request - 1, "request");
    for (bool whole = false; !whole;) {
        ssize_t got = read(to, answer, sizeof answer);
        client_must(got > 0, "answer");
        whole = answer[got - 1] == '\n';
        __atomic_fetch_add(&shared->bytes, (uint64_t)got, __ATOMIC_RELAXED);
    }
}

static void client_run(client_mode mode, const struct sockaddr_un *address)
{
    for (;;) {
        int to = client_connect(address);
        if (mode != CLIENT_ATTACH)
            client_ask(to);
        close(to);
        if (mode == CLIENT_SCRAPE)
            sleep(1);
    }
}

void client_start(client_mode mode, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    client_must((size_t)snprintf(address.sun_path, sizeof address.sun_path, "%s", path) <
                    sizeof address.sun_path,
                "path of the socket");
    if (shared == NULL)
        shared =
            mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    client_must(shared != MAP_FAILED, "mmap");
    *shared = (client_tally){0};
    client = mode != CLIENT_NONE ? fork() : 0;
    client_must(client >= 0, "fork");
    if (mode != CLIENT_NONE && client == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        client_run(mode, &address);
    }
}

client_tally client_look(void)
{
    return (client_tally){__atomic_load_n(&shared->attaches, __ATOMIC_RELAXED),
                          __atomic_load_n(&shared->bytes, __ATOMIC_RELAXED)};
}

client_tally client_stop(void)
{
    int status;
    if (client > 0) {
        client_must(waitpid(client, &status, WNOHANG) == 0, "a client ended by itself");
        kill(client, SIGKILL);
        (void)waitpid(client, &status, 0);
    }
    client = 0;
    return client_look();
}

/* SPDX-License-Identifier: MIT */
/* A stager that does not compile, and does one thing wrong: the one it is called by. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char *name, *directory;

static bool is(const char *behaviour)
{
    return strcmp(name, behaviour) == 0;
}

static int remove_entry(const char *path, const struct stat *seen, int type, struct FTW *ftw)
{
    (void)seen;
    (void)type;
    (void)ftw;
    return remove(path);
}

/* The host is gone and said nothing: nobody else will clean up. */
static void end_of_input(void)
{
    nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    _exit(0);
}

static void say(const char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        ssize_t written = write(STDOUT_FILENO, text, left);
        if (written <= 0)
            end_of_input();
        text += written;
        left -= (size_t)written;
    }
}

static void sleep_for_ever(void)
{
    for (;;)
        pause();
}

/* ---- reading orders ----------------------------------------------------------------------- */

static bool read_exactly(char *to, size_t bytes)
{
    while (bytes > 0) {
        ssize_t got = read(STDIN_FILENO, to, bytes);
        if (got <= 0)
            return false;
        to += got;
        bytes -= (size_t)got;
    }
    return true;
}

static void read_line(char *line, size_t room)
{
    size_t at = 0;
    do
        if (at + 1 == room || !read_exactly(line + at, 1))
            end_of_input();
    while (line[at++] != '\n');
    line[at - 1] = '\0';
}

/* The id of the next order; its text is in *text. */
static unsigned long long read_order(char **text)
{
    char line[256];
    unsigned long long id;
    size_t bytes;
    read_line(line, sizeof line);
    if (strcmp(line, "bye") == 0) {
        if (is("lingers"))
            sleep_for_ever();
        _exit(0);
    }
    if (sscanf(line, "order %llu %zu", &id, &bytes) != 2)
        _exit(4);
    *text = calloc(1, bytes + 1);
    if (*text == NULL || !read_exactly(*text, bytes))
        end_of_input();
    return id;
}

/* ---- answering ---------------------------------------------------------------------------- */

static void say_ok(unsigned long long id, const char *path)
{
    char line[1024];
    snprintf(line, sizeof line, "ok %llu %s\n", id, path);
    say(line);
}

static void answer_well(unsigned long long id, const char *text)
{
    static unsigned count;
    char path[512], line[600];
    if (strncmp(text, "error", 5) == 0) {
        snprintf(line, sizeof line, "error %llu %s\n", id, text);
        say(line);
        return;
    }
    snprintf(path, sizeof path, "%s/made-%d-%u.so", directory, (int)getpid(), count++);
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (file < 0 || write(file, text, strlen(text)) < 0 || close(file) != 0) {
        snprintf(line, sizeof line, "error %llu cannot write\n", id);
        say(line);
        return;
    }
    say_ok(id, path);
}

static unsigned long long effective_capabilities(void)
{
    char line[256];
    unsigned long long found = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "CapEff: %llx", &found) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return found;
}

/* What it was started with, as lines of the artefact. */
static void answer_with_facts(unsigned long long id)
{
    char text[8192], cwd[512] = "";
    const char *libraries = getenv("LD_LIBRARY_PATH");
    uid_t users[3];
    gid_t groups[3];
    cpu_set_t processors;
    CPU_ZERO(&processors);
    (void)!getcwd(cwd, sizeof cwd);
    getresuid(&users[0], &users[1], &users[2]);
    getresgid(&groups[0], &groups[1], &groups[2]);
    sched_getaffinity(0, sizeof processors, &processors);
    snprintf(text, sizeof text,
             "cwd %s\npath %s\nlibraries %s\nusers %d %d %d\ngroups %d %d %d\npolicy %d\nnice %d\n"
             "processors %d\ncapabilities %llx\nsession %d\n",
             cwd, getenv("PATH"), libraries != NULL ? libraries : "-", (int)users[0], (int)users[1],
             (int)users[2], (int)groups[0], (int)groups[1], (int)groups[2], sched_getscheduler(0),
             getpriority(PRIO_PROCESS, 0), CPU_COUNT(&processors), effective_capabilities(),
             getsid(0) == getpid());
    answer_well(id, text);
}

static void answer_with_link(unsigned long long id)
{
    char path[512];
    snprintf(path, sizeof path, "%s/link.so", directory);
    if (symlink("/bin/sh", path) == 0)
        say_ok(id, path);
}

/* The child keeps our socket open. */
static void leave_a_child(void)
{
    if (fork() == 0)
        sleep_for_ever();
    _exit(0);
}

static bool is_first(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/was-here", directory);
    return open(path, O_WRONLY | O_CREAT | O_EXCL, 0600) >= 0;
}

static void hang_with_a_child(void)
{
    signal(SIGTERM, SIG_IGN);
    if (fork() == 0)
        sleep_for_ever();
    sleep_for_ever();
}

/* Until the test says so; SIGTERM is nothing to it. Then it reads on. */
static void wait_for_test(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/../../go-on", directory);
    while (access(path, F_OK) != 0)
        usleep(1000);
}

static void misbehave(unsigned long long id, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/../made.so", directory);
    if (is("dies") || (is("dies-once") && is_first()) || (is("picky") && strstr(text, "poison")))
        raise(SIGKILL);
    else if (is("hangs") || (is("hangs-on-poison") && strstr(text, "poison")))
        hang_with_a_child();
    else if (is("slow-on-poison") && strstr(text, "poison"))
        signal(SIGTERM, SIG_IGN), wait_for_test();
    else if (is("stops"))
        raise(SIGSTOP);
    else if (is("garbage"))
        say("what?\n");
    else if (is("binary"))
        (void)!write(STDOUT_FILENO, "ok 1\0/\n", 7);
    else if (is("endless"))
        for (;;)
            say("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    else if (is("wrong-id"))
        say_ok(id + 1000, "/tmp/x");
    else if (is("outside"))
        say_ok(id, "/bin/sh");
    else if (is("climbs"))
        say_ok(id, path);
    else if (is("tells"))
        answer_with_facts(id);
    else if (is("idles") || (is("idles-once") && is_first()))
        say("idle\n"), _exit(0);
    else if (is("links"))
        answer_with_link(id);
    else if (is("absent"))
        snprintf(path, sizeof path, "%s/absent.so", directory), say_ok(id, path);
    else if (is("twice"))
        answer_well(id, text), answer_well(id, text);
    else if (is("leaves-child"))
        leave_a_child();
    else if (is("hangs-up"))
        close(0), close(1), sleep_for_ever();
    else if (!is("closes-stdout"))
        answer_well(id, text);
}

static void begin(void)
{
    if (is("quits"))
        _exit(1);
    if (is("mute"))
        sleep_for_ever();
    say(is("rude") ? "hi there\n" : "hello fake 1\n");
    if (is("deaf"))
        sleep_for_ever();
    if (is("closes-stdout"))
        close(STDOUT_FILENO);
}

/* What the host promised: descriptors, environment, group, signals. */
static void check_start(void)
{
    extern char **environ;
    size_t count = 0;
    sigset_t blocked;
    struct sigaction action;
    while (environ[count] != NULL)
        count++;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    sigaction(SIGPIPE, NULL, &action);
    if (count != 3u + (getenv("LD_LIBRARY_PATH") != NULL) || getenv("PATH") == NULL ||
        strcmp(getenv("TMPDIR"), directory) != 0 || getpgrp() != getpid() ||
        sigismember(&blocked, SIGUSR1) || action.sa_handler != SIG_DFL)
        _exit(5);
    for (int i = 0; i < 1024; i++)
        if ((fcntl(i, F_GETFD) >= 0) != (i <= STDERR_FILENO))
            _exit(6);
}

int main(int argc, char **argv)
{
    if (argc != 4 || strcmp(argv[1], "--serve") != 0)
        return 2;
    name = strrchr(argv[0], '/') + 1;
    directory = argv[2];
    check_start();
    signal(SIGPIPE, SIG_IGN);
    begin();
    for (;;) {
        char *text;
        unsigned long long id = read_order(&text);
        misbehave(id, text);
        free(text);
    }
}
